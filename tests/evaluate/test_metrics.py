from itertools import product

import numpy as np
import pytest
from refusals import refused
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from bimichi.evaluate.metrics import auc, average_precision, best_f1, rmse, scores


def naive(truth, fused):
    """AUC over all pairs, average precision and best F1 over all thresholds; plain loops."""
    targets = [f for t, f in zip(truth, fused, strict=True) if t]
    others = [f for t, f in zip(truth, fused, strict=True) if not t]
    pairs = [(t > o) + (t == o) / 2 for t in targets for o in others]
    precision_sum, recall, best = 0.0, 0.0, (-1.0, None)
    for threshold in sorted(set(fused), reverse=True):
        hits = sum(f >= threshold for f in targets)
        alarms = sum(f >= threshold for f in others)
        precision_sum += (hits / len(targets) - recall) * hits / (hits + alarms)
        recall = hits / len(targets)
        best = max(best, (2 * hits / (hits + alarms + len(targets)), threshold))
    return sum(pairs) / len(pairs), precision_sum, *best


def test_every_small_map_against_plain_loops():
    for truth in product([0, 1], repeat=4):
        if len(set(truth)) == 1:
            continue
        for fused in product([-1.0, 0.25, 1.0], repeat=4):
            area, precision, f1, threshold = naive(truth, fused)
            found = scores(truth, fused)
            assert found.auc == pytest.approx(area, abs=1e-15)
            assert found.average_precision == pytest.approx(precision, abs=1e-15)
            assert (found.best_f1, found.threshold) == (f1, threshold)
            assert (found.n, found.share) == (4, sum(truth) / 4)


MAPS = {
    "few ties": lambda rng, truth: np.round(np.clip(rng.normal(-0.5, 0.4, truth.shape) + 0.7 * truth, -1, 1), 5),
    "float32": lambda rng, truth: np.round(rng.normal(-0.5, 0.4, truth.shape) + 0.7 * truth, 4).astype(np.float32),
    "many ties": lambda rng, truth: np.round(np.clip(rng.normal(-0.5, 0.4, truth.shape) + 0.3 * truth, -1, 1), 1),
    "two values": lambda rng, truth: np.where(rng.random(truth.shape) < 0.2 + 0.5 * truth, 1.0, -1.0),
    "constant": lambda rng, truth: np.full(truth.shape, -1.0),
    "signed zeros": lambda rng, truth: rng.choice([-0.0, 0.0], truth.shape),
    "whole numbers": lambda rng, truth: rng.integers(-1, 2, truth.shape),
    "bool": lambda rng, truth: rng.random(truth.shape) < 0.3 + 0.4 * truth,
    "perfect": lambda rng, truth: np.where(truth, 1.0, -1.0),
    "inverted": lambda rng, truth: np.where(truth, -1.0, 1.0),
}


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("n_targets", [1, 60, 3000, 5999])
def test_against_scikit_learn(kind, n_targets, rng):
    truth = rng.permutation(np.arange(6000) < n_targets).reshape(60, 100)
    fused = MAPS[kind](rng, truth)
    ignore = rng.random(truth.shape) < 0.1
    ignore.flat[np.flatnonzero(truth)[0]] = ignore.flat[np.flatnonzero(~truth)[0]] = False
    for mask, seen in ((None, slice(None)), (ignore, ~ignore)):
        t, f = truth[seen].ravel(), fused[seen].ravel()
        assert auc(truth, fused, mask) == pytest.approx(roc_auc_score(t, f), abs=1e-12)
        assert average_precision(truth, fused, mask) == pytest.approx(average_precision_score(t, f), abs=1e-12)
        precision, recall, _ = precision_recall_curve(t, f)
        value, threshold = best_f1(truth, fused, mask)
        assert value == pytest.approx((2 * precision * recall / (precision + recall).clip(1e-300)).max(), abs=1e-12)
        reached = f >= threshold
        assert value == pytest.approx(2 * (reached & t).sum() / (reached.sum() + t.sum()), abs=1e-15)


