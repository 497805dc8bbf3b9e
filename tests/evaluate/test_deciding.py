"""Thresholds, and scores of objects."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from refusals import refused

from bimichi import BiMIChI, Scene
from bimichi.datasets import Dataset, street
from bimichi.fuse import detect
from bimichi.metrics import choose_threshold, decide, object_scores
from bimichi.scenes import core_bags


def at(threshold, scores, labels):
    found = scores >= threshold
    hits = (found & labels).sum()
    return hits / labels.sum(), hits / max(found.sum(), 1), 2 * hits / (found.sum() + labels.sum())


@pytest.mark.parametrize("levels", [5, 40, 10_000])
def test_thresholds_against_all_of_them(levels, rng):
    for _ in range(20):
        labels = rng.random(200) < 0.2
        labels[:2] = True, False
        scores = np.round(rng.normal(size=200) + labels, 9) if levels > 100 else rng.integers(0, levels, 200) / levels
        every = {value: at(value, scores, labels) for value in np.unique(scores)}
        for share in (0.05, 0.5, 0.9, 1.0):
            found = choose_threshold(scores, labels, recall=share)
            assert found.threshold == max(value for value, one in every.items() if one[0] >= share)
            assert found[1:] == pytest.approx(every[found.threshold])
            can = [value for value, one in every.items() if one[1] >= share]
            if can:
                chosen = choose_threshold(scores, labels, precision=share)
                assert chosen.recall == pytest.approx(max(every[value][0] for value in can))
                assert chosen.precision >= share
            else:
                with refused("precision-unreachable"):
                    choose_threshold(scores, labels, precision=share)
        best = choose_threshold(scores, labels)
        assert best.f1 == pytest.approx(max(one[2] for one in every.values()))


def test_shares_that_round(rng):
    labels = np.ones(30, bool)
    labels[0] = False
    for wanted in range(1, 30):
        found = choose_threshold(np.arange(30.0), labels, recall=wanted / 29)
        assert found.recall == wanted / 29


def test_bad_thresholds():
    for arguments, message in (
        ({"recall": 0.5, "precision": 0.5}, "threshold-goals"),
        ({"recall": 0}, "above-zero:recall"),
        ({"precision": 1.5}, "number-range:precision"),
    ):
        with refused(message):
            choose_threshold([0, 1], [0, 1], **arguments)
    with refused("labels-one-class:labels"):
        choose_threshold([0, 1], [0, 0])
    with refused("shapes-differ"):
        choose_threshold([0, 1], [0, 0, 1])
    with refused("nan", "np.isnan(scores)"):
        choose_threshold([0, np.nan], [0, 1])
    assert choose_threshold([0, np.nan, 1], [0, 1, 1], ignore=[False, True, False]).threshold == 1


@pytest.fixture(scope="module")
def streets():
    scenes = [street(96, 128, random_state=k) for k in range(4)]
    return [replace(one, name=f"s{k}").with_bags(*core_bags(one.shape, one.boxes)) for k, one in enumerate(scenes)]


def test_a_decision_on_scenes_left_out(streets):
    model = BiMIChI("mean", additivity=1).fit(streets)
    decision = decide(model, streets, recall=0.8, min_size=3, smooth=(1, 1))
    assert "a recall of 0.8, on scenes left out in 4 folds" in decision.chosen
    assert (decision.min_size, decision.smooth) == (3, (1, 1))
    lazy = Dataset([one.name for one in streets], {one.name: one for one in streets}.__getitem__)
    assert decide(model, lazy, recall=0.8, min_size=3, smooth=(1, 1)) == decision
    assert "2 folds" in decide(model, streets, n_folds=2).chosen
    found = sum(
        (object_scores(one.boxes, detect(model.fuse(one.sources), decision), overlap="smaller") for one in streets[1:]),
        object_scores(streets[0].boxes, detect(model.fuse(streets[0].sources), decision), overlap="smaller"),
    )
    assert found.recall > 0.5


def test_a_decision_where_no_scene_can_be_left_out(streets):
    model = BiMIChI("mean", additivity=1).fit(streets[0].bags())
    assert "the scenes learned from, which is optimistic" in decide(model, streets[:1]).chosen
    bare = Scene(streets[0].sources, "bare").with_bags(streets[0].segments, streets[0].labels)
    with refused("truth-missing", "'bare'"):
        decide(model, [bare])


def naive_matches(share, least):
    """The largest number of pairs, and then their largest overlap, over all ways to pair."""
    n, m = share.shape
    if n > m:
        return naive_matches(share.T, least)
    best = (0, 0.0)
    for order in permutations(range(m), n):
        pairs = [share[k, order[k]] for k in range(n) if share[k, order[k]] >= least]
        best = max(best, (len(pairs), sum(pairs)))
    return best


@pytest.mark.parametrize("overlap", ["iou", "smaller"])
def test_objects_against_all_ways_to_match(overlap, rng):
    for _ in range(30):
        targets, found = (
            np.column_stack([rng.uniform(0, 9, (n, 2)), rng.uniform(2, 9, (n, 2))]) for n in rng.integers(1, 6, 2)
        )
        share = np.empty((len(targets), len(found)))
        for (i, a), (j, b) in ((x, y) for x in enumerate(targets) for y in enumerate(found)):
            w, h = (max(0, min(a[k] + a[k + 2], b[k] + b[k + 2]) - max(a[k], b[k])) for k in (0, 1))
            areas = a[2] * a[3], b[2] * b[3]
            share[i, j] = w * h / (sum(areas) - w * h if overlap == "iou" else min(areas))
        scores = object_scores(targets, found, min_overlap=0.3, overlap=overlap)
        n = naive_matches(share, 0.3)[0]
        assert scores.n_matched == n
        assert scores.precision == n / len(found)
        assert scores.recall == n / len(targets)
        assert scores.miss_rate == 1 - n / len(targets)
        assert scores.f1 == 2 * n / (len(found) + len(targets))


def test_objects_by_hand():
    targets, found = [(0, 0, 10, 10), (100, 0, 10, 10)], [(0, 0, 10, 10), (1, 0, 10, 10), (50, 50, 10, 10)]
    one = object_scores(targets, found)
    assert (one.n_matched, one.precision, one.miss_rate) == (1, 1 / 3, 0.5)  # a target counts once
    assert object_scores(targets, found, ignore=[(45, 45, 20, 20)]).precision == 0.5
    both = one + object_scores(targets, targets)
    assert (both.n_targets, both.n_detections, both.n_matched) == (4, 5, 3)
    empty = object_scores([], [])
    assert np.isnan([empty.precision, empty.recall, empty.miss_rate, empty.f1]).all()
    assert object_scores(targets, []).recall == 0
    for call, message in (
        (lambda: object_scores(targets, found, min_overlap=0), "min-overlap:min_overlap"),
        (lambda: object_scores(targets, found, overlap="all"), "choice:overlap"),
        (lambda: object_scores([(0, 0, 1)], found), "boxes-shape:targets"),
        (lambda: object_scores(targets, [(0, 0, 0, 1)]), "boxes-shape:detections"),
    ):
        with refused(message):
            call()
