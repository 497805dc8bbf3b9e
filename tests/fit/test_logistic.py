"""The logistic objective: its optimum and certificate, its limits, weights, parts and clusters."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from samples import probable_rows, probable_scenes, uninformative_rows, weighted_rows
from scipy.optimize import minimize

from bimichi import BiMIChI, linear_form
from bimichi.fit.objectives import get_objective
from bimichi.fit.problem import InMemory
from bimichi.fit.solvers import ConvexSolver, descent
from bimichi.fit.train import fit_measure, problem_in_memory
from bimichi.measures.lattice import pair_lattice
from bimichi.scenes.bags import Bags

ADDITIVITIES = (None, 1, 2)


def loss(f, y, weight=1.0):
    return float((weight * (np.logaddexp(0, f) - y * f)).sum())


def test_two_sources_reach_the_minimum_that_a_general_solver_finds():
    X, y = probable_rows(200, 2)
    codes, weights = linear_form(X)
    lattice = pair_lattice(2, zero_bound=False)
    rows = np.zeros((len(X), lattice.size))
    np.put_along_axis(rows, codes.astype(int), weights, axis=1)
    top, bottom = 4, 8  # codes of (12, empty) and (empty, 12)
    pairs = [(int(a), int(b)) for a, b in [(2, 1), (6, 3), (2, 3), (6, 1), (8, 2), (8, 6), (1, 4), (3, 4)]]
    pairs += [(2, 5), (5, 3), (6, 7), (7, 1), (8, 5), (8, 7), (5, 4), (7, 4)]

    def place(v):
        h = np.zeros(9)
        h[[1, 2, 3, 5, 6, 7]], h[top], h[bottom] = v[:6], v[6], -v[6]
        return h

    order = [{"type": "ineq", "fun": lambda v, a=a, b=b: place(v)[b] - place(v)[a]} for a, b in pairs]
    found = minimize(lambda v: loss(rows @ place(v) + v[7], y), np.array([0.0] * 6 + [1, 0]), constraints=order)
    solution = BiMIChI("logistic").fit(X, y).solution_
    assert solution.objective_value <= found.fun + 1e-6
    assert solution.lower_bound <= found.fun
    assert solution.objective_value - solution.lower_bound <= 1e-5 * solution.objective_value


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_no_measure_slope_and_offset_is_below_the_bound(additivity):
    X, y = probable_rows()
    model = BiMIChI("logistic", additivity=additivity).fit(X, y)
    solution, rng = model.solution_, np.random.default_rng(1)
    assert solution.status == "converged"
    assert solution.objective_value == pytest.approx(loss(model.decision_function(X), y), rel=1e-12)
    assert 0 <= solution.objective_value - solution.lower_bound <= 1e-5 * solution.objective_value
    assert (np.diff(solution.history) <= 0).all()
    problem = InMemory(Bags.from_instances(X, y), get_objective("logistic", additivity=additivity))
    for _ in range(30):
        near = 0.9 * model.measure_.values + 0.1 * problem.space.sample(rng)
        slope, offset = model.rule_.link.slope * rng.uniform(0.8, 1.2), model.rule_.link.offset + rng.normal(0, 0.1)
        assert loss(slope * problem._instances.fuse(near) + offset, y) >= solution.lower_bound


def test_the_zero_bound_is_kept_where_it_is_asked_for():
    X, y = probable_rows()
    objective = replace(get_objective("logistic"), zero_bound=True)
    bound = fit_measure(problem_in_memory(Bags.from_instances(X, y), objective), ConvexSolver())
    free = BiMIChI("logistic").fit(X, y)
    assert bound.measure.zero_bound
    assert bound.measure.is_monotone(0)
    assert bound.solution.objective_value >= free.objective_value_ - 1e-9
    assert bound.solution.objective_value - bound.solution.lower_bound <= 1e-5 * bound.solution.objective_value


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_weights_count_as_repetitions_do_and_bags_as_their_instances(additivity):
    (X, y, weight), times = weighted_rows(150)
    weighted = BiMIChI("logistic", additivity=additivity).fit(X, y, sample_weight=weight)
    repeated = BiMIChI("logistic", additivity=additivity).fit(*times)
    assert weighted.objective_value_ == pytest.approx(repeated.objective_value_, rel=1e-7)
    np.testing.assert_allclose(weighted.fuse(X), repeated.fuse(X), atol=1e-3)
    order = np.argsort(y, kind="stable")
    ids = np.where(y[order], 100, 0) + np.arange(len(X)) % 7
    in_bags = BiMIChI("logistic", additivity=additivity).fit(X[order], y[order], ids)
    alone = BiMIChI("logistic", additivity=additivity).fit(X, y)
    assert in_bags.objective_value_ == pytest.approx(alone.objective_value_, rel=1e-7)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_sources_without_information_give_the_base_rate(additivity):
    X, y = uninformative_rows()
    model = BiMIChI("logistic", additivity=additivity).fit(X, y)
    np.testing.assert_allclose(model.fuse(X), 0.25, atol=1e-4)
    constant = BiMIChI("logistic", additivity=additivity).fit(np.zeros((80, 2)), y)
    np.testing.assert_allclose(constant.fuse([[0.0, 0.0]]), 0.25, atol=1e-6)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_classes_that_can_be_separated_end_within_the_limit_of_the_slope(additivity):
    X = np.array([[0.9, 0.8], [0.7, 0.9], [-0.5, -0.9], [-0.8, -0.6]])
    model = BiMIChI("logistic", additivity=additivity).fit(X, [1, 1, 0, 0])
    assert model.predict(X).tolist() == [1, 1, 0, 0]
    assert model.rule_.link.slope <= 100
    assert 0 <= model.objective_value_ < 1e-6
    assert model.solution_.lower_bound <= model.objective_value_


def test_one_class_alone_is_refused_in_words():
    with refused("one-class"):
        BiMIChI("logistic").fit(np.zeros((3, 2)), [1, 1, 1])


def test_a_search_is_refused_as_it_learns_no_link():
    X, y = probable_rows(50)
    with refused("solver-free-scale", "solver='convex'"):
        BiMIChI("logistic", solver="evolutionary").fit(X, y)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_parts_give_what_all_data_at_once_give(additivity):
    from bimichi import join_bags

    given = probable_scenes()
    whole = BiMIChI("logistic", additivity=additivity).fit(join_bags(given))
    parts = BiMIChI("logistic", additivity=additivity).fit(given)
    assert parts.objective_value_ == pytest.approx(whole.objective_value_, rel=1e-9)
    X = probable_rows(50)[0]
    np.testing.assert_allclose(parts.fuse(X), whole.fuse(X), atol=1e-6)


@pytest.mark.parametrize("additivity", ADDITIVITIES)
def test_second_derivatives_of_some_instances_lead_to_the_same_minimum(additivity, monkeypatch):
    X, y = probable_rows(3000)
    exact = BiMIChI("logistic", additivity=additivity).fit(X, y)
    monkeypatch.setattr(descent, "SAMPLE", 200)
    sampled = BiMIChI("logistic", additivity=additivity).fit(X, y)
    assert sampled.objective_value_ == pytest.approx(exact.objective_value_, rel=1e-8)
    assert sampled.solution_.lower_bound == pytest.approx(exact.objective_value_, rel=1e-4)


def test_polarity_is_learned_for_an_inverted_source():
    X, y = probable_rows(600)
    ids = np.arange(600) // 4 * 2 + y
    inverted = X * [1, -1, 1]
    model = BiMIChI("logistic", polarity="learn").fit(inverted, y, ids)
    assert model.rule_.inverted in ((), ("2",))
    assert model.objective_value_ <= BiMIChI("logistic").fit(inverted, y, ids).objective_value_ + 1e-9


def test_threads_change_nothing():
    X, y = probable_rows(2000)
    one, two = (BiMIChI("logistic", n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.measure_.values, two.measure_.values)
    assert one.rule_.link == two.rule_.link