def test_only_the_order_matters_to_the_ranking_scores(rng):
    truth = rng.random(500) < 0.3
    fused = np.round(rng.normal(truth, 1.0), 1)
    for score in (auc, average_precision, lambda t, f: best_f1(t, f)[0]):
        assert score(truth, np.exp(fused)) == score(truth, fused)
    assert auc(truth, -fused) == pytest.approx(1 - auc(truth, fused), abs=1e-15)


def test_what_differs_by_rounding_alone_is_a_tie(rng):
    truth = rng.random(2000) < 0.3
    levels = np.round(rng.uniform(-1, 1, 60), 4)
    fused = levels[rng.integers(0, 60, 2000)]
    expected = scores(truth, fused)
    for noise in (3e-7, 1e-9, 1e-16):
        near = fused * (1 + rng.uniform(-noise, noise, 2000))
        for kind in (np.float32, np.float64):
            found = scores(truth, near.astype(kind))
            assert found[:3] == expected[:3]
            assert (near.astype(kind) >= found.threshold).sum() == (fused >= expected.threshold).sum()


def test_values_of_a_small_or_wide_range_are_told_apart(rng):
    truth = rng.random(500) < 0.3
    fused = np.round(rng.normal(truth, 1.0), 2)
    for factor in (1e-12, 1e12):
        assert auc(truth, fused * factor) == auc(truth, fused)
    assert auc([0, 1, 0, 1], [1e-3, 2e-3, -1e300, 1e300]) == 1.0
    assert auc([0, 1], np.nextafter(np.float32(0.3), [0, 1], dtype=np.float32)) == 0.5  # a map of one value


def test_probabilities_have_the_scores_of_their_log_odds(rng):
    truth = rng.random(20_000) < 0.05
    log_odds = rng.normal(np.where(truth, -7, -11), 2.5)  # most probabilities are below 1e-4
    fused = 1 / (1 + np.exp(-log_odds))
    assert auc(truth, fused) == pytest.approx(auc(truth, log_odds), abs=2e-4)
    assert average_precision(truth, fused) == pytest.approx(average_precision(truth, log_odds), abs=1e-6)


def test_many_values_without_a_gap_stay_ranked(rng):
    truth = rng.random(300_000) < 0.5
    fused = (np.arange(300_000) + 60_000 * truth) / 1e7 - 0.5  # steps of 1e-7
    assert auc(truth, fused) == pytest.approx(roc_auc_score(truth, fused), abs=1e-4)


def test_infinities_rank_as_such():
    assert auc([0, 1, 0], [-np.inf, np.inf, 0.0]) == 1.0
    assert best_f1([0, 1, 0], [-np.inf, np.inf, 0.0]) == (1.0, np.inf)


def test_rmse_against_a_plain_loop(rng):
    truth = rng.random((20, 30)) < 0.2
    fused = rng.uniform(-1, 1, truth.shape).astype(np.float32)
    total = sum((float(f) - (1 if t else -1)) ** 2 for t, f in zip(truth.flat, fused.flat, strict=True))
    assert rmse(truth, fused, (-1, 1)) == pytest.approx(np.sqrt(total / truth.size), abs=1e-14)
    assert rmse(truth, (fused.astype(float) + 1) / 2, (0, 1)) == pytest.approx(np.sqrt(total / truth.size), abs=1e-14)
    ignore = rng.random(truth.shape) < 0.5
    assert rmse(truth, fused, (-1, 1), ignore) == rmse(truth[~ignore], fused[~ignore], (-1, 1))


def test_rmse_of_maps_that_say_nothing(rng):
    truth = rng.permutation(np.arange(10_000) < 121)
    empty = np.full(truth.shape, -1.0)
    assert rmse(truth, empty, (-1, 1)) == pytest.approx(2 * np.sqrt(0.0121))
    assert rmse(truth, np.zeros(truth.shape), (0, 1)) == rmse(truth, empty, (-1, 1))
    assert rmse(truth, np.zeros(truth.shape), (-1, 1)) == 1.0
    assert average_precision(truth, empty) == scores(truth, empty).share == 0.0121


