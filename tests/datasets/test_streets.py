"""Drawn streets are what they say."""

import numpy as np
import pytest
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi import BiMIChI
from bimichi.datasets import street, um
from bimichi.scenes.scene import join_bags


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: um(height=10), "whole-number:height"),
        (lambda: um(width=80.0), "whole-number:width"),
        (lambda: um(noise=-1), "number-range:noise"),
        (lambda: um(noise=1, random_state="a"), "random-state:random_state"),
        (lambda: street(height=32), "whole-number:height"),
        (lambda: street(n_people=-1), "whole-number:n_people"),
        (lambda: street(64, 64, n_sources=4), "choice:n_sources"),
    ],
)
def test_bad_arguments(call, message):
    with refused(message):
        call()


@pytest.fixture(scope="module")
def streets():
    return [street(240, 320, random_state=seed, n_segments=150) for seed in range(4)]


def test_street_is_complete_and_in_range(streets):
    for scene in streets:
        assert scene.sources.shape == (240, 320, 3)
        assert np.abs(scene.sources).max() <= 1
        assert scene.rgb.shape == (240, 320, 3)
        assert scene.thermal.shape == (240, 320)
        assert scene.rgb.dtype == scene.thermal.dtype == np.uint8
        assert scene.truth_from == "pixels"
        assert len(scene.boxes) == 4
        assert 0.005 < scene.truth.mean() < 0.06
        inside = np.zeros_like(scene.truth)
        for x, y, width, height in scene.boxes.astype(int):
            part = scene.truth[y : y + height, x : x + width]
            assert part.any(axis=0).all()
            assert part.any(axis=1).all()
            assert height > width
            inside[y : y + height, x : x + width] = True
        assert not (scene.truth & ~inside).any()
        for segment, positive in scene.labels.items():
            assert positive == inside[scene.segments == segment].any()


def test_street_depends_on_its_seed_alone(streets):
    again = street(240, 320, random_state=1, n_segments=150)
    for what in ("sources", "segments", "truth", "boxes", "rgb", "thermal"):
        np.testing.assert_array_equal(getattr(again, what), getattr(streets[1], what))
    assert again.name == "street-1"
    assert (street(64, 64, random_state=np.random.default_rng(3)).name) == "street"
    assert (streets[0].truth != streets[1].truth).any()


def test_street_is_dark_and_people_are_warm_but_not_alone_so(streets):
    for scene in streets:
        assert np.median(scene.rgb) < 60
        assert scene.rgb.max() == 255
        people, others = scene.thermal[scene.truth], scene.thermal[~scene.truth]
        assert np.median(people) > np.percentile(others, 85)
        assert np.percentile(others, 99.5) > np.percentile(people, 10)
        assert scene.rgb[scene.truth].mean() < 60


def test_learned_on_two_streets_fusion_beats_the_best_source_on_two_others(streets):
    signs = np.float32([1, -1, 1])  # of all that is warm, people are the darkest
    model = BiMIChI("bipolar", random_state=0).fit(join_bags(streets[:2]).with_signs(signs))
    fused = np.mean([auc(scene, model.fuse(scene.sources * signs)) for scene in streets[2:]])
    single = [np.mean([auc(scene, scene.sources[..., k]) for scene in streets[2:]]) for k in range(3)]
    assert fused > max(single)
    assert 0.85 < max(single) < 0.995


@pytest.mark.parametrize("n_people", [0, 1, 12])
def test_street_takes_any_number_of_people(n_people):
    scene = street(96, 128, n_people=n_people, n_segments=60, n_sources=6)
    assert scene.n_sources == 6
    assert (n_people > 0) == scene.truth.any() == any(scene.labels.values())
    assert len(scene.boxes) <= n_people
