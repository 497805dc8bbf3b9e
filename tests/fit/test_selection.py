from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from bimichi import Bags, ConvexSolver, choquet
from bimichi.evaluate.metrics import auc, average_precision
from bimichi.fit.calibrate import platt
from bimichi.fit.candidates import (
    Candidate,
    best_sources,
    check_candidates,
    default_candidates,
    source_links,
    with_sources,
)
from bimichi.fit.choose import Contender, Selection, simplest_of_best
from bimichi.fit.direction import make_folds, shown_spread, spread
from bimichi.fit.engine import Row, _leave_behind
from bimichi.fit.objectives import get_objective
from bimichi.fit.train import Training, fit_measure, reduce_bags
from bimichi.scenes.sample import Sample, rank, sample_pixels


def test_ranking_is_that_of_the_metrics_also_with_shares(rng):
    targets, others = rng.integers(0, 20, 60) / 20 + 0.2, rng.integers(0, 20, 300) / 20
    truth, fused = np.repeat([1, 0], [60, 300]), np.concatenate([targets, others])
    found = rank(targets, others.copy())
    assert found.ap == pytest.approx(average_precision(truth, fused))
    assert found.auc == pytest.approx(auc(truth, fused))
    tripled = rank(targets, others.copy(), 3.0)
    truth, fused = np.repeat([1, 0], [60, 900]), np.concatenate([targets, np.tile(others, 3)])
    assert tripled.ap == pytest.approx(average_precision(truth, fused))
    assert tripled.auc == pytest.approx(auc(truth, fused))
    assert np.isnan(rank(targets, np.empty(0)).ap)


def test_samples_stand_for_all_pixels(rng):
    rows, labels = rng.normal(size=(50, 60, 2)), np.full((50, 60), -1, np.int8)
    labels[:5, :10], labels[10:12] = 1, 0
    sample = sample_pixels("s", rows, labels, 100)
    assert [len(sample.targets), len(sample.others)] == [50, 100]
    assert sample.shares == (1.0, (3000 - 50 - 120) / 100)
    few = sample.few(25)
    assert few.shares == pytest.approx((2.0, 2830 / 25))
    bags = few.as_bags()
    assert bags.counts[:25].sum() == pytest.approx(50)
    assert bags.counts[25:].sum() == pytest.approx(2830)


def test_folds_are_blocks_of_neighbours_with_targets():
    rows = np.zeros((2, 1))
    samples = [Sample(str(k), rows if k != 2 else rows[:0], rows) for k in range(7)]
    assert [block.tolist() for block in make_folds(samples, 3)] == [[0, 1], [3, 4], [5, 6]]
    assert len(make_folds(samples, 10)) == 6
    assert make_folds([samples[2]], 3) == []


def test_platt_recovers_a_line_and_needs_one_that_rises(rng):
    x = rng.normal(0, 1, 40_000)
    y = rng.random(40_000) < 1 / (1 + np.exp(-(3 * x - 2)))
    link = platt([(x[y], x[~y], (1.0, 1.0))])
    assert (link.slope, link.offset) == pytest.approx((3, -2), abs=0.12)
    assert link.base_rate == pytest.approx(y.mean())
    half = platt([(x[y], x[~y][::2], (1.0, 2.0))])
    assert (half.slope, half.offset) == pytest.approx((link.slope, link.offset), abs=0.15)
    assert platt([(-x[y], -x[~y], (1.0, 1.0))]) is None
    assert np.isfinite(platt([(np.ones(50), -np.ones(50), (1.0, 1.0))]).slope)


def row(name, ap, **parameters):
    return Row(name, parameters, np.array(ap), np.array(ap))


def test_the_simplest_of_equally_good_candidates_is_taken():
    two = row("2", [0.6, 0.5, 0.7], objective="logistic", additivity=2)
    one = row("1", [0.55, 0.52, 0.68], objective="logistic", additivity=1)
    squares = row("m", [0.56, 0.52, 0.68], objective="mean", additivity=1)
    worse = row("w", [0.4, 0.3, 0.5], objective="mean", additivity=1)
    source = row("s", [0.65, 0.45, 0.69], source=0, sign=1)
    assert simplest_of_best([worse, two, source]) == 1
    assert simplest_of_best([worse, two, squares, one, source]) == 3
    averaged = row("averaged", [0.5, 0.62, 0.65], objective="logistic", additivity=1, averaged=True)
    assert simplest_of_best([worse, two, squares, one, averaged, source]) == 4
    ranked = {"objective": "logistic", "additivity": 1, "sources": "rarity", "labels": "cores"}
    assert simplest_of_best([two, row("r", [0.62, 0.48, 0.71], **ranked)]) == 0
    assert simplest_of_best([two, row("r", [0.64, 0.55, 0.74], **ranked)]) == 1
    assert simplest_of_best([worse, squares, row("s", [0.7, 0.7, 0.7], source=0, sign=1)]) == 2


