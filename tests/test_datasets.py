"""Drawn scenes are what they say."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bimichi import BiMIChI, InvalidInputError
from bimichi.datasets import street, um, um_optimum
from bimichi.scene import Scene, join_bags


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


# The letters


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
    with pytest.raises(InvalidInputError, match="without noise"):
        um_optimum(noisy)


def test_um_optimum_refuses_letters_in_negative_bags():
    scene = um()
    wrong = scene.with_bags(scene.segments, scene.labels | {max(scene.labels, key=scene.labels.get): False})
    with pytest.raises(InvalidInputError, match="negative bag that holds a letter"):
        um_optimum(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: um(height=10), "height must be a whole number of at least 20, got 10"),
        (lambda: um(width=80.0), "width must be"),
        (lambda: um(noise=-1), "noise must be"),
        (lambda: um(noise=1, random_state="a"), "random_state must be"),
        (lambda: street(height=32), "height must be a whole number of at least 64"),
        (lambda: street(n_people=-1), "n_people must be"),
        (lambda: street(64, 64, n_sources=4), "n_sources must be 3 or 6"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# The street


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
    model = BiMIChI("bipolar", polarity="learn", random_state=0).fit(join_bags(streets[:2]))
    fused = np.mean([auc(scene, model.fuse(scene.sources)) for scene in streets[2:]])
    single = [np.mean([auc(scene, scene.sources[..., k]) for scene in streets[2:]]) for k in range(3)]
    assert fused > max(single)
    assert 0.85 < max(single) < 0.995


@pytest.mark.parametrize("n_people", [0, 1, 12])
def test_street_takes_any_number_of_people(n_people):
    scene = street(96, 128, n_people=n_people, n_segments=60, n_sources=6)
    assert scene.n_sources == 6
    assert (n_people > 0) == scene.truth.any() == any(scene.labels.values())
    assert len(scene.boxes) <= n_people


# Bags of several scenes


def test_joined_bags_are_those_of_each_scene(rng):
    scenes = []
    for name in ("a", "b", "c"):
        segments = rng.integers(3, 9, (10, 12))
        labels = {int(s): bool(s % 2) and name != "b" for s in np.unique(segments) if s != 5}
        scenes.append(Scene(rng.uniform(-1, 1, (10, 12, 2)), name, segments=segments, labels=labels))
    joined = join_bags(iter(scenes))
    assert sorted(joined.ids) == sorted((scene.name, segment) for scene in scenes for segment in scene.labels)
    everything = np.concatenate([scene.sources.reshape(-1, 2) for scene in scenes])
    np.testing.assert_array_equal(everything[joined.instance], joined.X)
    for k, (name, segment) in enumerate(joined.ids):
        scene = scenes["abc".index(name)]
        rows = joined.X[joined.offsets[k] : joined.offsets[k + 1]]
        np.testing.assert_array_equal(rows, scene.sources[scene.segments == segment])
        assert joined.labels[k] == scene.labels[segment]


def test_scene_is_shown_on_a_line():
    scene = Scene(np.zeros((4, 6, 2)), "a", ("warm", "bright"), segments=np.arange(24).reshape(4, 6))
    assert repr(scene) == "Scene('a', 4 x 6; warm, bright)"
    assert repr(scene.with_bags(scene.segments, {0: True, 3: False})).endswith("bright; 2 bags, 1 positive)")


def test_scenes_that_cannot_be_joined():
    scene = Scene(np.zeros((2, 2)), "a", segments=np.array([0, 1]), labels={0: True, 1: False})
    other = Scene(np.zeros((2, 2)), "b", ("left", "right"), segments=np.array([0, 1]), labels={0: True})
    for scenes, message in (
        ([], "scenes is empty"),
        ([scene, scene], "Two scenes are named 'a'"),
        ([scene, other], "Scene 'b' has sources left, right, but scene 'a' has 1, 2"),
        ([Scene(np.zeros((2, 2)), "c")], "Scene 'c' has no bags"),
        ([scene.with_bags(scene.segments, {7: True})], "labels of scene 'a' name segment 7"),
        ([scene.with_bags(scene.segments, {0: True})], "All 1 bags are positive"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            join_bags(scenes)
