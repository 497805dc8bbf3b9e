import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from refusals import refused

from bimichi import Bags, BiCapacity, BiMIChI, ConvexSolver, choquet, usage_counts
from bimichi.fit.objectives import CAPACITY_OBJECTIVES, OBJECTIVES
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces.base import OrderedPairs, Program, completion_of, highest_below, limits, lowest_above
from bimichi.fit.spaces.elements import minimise_in_order
from bimichi.measures.lattice import pair_lattice, subset_lattice

LATTICES = [pair_lattice(3), pair_lattice(3, zero_bound=False), subset_lattice(5)]
lattices = st.sampled_from(LATTICES)
seeds = st.integers(0, 2**32 - 1)


def some_known(lattice, seed):
    """Values of some elements, ties among them, in no order."""
    rng = np.random.default_rng(seed)
    known = np.full(lattice.size, np.nan)
    which = rng.permutation(lattice.size)[: int(rng.integers(1, lattice.size))]
    known[which] = rng.integers(-4, 5, len(which)) / 4
    return known


def correlated(m, n_bags, size, seed=0):
    """Bags of noisy views of two fields; a fifth of the instances of some are targets."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_bags), size)
    X = rng.normal(0, 0.4, (len(ids), 2)) @ rng.normal(0, 0.7, (2, m)) - 0.2 + rng.normal(0, 0.2, (len(ids), m))
    hits = (ids % 3 == 0) & (rng.random(len(ids)) < 0.2)
    X[hits] = 0.5 * X[hits] + np.resize([0.7, 0.5, -0.2, 0.3], m)
    return np.clip(X, -1, 1), (ids % 3 == 0).astype(int), ids


@settings(max_examples=60)
@given(lattices, seeds)
def test_sweeps_name_where_the_bounds_come_from(lattice, seed):
    known = some_known(lattice, seed)
    given_codes = np.array([c for c in np.flatnonzero(~np.isnan(known)) if c or lattice.zero_bound], dtype=int)
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    for code in range(1, lattice.size):
        below = known[given_codes[lattice.less_equal(given_codes, code)]]
        above = known[given_codes[lattice.less_equal(code, given_codes)]]
        assert low[code] == below.max(initial=-np.inf)
        assert high[code] == above.min(initial=np.inf)
        if len(below):
            assert known[lower[code]] == low[code]
            assert lattice.less_equal(lower[code], code)
        if len(above):
            assert known[upper[code]] == high[code]
            assert lattice.less_equal(code, upper[code])


@pytest.mark.parametrize("lattice", LATTICES)
def test_limits_are_what_the_boundary_leaves(lattice):
    lower, upper = lattice.bounds(np.full(lattice.size, np.nan))
    codes = np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))
    low, high = limits(lattice, codes)
    assert np.array_equal(low, lower[codes])
    assert np.array_equal(high, upper[codes])


@settings(max_examples=60)
@given(lattices, seeds, st.sampled_from(["lowest", "nearest-zero", "highest"]))
def test_completions_are_monotone_and_tell_what_was_known(lattice, seed, completion):
    known = some_known(lattice, seed)
    measure = completion_of(lattice, known, completion)
    assert not lattice.violations(measure.values)[0].size
    codes = np.arange(1, lattice.size)
    assert lattice.less_equal(measure.lower[codes], codes).all()
    assert (measure.values[measure.lower[codes]] <= measure.values[codes]).all()
    if completion == "lowest":
        assert np.array_equal(measure.values[measure.lower[codes]], measure.values[codes])
    else:
        assert lattice.less_equal(codes, measure.upper[codes]).all()
        assert (measure.values[measure.upper[codes]] >= measure.values[codes]).all()


@settings(max_examples=60)
@given(lattices, seeds)
def test_order_is_found_where_it_is_broken_and_nowhere_else(lattice, seed):
    partial = some_known(lattice, seed)
    partial[list(lattice.fixed)] = np.nan
    elements = np.flatnonzero(~np.isnan(partial))
    broken = lattice.less_equal(elements[:, None], elements) & (partial[elements][:, None] > partial[elements])
    found, new = OrderedPairs(lattice).with_violated(partial, 0.0)
    assert new == broken.any()
    assert not found.with_violated(partial, 0.0)[1]
    lower, upper = found.among(elements)
    assert lattice.less_equal(elements[lower], elements[upper]).all()
    pairs = set(zip(lower.tolist(), upper.tolist(), strict=True))
    for e in np.flatnonzero(broken.any(axis=0)):
        worst = partial[elements[broken[:, e]]].max()
        assert any((low, e) in pairs and partial[elements[low]] == worst for low in np.flatnonzero(broken[:, e]))


@settings(max_examples=40)
@given(lattices, seeds)
def test_a_program_with_the_order_it_needs_equals_one_with_all_of_it(lattice, seed):
    rng = np.random.default_rng(seed)
    free = np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))
    elements = np.sort(rng.permutation(free)[: int(rng.integers(1, len(free)))])
    P, q = sp.csc_matrix(sp.identity(len(elements))), rng.normal(0, 0.7, len(elements))
    x, bound = minimise_in_order(lattice, elements, P, q, 1e-10)
    below = lattice.less_equal(elements[:, None], elements)
    np.fill_diagonal(below, False)
    whole = Program(len(elements))
    whole.below_in_order(lattice, elements, np.nonzero(below))
    expected, least = whole.solve(P, q, 1e-10)
    np.testing.assert_allclose(x, expected, atol=1e-4)  # J is flat at its minimum
    assert bound == pytest.approx(least, abs=1e-8)


def whole_program(problem, rows, signs):
    """J at best for these witnesses: every element a variable, every row a constraint, every cover in order."""
    form, lattice, data = problem.objective.convex, problem.space.lattice, problem.table
    size, n_bags = lattice.size, len(problem.labels)
    bag = np.repeat(np.arange(n_bags), np.diff(data.offsets))
    fixed = {code: value for code, value in lattice.fixed.items() if code or lattice.zero_bound}
    program = Program(size + n_bags)
    program.equal(np.array(list(fixed.values())), (np.arange(len(fixed)), list(fixed), 1.0))
    at = np.arange(len(rows))
    own = np.flatnonzero(problem.labels)
    weights = signs[:, None] * data.weights[rows]
    program.equal(np.ones(len(rows)), (at[:, None], data.codes[rows], weights), (at, size + own, 1.0))
    negative = np.flatnonzero(~problem.labels[bag])
    at = np.arange(len(negative))
    for sign, offset in form.negative:
        use = (at[:, None], data.codes[negative], sign * data.weights[negative])
        program.below(np.full(len(negative), -offset), use, (at, size + bag[negative], -1.0))
    lower, upper = lattice.covers()
    at = np.arange(len(lower))
    program.below(np.zeros(len(lower)), (at, lower, 1.0), (at, upper, -1.0))
    P = sp.csc_matrix(sp.diags_array(np.append(np.zeros(size), 2 * problem.weights)))
    return program.solve(P, np.zeros(size + n_bags), 1e-10)[1]


@pytest.mark.parametrize(
    ("objective", "m"),
    [
        (OBJECTIVES["bipolar"], 4),
        (OBJECTIVES["magnitude"], 4),
        (OBJECTIVES["bipolar"], 7),
        (OBJECTIVES["magnitude"], 7),
        (CAPACITY_OBJECTIVES["min-max"], 8),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_fit_is_that_of_all_elements_all_rows_and_the_whole_order(objective, m):
    X, y, ids = correlated(m, 15, 8)
    if objective.measure == "capacity":
        X = (X + 1) / 2
    problem = InMemory(Bags.from_instances(X, y, ids), objective)
    solution = ConvexSolver(n_starts=3).solve(problem, np.random.default_rng(0))
    assert solution.status == "converged"
    rows = np.array([np.flatnonzero(problem.bags.instance == witness)[0] for witness in solution.witnesses])
    fused = (problem.table.weights[rows] * solution.values[problem.table.codes[rows]]).sum(axis=1)
    signs = np.where(fused >= 0, 1, -1) if objective.absolute else np.ones(len(rows))
    assert solution.objective_value == pytest.approx(whole_program(problem, rows, signs), abs=1e-7)
    assert solution.lower_bound == pytest.approx(solution.objective_value, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bipolar", "magnitude"])
def test_twelve_sources(name):
    problem = InMemory(Bags.from_instances(*correlated(12, 12, 4)), OBJECTIVES[name])
    one, two = (ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(0), n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.values, two.values)
    assert np.array_equal(one.starts, two.starts)
    assert one.status == "converged"
    assert not problem.space.lattice.violations(one.values)[0].size
    assert one.objective_value == pytest.approx(problem.value(one.values), abs=1e-12)
    assert one.objective_value == pytest.approx(one.lower_bound, abs=1e-6)
    lower, upper = problem.space.lattice.bounds(np.full(problem.space.lattice.size, np.nan))
    assert one.objective_value < 0.9 * problem.value((lower + upper) / 2)


@pytest.mark.slow
def test_fourteen_sources_from_fit_to_file(tmp_path):
    X, y, ids = correlated(14, 20, 10)
    model = BiMIChI(solver=ConvexSolver(n_starts=1)).fit(X, y, ids)
    assert model.solution_.status == "converged"
    assert np.array_equal(model.usage_["touched"], usage_counts(X))
    model.save(tmp_path / "m.bimichi")
    again = BiMIChI.load(tmp_path / "m.bimichi")
    assert isinstance(again.bicapacity_, BiCapacity)
    assert np.array_equal(again.bicapacity_.values, model.bicapacity_.values)
    assert np.array_equal(again.fuse(X), choquet(X, model.bicapacity_))


def test_least_squares_over_too_many_elements_are_refused_at_once():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 10))
    with refused("elements-many", "10", "6,561", "additivity=2"):
        BiMIChI("mean").fit(X, np.arange(3000) % 2, np.arange(3000) % 20)
    few = BiMIChI("mean").fit(X[:60], np.arange(60) % 2, np.arange(60) % 20)
    assert few.solution_.status == "converged"