def test_candidates_that_are_clearly_behind_are_left_out_of_the_other_folds():
    kind = {"objective": "mean", "additivity": 1}

    def rows(*scores):
        return [Row(str(k), kind, np.array(ap), np.array(ap)) for k, ap in enumerate(scores)]

    found = rows([0.9, 0.8, 0.7, 0.8], [0.6, 0.5, 0.41, 0.5], [0.91, 0.6, 0.72, 0.7], [])
    found[3].problem = "failed"
    assert _leave_behind(found, 2, 5) == [found[1]]
    assert found[1].problem == "clearly behind after 2 of 5 folds"
    assert [row.problem for row in found[::2]] == ["", ""]
    assert _leave_behind(rows([0.9, 0.8, 0.7], [0.1, 0.0, 0.0]), 2, 3) == []  # too few scenes to say
    later = rows([0.5, 0.4, 0.3, 0.4, 0.2, 0.3], [0.9, 0.8, 0.7, 0.8])  # the second one's scenes were easier
    assert simplest_of_best(later) == 0


def test_the_outcome_in_words_and_as_data():
    def contender(name, source, *ap):
        return Contender(name, source, ap, ap)

    rows = (contender("mean", False, 0.5, 0.7), contender("source a", True, 0.3, 0.49))
    found = Selection(rows, 0, ("x", "y"), 2)
    assert found.warning() == ""
    assert "Chose mean: average precision 0.600 ± 0.100 on 2 scenes" in found.sentence()
    assert Selection.from_dict(found.to_dict()) == found
    close = Selection((contender("mean", False, 0.5, 0.3), contender("source a", True, 0.3, 0.45)), 0, ("x", "y"), 2)
    assert close.warning().startswith("Source a alone is about as good: the fusion gains +0.025 ± 0.175")
    assert "chosen" in found.table().to_text()
    parts = Selection(rows, 0, ("one, part 1", "one, part 2"), 2, weak=("a",))
    assert "on 2 parts of the data that it had not learned from" in parts.sentence()
    assert parts.weakness().startswith("a alone, with the sign used, ranks targets below the rest")
    assert "Consider leaving them out" in replace(parts, weak=("a", "b")).weakness()
    assert found.weakness() == ""
    for wrong in ({}, found.to_dict() | {"chosen": 7}, found.to_dict() | {"contenders": [{"name": 1}]}, None):
        with refused("model-selection"):
            Selection.from_dict(wrong)
    assert shown_spread(spread([1.0])) == "1.000"


def test_candidates():
    assert [one.name for one in default_candidates(30, False, False)] == [
        "mean, 1-additive",
        "logistic, 1-additive",
        "logistic, 1-additive, with best sources",
    ]
    assert Candidate("bipolar") in default_candidates(4, True, True)
    assert check_candidates([{"objective": "mean"}]) == [Candidate("mean")]
    with refused("candidate-rarity"):
        Candidate("mean", 1, "rarity")
    with refused("choice:objective"):
        Candidate("best")
    for options in (("mean", 1), ("logistic", None)):
        with refused("candidate-averaged"):
            Candidate(*options, averaged=True)


@pytest.mark.parametrize("additivity", [1, 2])
def test_an_average_with_sources_is_one_measure(rng, additivity):
    X = rng.uniform(-1, 1, (4000, 3))
    y = rng.random(4000) < 1 / (1 + np.exp(-(3 * X[:, 0] + 2 * X[:, 1] - 2)))
    bags = Bags.from_instances(X, y, np.arange(4000))
    objective = get_objective("logistic", additivity=additivity)
    problem = Training([reduce_bags(bags, objective, "all")]).problem(objective, "all")
    plain = fit_measure(problem, ConvexSolver(), names=["a", "b", "c"])
    found = with_sources(plain, objective, source_links([bags], [0, 1]))

    def log_odds(result):
        return result.solution.link.log_odds(choquet(X, result.measure))

    alone = [platt([(X[y, k], X[~y, k], (1.0, 1.0))]).log_odds(X[:, k]) for k in (0, 1)]
    assert log_odds(found) == pytest.approx((log_odds(plain) + np.mean(alone, axis=0)) / 2, abs=1e-6)
    assert found.solution.averaged == (0, 1)
    assert plain.solution.averaged == ()
    inverted = Bags.from_instances(-X, y, np.arange(4000))
    assert with_sources(plain, objective, source_links([inverted], [0])) is plain


def test_sources_as_good_as_the_best_take_part():
    scores = np.array([[0.9, 0.2, 0.8, 0.7], [0.5, 0.1, 0.7, 0.3], [0.8, 0.1, 0.6, 0.6]])
    assert best_sources(scores) == [0, 2]
    assert best_sources(scores[:1]) == [0]  # from one scene, nothing is known about the others
