"""The letters U and M: the paper's patterns, counts and optimum."""

import numpy as np
import pytest
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi import BiMIChI
from bimichi.datasets import um, um_optimum


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


def test_um_has_the_papers_patterns_and_counts():
    scene = um()
    assert scene.shape == (100, 80)
    letters = scene.truth
    u = letters & (np.arange(100) < 50)[:, None]
    m = letters & ~u
    expected = np.stack([np.where(u, 1, -1), np.where(m, -1, 1), np.where(letters, -1, 1)], axis=-1)
    np.testing.assert_array_equal(scene.sources, expected)
    np.testing.assert_array_equal(letters, letters[:, ::-1])
    assert len(scene.boxes) == 2
    for segment, positive in scene.labels.items():
        assert positive == letters[scene.segments == segment].any()
    best = um_optimum(scene)
    assert (best.negative, best.mixed, best.missed) == (38, 4, 1)
    assert best.background == pytest.approx(-0.8095, abs=1e-4)
    assert best.objective_value == pytest.approx(18.476, abs=1e-3)


@pytest.mark.parametrize("arguments", [{}, {"height": 60, "width": 60, "n_segments": 30}, {"compactness": 10.0}])
def test_um_optimum_is_what_learning_finds(arguments):
    scene = um(**arguments)
    best = um_optimum(scene)
    model = BiMIChI("bipolar", random_state=0).fit(scene.bags())
    assert model.objective_value_ == pytest.approx(best.objective_value, abs=1e-6)
    g = model.bicapacity_
    assert g[("1", "2"), ("3",)] == pytest.approx(best.letter, abs=1e-5)
    assert g[("2", "3"), ("1",)] == pytest.approx(best.background, abs=1e-5)
    model = BiMIChI("magnitude", random_state=0).fit(scene.bags())
    assert model.objective_value_ == pytest.approx(0, abs=1e-6)
    assert auc(scene, model.fuse(scene.sources)) == 1


def test_um_optimum_is_the_least_on_a_grid():
    scene = um(compactness=10.0)
    best = um_optimum(scene)
    values = {(1, 1, -1): 1.0, (-1, -1, -1): -1.0}
    grid = np.linspace(-1, 1, 2001)
    cost = np.zeros_like(grid)
    for segment, positive in scene.labels.items():
        patterns = {tuple(map(int, x)) for x in scene.sources[scene.segments == segment]}
        fused = np.stack([np.broadcast_to(values.get(pattern, grid), grid.shape) for pattern in patterns])
        cost += ((fused - 1) ** 2).min(axis=0) if positive else ((fused + 1) ** 2).max(axis=0)
    assert grid[cost.argmin()] == pytest.approx(best.background, abs=1e-3)
    assert cost.min() == pytest.approx(best.objective_value, abs=1e-3)


def test_um_noise_is_seeded_and_stays_in_range():
    noisy = um(noise=0.3, random_state=1)
    np.testing.assert_array_equal(noisy.sources, um(noise=0.3, random_state=1).sources)
    assert np.abs(noisy.sources - um(noise=0.3, random_state=2).sources).max() > 0.1
    assert np.abs(noisy.sources).max() == 1
    np.testing.assert_array_equal(noisy.segments, um().segments)
    with refused("letters-sources"):
        um_optimum(noisy)


def test_um_optimum_refuses_letters_in_negative_bags():
    scene = um()
    wrong = scene.with_bags(scene.segments, scene.labels | {max(scene.labels, key=scene.labels.get): False})
    with refused("letters-bag"):
        um_optimum(wrong)