@pytest.mark.parametrize("one_class", [0, 1, True, False, -1])
def test_rmse_needs_one_class_only(one_class):
    fused = np.full(5, 0.5)
    assert rmse(np.full(5, one_class), fused, (0, 1)) == 1.0
    for score in (auc, average_precision, best_f1, scores):
        with refused("truth-one-class"):
            score(np.full(5, one_class), fused)


def test_scores_are_those_of_each_function_and_inputs_stay(rng):
    truth = rng.random((40, 50)) < 0.1
    fused = np.round(rng.uniform(0, 1, truth.shape), 2)
    ignore = rng.random(truth.shape) < 0.2
    before = truth.copy(), fused.copy(), ignore.copy()
    found = scores(truth, fused, (0, 1), ignore)
    assert found.auc == auc(truth, fused, ignore)
    assert found.average_precision == average_precision(truth, fused, ignore)
    assert (found.best_f1, found.threshold) == best_f1(truth, fused, ignore)
    assert found.rmse == rmse(truth, fused, (0, 1), ignore)
    assert (found.n, found.share) == ((~ignore).sum(), truth[~ignore].mean())
    assert all(np.array_equal(a, b) for a, b in zip(before, (truth, fused, ignore), strict=True))


def test_every_way_to_write_truth(rng):
    truth = rng.random((8, 9)) < 0.4
    fused = rng.uniform(-1, 1, truth.shape)
    wanted = scores(truth, fused)
    signs = 2 * truth.astype(np.int8) - 1
    for written in (truth.astype(int), truth.astype(np.uint8), signs.astype(float), signs.tolist()):
        assert scores(written, fused) == wanted
    ignore = np.zeros(truth.shape, bool)
    ignore[0] = True
    marked = truth.astype(float)
    marked[0] = np.nan
    holed = np.where(ignore, np.nan, fused)
    assert scores(marked, holed, ignore=ignore) == scores(truth, fused, ignore=ignore)


T, F = [0, 1, 1], [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auc([0, 1], F), "shapes-differ"),
        (lambda: auc([0, 1, 2], F), "labels-binary:truth"),
        (lambda: auc([-1, 0, 1], F), "labels-binary"),
        (lambda: auc([0.0, np.nan, 1.0], F), "labels-binary"),
        (lambda: auc(["a", "b", "b"], F), "real-numbers:truth"),
        (lambda: auc(T, [1j, 0, 0]), "real-numbers:fused"),
        (lambda: auc(T, [[1], [0, 1], [0]]), "array-unreadable:fused"),
        (lambda: auc(T, np.ma.masked_array(F, [0, 0, 1])), "masked-array:fused"),
        (lambda: auc([], []), "nothing-to-score"),
        (lambda: rmse(T, F, (0, 1), [True] * 3), "nothing-to-score"),
        (lambda: auc(T, F, [0, 0, 1]), "ignore-shape:ignore"),
        (lambda: auc(T, F, [True]), "ignore-shape"),
        (lambda: scores(T, [np.nan, np.nan, 0.0]), "nan"),
        (lambda: best_f1(T, [0.0, np.nan, 0.0], [True, False, False]), "nan"),
        (lambda: rmse(T, F, (0, 2)), "output-range:output_range"),
        (lambda: rmse(T, F, 1), "output-range:output_range"),
        (lambda: rmse(T, F, (0, 0.5, 1)), "output-range:output_range"),
        (lambda: rmse(T, F, ("a", "b")), "output-range:output_range"),
        (lambda: rmse(T, [0.1, 0.2, -0.5], (0, 1)), "output-range-exceeded:fused"),
        (lambda: scores(T, [0.1, 0.2, 1.5]), "output-range-exceeded:fused"),
        (lambda: scores(T, [0.1, 0.2, np.inf]), "output-range-exceeded:fused"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()


def test_rounding_may_leave_the_range():
    assert rmse([0, 1], [-1 - 9e-7, 1 + 9e-7], (-1, 1)) == pytest.approx(9e-7)
    with refused("output-range-exceeded"):
        rmse([0, 1], [-1 - 2e-6, 1], (-1, 1))
