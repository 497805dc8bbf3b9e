import numpy as np
import pytest

from bimichi import Bags, BiMIChI, Scene
from bimichi.fit.direction import trusted_signs
from bimichi.fit.objectives import OBJECTIVES
from bimichi.scenes.sample import Sample, sample_bags


@pytest.fixture
def bags(rng):
    """Positive bags have an instance that is low in the second source, and a little high in the first."""
    ids = np.repeat(np.arange(40), 8)
    X = np.clip(rng.normal([-0.3, 0.3, 0.0], 0.2, (len(ids), 3)), -1, 1)
    hits = (ids % 4 == 0) & (np.arange(len(ids)) % 8 == 3)
    X[hits] = np.clip(rng.normal([-0.1, -0.6, 0.0], 0.2, (int(hits.sum()), 3)), -1, 1)
    return Bags.from_instances(X, ids % 4 == 0, ids)


def scene_samples(rng, n, means, noise=0.3):
    """Samples of n scenes: targets at these means, others at zero."""
    found = []
    for k in range(n):
        targets, others = rng.normal(means, noise, (60, len(means))), rng.normal(0, noise, (900, len(means)))
        found.append(Sample(str(k), np.clip(targets, -1, 1), np.clip(others, -1, 1), (1.0, 10.0)))
    return found


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "magnitude"])
def test_an_inverted_source_is_found_whatever_the_objective(bags, name):
    model = BiMIChI(name, polarity="learn", random_state=0).fit(bags)
    assert model.polarity_.tolist() == [1, -1, 1]
    assert BiMIChI(name, random_state=0).fit(bags).polarity_.tolist() == [1, 1, 1]


def test_each_inverted_source_is_found_among_scenes(rng):
    for flips in ([1, -1, 1], [-1, 1, 1], [-1, -1, 1], [1, 1, 1]):
        samples = scene_samples(rng, 6, np.array([0.3, 0.3, 0.0]) * flips)
        assert trusted_signs(samples).signs.tolist() == flips


def test_noise_is_never_inverted(rng):
    for _ in range(10):
        found = trusted_signs(scene_samples(rng, 4, np.array([0.3, 0.0, 0.0, 0.0])))
        assert found.signs.tolist() == [1, 1, 1, 1]


def test_too_few_scenes_change_nothing(rng):
    samples = scene_samples(rng, 2, np.array([0.2, -0.4]))
    found = trusted_signs(samples)
    assert found.signs.tolist() == [1, 1]
    assert found.weak == [1]
    assert trusted_signs(scene_samples(rng, 3, np.array([0.2, -0.4]))).signs.tolist() == [1, -1]


@pytest.mark.parametrize(("loss", "sign"), [(0.005, -1), (0.03, 1)])
def test_a_source_that_is_clearly_low_on_targets_is_inverted_unless_the_fusion_clearly_loses(
    rng, monkeypatch, loss, sign
):
    """Where other sources say as much already, the fusion gains nothing by the sign, and may lose a trifle."""

    def scores(quick, signs):
        return np.array([0.9, 0.91, 0.89, 0.9]) - loss * (signs[1] < 0) * np.array([1, 1.1, 0.9, 1])

    monkeypatch.setattr("bimichi.fit.direction._Quick.scores", scores)
    found = trusted_signs(scene_samples(rng, 4, np.array([0.5, -0.4])))
    assert found.signs.tolist() == [1, sign]
    assert found.weak == ([] if sign < 0 else [1])
    assert trusted_signs(scene_samples(rng, 4, np.array([0.5, -0.2]))).signs.tolist() == [1, 1]  # not that clearly low


def test_samples_without_targets_are_learned_from_but_not_scored(rng):
    empty = [Sample("none", np.empty((0, 2)), rng.normal(0, 0.3, (100, 2)))]
    samples = scene_samples(rng, 3, np.array([0.1, -0.4]))
    assert trusted_signs(samples + empty).signs.tolist() == [1, -1]
    assert trusted_signs(empty).signs.tolist() == [1, 1]


def test_a_source_is_not_turned_to_what_surrounds_targets(rng):
    """Targets are high; all else in their bags is a little low, so that J of the mean falls if the source is turned."""
    ids = np.repeat(np.arange(40), 20)
    positive = ids % 4 == 0
    X = np.clip(rng.normal(0.1, 0.1, (len(ids), 2)), -1, 1)
    X[positive] -= 0.4
    X[positive & (np.arange(len(ids)) % 20 == 3)] = 0.9
    bags = Bags.from_instances(X, positive, ids)
    given, turned = (BiMIChI("mean").fit(bags.with_signs([sign, sign])).objective_value_ for sign in (1, -1))
    assert turned < given
    assert BiMIChI("mean", polarity="learn").fit(bags).polarity_.tolist() == [1, 1]


def test_boxes_say_which_pixels_are_targets(rng):
    """The second source is low in the middle of boxes and high around it, so that maxima of bags mislead."""
    scenes = []
    for k in range(4):
        sources = rng.normal(0, 0.1, (40, 60, 2))
        sources[10:30, 20:40] += [0.0, 0.6]
        sources[12:28, 25:35] += [0.15, -1.2]
        segments = np.arange(40)[:, None] // 10 * 6 + np.arange(60) // 10
        labels = {int(s): bool(np.any((segments == s)[10:30, 20:40])) for s in np.unique(segments)}
        boxes = np.array([[20.0, 10, 20, 20]])
        scene = Scene(np.clip(sources, -1, 1), str(k), segments=segments, labels=labels, boxes=boxes)
        scenes.append(scene)
    assert BiMIChI("mean", additivity=1, polarity="learn").fit(scenes).polarity_.tolist() == [1, -1]


def test_rows_of_large_bags_keep_their_extremes(rng):
    X = rng.uniform(-1, 1, (5000, 3))
    found = sample_bags("", Bags.from_instances(X, np.arange(5000) < 3000, np.arange(5000) // 1500))
    assert found.offsets is not None
    assert [len(at) - 1 for at in found.offsets] == [2, 2]
    assert len(found.targets) <= 2 * 512
    np.testing.assert_array_equal(found.targets.max(axis=0), X[:3000].max(axis=0))
    np.testing.assert_array_equal(found.others.min(axis=0), X[3000:].min(axis=0))
