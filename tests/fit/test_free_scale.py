"""The objective `mean` with a free slope and offset: its optimum and bound, parts, weights, files and refusals."""

import numpy as np
import pytest
from refusals import refused
from samples import probable_rows, probable_scenes, uninformative_rows, weighted_rows

from bimichi import BiMIChI, FusionRule, explain, join_bags
from bimichi.fit.objectives import get_objective
from bimichi.fit.problem import InMemory
from bimichi.scenes.bags import Bags

ADDITIVITIES = (None, 1, 2)


def squares(model, X, y, share=None):
    """Return J from its definition, for instances that are their own bags."""
    return float(((model.decision_function(X) - np.where(y, 1, -1)) ** 2 * (1 if share is None else share)).sum())


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_the_sum_of_squares_is_the_least_of_all_slopes_offsets_and_measures(additivity):
    X, y = probable_rows()
    model = BiMIChI("mean", additivity=additivity, free_scale=True).fit(X, y)
    solution, rng = model.solution_, np.random.default_rng(1)
    assert solution.status == "converged"
    assert model.measure_.is_monotone(1e-9)
    assert solution.objective_value == pytest.approx(squares(model, X, y), rel=1e-10)
    assert 0 <= solution.objective_value - solution.lower_bound <= 1e-6 * solution.objective_value
    assert solution.objective_value < BiMIChI("mean", additivity=additivity).fit(X, y).objective_value_
    objective = get_objective("mean", additivity=additivity, free_scale=True)
    problem = InMemory(Bags.from_instances(X, y), objective)
    target = np.where(y, 1, -1)
    for _ in range(30):
        near = 0.9 * model.measure_.values + 0.1 * problem.space.sample(rng)
        slope, offset = solution.link.slope * rng.uniform(0.8, 1.2), solution.link.offset + rng.normal(0, 0.1)
        other = slope * problem._instances.fuse(near) + offset
        assert ((other - target) ** 2).sum() >= solution.lower_bound


def test_one_source_gives_the_line_of_least_squares():
    X = probable_rows(300, 2)[0]
    x = np.abs(X[:, :1])
    model = BiMIChI("mean", additivity=1, free_scale=True).fit(x, X[:, 0] > 0.3)
    slope, offset = np.polyfit(x[:, 0], np.where(X[:, 0] > 0.3, 1.0, -1.0), 1)
    np.testing.assert_allclose(model.rule_.training.label_line, (slope, offset), rtol=1e-5)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_parts_and_bags_give_what_all_data_at_once_give(additivity):
    given = probable_scenes()
    whole, parts = (
        BiMIChI("mean", additivity=additivity, free_scale=True).fit(some) for some in (join_bags(given), given)
    )
    assert parts.objective_value_ == pytest.approx(whole.objective_value_, rel=1e-9)
    X = probable_rows(50)[0]
    np.testing.assert_allclose(parts.fuse(X), whole.fuse(X), atol=1e-6)
    bags = join_bags(given)
    share = np.repeat(1 / np.diff(bags.offsets), np.diff(bags.offsets))
    positive = np.repeat(bags.labels, np.diff(bags.offsets))
    assert squares(whole, bags.X, positive, share) == pytest.approx(whole.objective_value_, rel=1e-9)


def test_weights_count_as_repeated_bags():
    (X, y, weight), times = weighted_rows(120)
    weighted = BiMIChI("mean", free_scale=True).fit(X, y, sample_weight=weight)
    repeated = BiMIChI("mean", free_scale=True).fit(*times)
    assert weighted.objective_value_ == pytest.approx(repeated.objective_value_, rel=1e-8)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_sources_without_information_give_the_mean_label(additivity):
    X, y = uninformative_rows()
    model = BiMIChI("mean", additivity=additivity, free_scale=True).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), -0.5, atol=1e-4)


def test_the_output_is_the_integral_and_the_line_is_kept(tmp_path):
    X, y = probable_rows()
    model = BiMIChI("mean", free_scale=True, additivity=2).fit(X, y)
    np.testing.assert_array_equal(model.fuse(X), model.integral(X))
    assert model.rule_.link is None
    assert not hasattr(model, "predict_proba")
    slope, offset = model.rule_.training.label_line
    np.testing.assert_allclose(model.decision_function(X), slope * model.fuse(X) + offset, rtol=1e-12)
    model.save(tmp_path / "model.json")
    loaded = BiMIChI.load(tmp_path / "model.json")
    assert loaded.free_scale
    assert loaded.rule_.training.label_line == (slope, offset)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    BiMIChI("mean").fit(X, y).save(tmp_path / "plain.json")
    assert FusionRule.load(tmp_path / "plain.json").training.label_line is None


def test_bootstrap_refits_with_the_free_scale():
    X, y = probable_rows(150)
    model = BiMIChI("mean", additivity=1, free_scale=True).fit(X, y)
    found = explain.bootstrap(model, X, y, n_resamples=3, random_state=0)
    assert np.isfinite(found.values).all()


def test_other_objectives_and_searches_are_refused():
    X, y = probable_rows(50)
    with refused("free-scale-objective", "free_scale=True", "objective='mean'", "'bipolar'"):
        BiMIChI("bipolar", free_scale=True).fit(X, y)
    with refused("solver-free-scale", "solver='convex'"):
        BiMIChI("mean", solver="evolutionary", free_scale=True).fit(X, y)
    one, other = (BiMIChI("logistic", free_scale=free).fit(X, y) for free in (False, True))
    assert one.rule_.link == other.rule_.link
