"""The convex solver: as good as brute force, with a bound, whatever the starts and weights."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from problems import check_solution, tiny

from bimichi import Bags, BiCapacity, ConvexSolver, EvolutionarySolver
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces.base import Program


def brute_force(problem):
    """Minimum over all choices of witnesses, each by a QP over all elements and all rows."""
    form, lattice, data = problem.objective.convex, problem.space.lattice, problem.table
    size, n_bags = lattice.size, len(problem.labels)
    rows = sp.csr_array(
        (data.weights.ravel(), data.codes.ravel(), np.arange(0, data.codes.size + 1, data.codes.shape[1])),
        shape=(len(data.codes), size),
    ).toarray()
    bag = np.repeat(np.arange(n_bags), np.diff(data.offsets))
    lower, upper = lattice.covers()
    order = np.zeros((len(lower), size))
    order[np.arange(len(lower)), lower] = 1
    order[np.arange(len(lower)), upper] -= 1
    fixed = {code: value for code, value in lattice.fixed.items() if code or lattice.zero_bound}
    boundary = np.zeros((len(fixed), size))
    boundary[np.arange(len(fixed)), list(fixed)] = 1
    negative = [
        (sign * rows[i], -np.eye(n_bags)[bag[i]], -offset)
        for i in range(len(rows))
        if not problem.labels[bag[i]]
        for sign, offset in form.negative
    ]
    choices = [
        [(i, sign) for i in np.flatnonzero(bag == b) for sign in form.positive] for b in np.flatnonzero(problem.labels)
    ]
    best = np.inf
    for chosen in itertools.product(*choices):
        equal = [np.hstack([boundary, np.zeros((len(fixed), n_bags))])]
        targets = list(fixed.values())
        for i, sign in chosen:
            equal.append(np.hstack([sign * rows[i], np.eye(n_bags)[bag[i]]])[None])
            targets.append(1.0)
        below = [np.hstack([order, np.zeros((len(order), n_bags))])]
        below += [np.hstack([left, right])[None] for left, right, _ in negative]
        limits = [*np.zeros(len(order)), *(limit for *_, limit in negative)]
        program = Program(size + n_bags)
        for add, parts, right in ((program.equal, equal, targets), (program.below, below, limits)):
            block = np.vstack(parts)
            add(np.array(right), (*np.nonzero(block), block[np.nonzero(block)]))
        P = sp.csc_matrix(np.diag(np.concatenate([np.zeros(size), 2 * problem.weights])))
        answer = program.solve(P, np.zeros(size + n_bags))
        best = min(best, answer[1])
    return best


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("name", ["bipolar", "magnitude"])
@pytest.mark.parametrize("seed", range(5))
def test_convex_equals_brute_force(name, m, seed):
    problem = InMemory(tiny(seed, m), get_objective(name))
    solution = ConvexSolver(n_starts=40).solve(problem, np.random.default_rng(seed))
    assert solution.objective_value == pytest.approx(brute_force(problem), abs=1e-6)
    check_solution(problem, solution)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["bipolar", "magnitude"]), st.integers(1, 4))
def test_J_never_rises_and_meets_its_bound(seed, name, m):
    problem = InMemory(tiny(seed, m), get_objective(name))
    solution = ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(seed))
    assert (np.diff(solution.history) <= 1e-8).all()
    assert solution.status == "converged"
    assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-6)
    assert solution.objective_value <= solution.starts.min() + 1e-12
    check_solution(problem, solution)


@pytest.mark.slow
def test_starts_that_meet_each_other_in_turn_still_end(rng):
    """Bags like those of examples/learn_from_bags.py, where two starts once stopped for one another."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(30), 20)
        X = np.clip(rng.normal([-0.5, 0.4, 0.0], 0.2, (len(ids), 3)), -1, 1)
        hits = (ids % 3 == 0) & (rng.random(len(ids)) < 0.2)
        X[hits] = np.clip(rng.normal([0.7, -0.6, 0.0], 0.2, (int(hits.sum()), 3)), -1, 1)
        problem = InMemory(Bags.from_instances(X, ids % 3 == 0, ids), OBJECTIVES["bipolar"])
        solution = ConvexSolver().solve(problem, rng)
        assert solution.status == "converged"
        assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-6)
        assert solution.objective_value <= solution.starts.min() + 1e-9


def random_bags(seed, weight=1.0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(12), 6)
    return Bags.from_instances(rng.uniform(-1, 1, (72, 3)), ids % 3 == 0, ids, np.full(72, weight))


@pytest.mark.slow
def test_starts_do_not_stand_in_each_others_way():
    """Where about a third of the starts reach the best J alone, many together must."""
    problem = InMemory(random_bags(2), OBJECTIVES["bipolar"])
    found = [ConvexSolver(n_starts=40).solve(problem, np.random.default_rng(s)).objective_value for s in range(5)]
    evolved = EvolutionarySolver(patience=None).solve(problem, np.random.default_rng(0)).objective_value
    assert np.ptp(found) < 1e-6
    assert max(found) <= evolved + 1e-9


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scale_of_the_weights_does_not_matter(name):
    def relative(weight):
        problem = InMemory(random_bags(0, weight), get_objective(name))
        solution = ConvexSolver().solve(problem, np.random.default_rng(0))
        assert solution.lower_bound == pytest.approx(solution.objective_value, rel=1e-6)
        return solution.objective_value / weight

    assert relative(1e-9) == pytest.approx(relative(1.0), rel=1e-6)
    assert relative(1e9) == pytest.approx(relative(1.0), rel=1e-6)


def test_no_bound_is_claimed_before_convergence():
    solution = ConvexSolver(n_starts=1, max_rounds=1).solve(
        InMemory(random_bags(1), OBJECTIVES["bipolar"]), np.random.default_rng(0)
    )
    assert solution.status == "max_rounds"
    assert solution.lower_bound is None


def test_witnesses_are_numbered_as_the_user_does(rng):
    X = rng.uniform(-0.4, 0.4, (40, 2))
    ids, y = np.arange(40) % 4, (np.arange(40) % 4 == 1).astype(int)
    X[21] = [0.9, 0.8]
    solution = ConvexSolver().solve(InMemory(Bags.from_instances(X, y, ids), OBJECTIVES["bipolar"]), rng)
    assert solution.witnesses.tolist() == [21]


def test_mean_is_one_exact_qp(rng):
    parts = [rng.uniform(-1, 1, (20, 3)) for _ in range(8)]
    problem = InMemory(Bags.from_list(parts, np.arange(8) < 3), OBJECTIVES["mean"])
    solution = ConvexSolver().solve(problem, rng)
    assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-7)
    for _ in range(200):
        other = BiCapacity.random(3, False, rng).values
        for step in (1.0, 0.1, 0.01):
            assert problem.value(solution.values + step * (other - solution.values)) >= solution.objective_value - 1e-9
