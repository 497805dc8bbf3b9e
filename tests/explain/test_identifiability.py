import naive
import naive_explain
import numpy as np
import pytest
from refusals import refused
from scipy.linalg import null_space
from scipy.optimize import linprog

from bimichi import BiCapacity, BiMIChI, Capacity, choquet, usage_counts
from bimichi.explain import identifiability
from bimichi.integral.linear import linear_form


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_intervals_agree_with_plain_loops(m, zero_bound, rng):
    measure = BiCapacity.random(m, zero_bound, m)
    g = naive_explain.as_dict(measure.values.tolist(), m)
    X = rng.uniform(-1, 1, (3, m))
    X[1] = 0.5
    found = identifiability(measure, X, exact=False)
    assert not found.exact
    steps = [step for x in X.tolist() for step in naive.chain(x)]
    used = {element for element, weight in steps if weight > 0}
    for pair in naive.pairs(m):
        code = naive.code(pair)
        if code == 0 and not zero_bound:
            assert found.lower[code] == found.upper[code] == 0
            continue
        expected = (g[pair], g[pair]) if pair in used else naive_explain.interval(g, used, pair, zero_bound)
        assert (found.lower[code], found.upper[code]) == expected
        assert found.used[code] == (pair in used)
        assert found.touched[code] == sum(element == pair for element, _ in steps)
        assert found.counts[code] == sum(element == pair and weight > 0 for element, weight in steps)
        assert found.weight[code] == pytest.approx(sum(weight for element, weight in steps if element == pair))


@pytest.mark.parametrize("zero_bound", [True, False])
def test_moving_within_the_interval_changes_no_output(zero_bound, rng):
    measure = BiCapacity.random(4, zero_bound, 5)
    X = rng.uniform(-1, 1, (12, 4))
    found = identifiability(measure, X, exact=False)
    fused = choquet(X, measure)
    assert found.open.sum() > 10
    assert not (found.open & found.used).any()
    for values in (found.lower, found.upper, (found.lower + found.upper) / 2):
        moved = BiCapacity(values, zero_bound=zero_bound)  # which checks the order
        np.testing.assert_allclose(choquet(X, moved), fused, atol=1e-12)
    for code in rng.choice(np.flatnonzero(found.open), 5, replace=False):
        for value in (found.lower[code], found.upper[code]):
            known = np.where(found.used, measure.values, np.nan)
            known[code] = value
            lower, upper = measure.lattice.bounds(known)
            assert (lower <= upper + 1e-12).all()


def test_a_model_knows_its_training_data(rng):
    X = rng.uniform(-5, 5, (90, 2))
    bags = np.repeat(np.arange(30), 3)
    X[bags % 2 == 1, 1] -= 4
    model = BiMIChI(polarity="learn", scale="maxabs", random_state=0).fit(X, bags % 2, bags=bags)
    trained, given = identifiability(model), identifiability(model, X, exact=False)
    assert trained.weight is None
    assert given.weight.sum() == pytest.approx(np.abs(X * model.rule_.factor).max(axis=1).sum())
    for name in ("lower", "upper", "used", "counts", "touched"):
        assert np.array_equal(getattr(trained, name), getattr(given, name))
    assert "weight " not in repr(trained).splitlines()[1]


def independent_interval(X, g, m, zero_bound, element):
    """The ends over all monotone measures with the same outputs: one dense program over all pairs of elements."""
    pairs = naive.pairs(m)
    nothing, everything = frozenset(), frozenset(range(m))
    column = {pair: k for k, pair in enumerate(pairs)}
    bounds = [(-1.0, 1.0)] * len(pairs)
    for pair, value in (((everything, nothing), 1.0), ((nothing, everything), -1.0), ((nothing, nothing), 0.0)):
        bounds[column[pair]] = (value, value)
    order = []
    for a in pairs:
        for b in pairs:
            in_order = zero_bound or (nothing, nothing) not in (a, b)
            if a != b and naive.less_equal(a, b) and in_order:
                row = np.zeros(len(pairs))
                row[column[a]], row[column[b]] = 1.0, -1.0
                order.append(row)
    equal = np.zeros((len(X), len(pairs)))
    for k, x in enumerate(X.tolist()):
        for pair, weight in naive.chain(x):
            equal[k, column[pair]] += weight
    outputs = [naive.choquet(x, g) for x in X.tolist()]
    cost = np.eye(len(pairs))[column[element]]
    ends = [
        linprog(sign * cost, A_ub=order, b_ub=np.zeros(len(order)), A_eq=equal, b_eq=outputs, bounds=bounds).x @ cost
        for sign in (1, -1)
    ]
    return ends


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (2, 4), (3, 6), (3, 25)])
@pytest.mark.parametrize("zero_bound", [True, False])
def test_exact_intervals_are_those_of_all_measures_with_the_same_outputs(m, n, zero_bound, rng):
    measure = BiCapacity.random(m, zero_bound, m)
    X = rng.uniform(-1, 1, (n, m))
    found = identifiability(measure, X)
    assert found.exact
    g = naive_explain.as_dict(measure.values.tolist(), m)
    chosen = naive.pairs(m) if m < 3 else [naive.pairs(m)[k] for k in rng.choice(27, 6, replace=False)]
    for pair in chosen:
        code = naive.code(pair)
        expected = independent_interval(X, g, m, zero_bound, pair)
        assert [found.lower[code], found.upper[code]] == pytest.approx(expected, abs=2e-6)


def test_no_measure_drawn_with_the_same_outputs_leaves_the_exact_intervals(rng):
    """A walk through the polytope from the measure, by random steps in the directions that keep all outputs."""
    measure = BiCapacity.random(3, True, 7)
    X = rng.uniform(-1, 1, (5, 3))
    found = identifiability(measure, X)
    fused, lattice = choquet(X, measure), measure.lattice
    codes, weights = linear_form(X, "bicapacity")
    equations = np.zeros((len(X) + 3, 27))
    np.add.at(equations, (np.arange(len(X))[:, None], codes), weights)
    equations[[-3, -2, -1], list(lattice.fixed)] = 1
    still = null_space(equations)
    lower, upper = lattice.covers()
    at, reached = measure.values.copy(), [measure.values]
    for _ in range(400):
        step = still @ rng.normal(size=still.shape[1])
        closing = step[lower] - step[upper]
        furthest = ((at[upper] - at[lower]) / np.where(closing > 0, closing, np.inf))[closing > 0].min()
        at = at + step * furthest * rng.uniform(0, 0.99)
        reached.append(at)
    values = np.stack(reached)
    np.testing.assert_allclose(choquet(X, BiCapacity(values[-1])), fused, atol=1e-9)
    assert (values >= found.lower - 1e-6).all()
    assert (values <= found.upper + 1e-6).all()
    assert np.ptp(values, axis=0)[found.used & found.open].max() > 0.05  # used elements do move


def test_used_elements_may_be_free(rng):
    measure = BiCapacity.random(4, False, 0)
    X = rng.uniform(-1, 1, (40, 4))
    held, found = identifiability(measure, X, exact=False), identifiability(measure, X)
    assert found.exact
    assert (found.open & found.used).sum() > 20
    assert (found.upper - found.lower)[found.used].max() > 0.5
    assert (found.lower <= held.lower + 1e-9).all()
    assert (found.upper >= held.upper - 1e-9).all()
    assert "if the used ones" in repr(held).splitlines()[0]
    assert "if the used ones" not in repr(found).splitlines()[0]


def test_many_instances_determine_what_they_use(rng):
    measure = BiCapacity.random(3, False, 0)
    X = rng.uniform(-1, 1, (3000, 3)).astype(np.float32)
    X[::7] = X[0]
    found = identifiability(measure, X)
    assert found.exact
    assert not (found.open & found.used).any()


def test_what_is_too_large_for_programs_says_so(rng):
    measure = BiCapacity.random(5, True, 0)
    found = identifiability(measure, rng.uniform(-1, 1, (30, 5)))
    assert not found.exact
    assert "if the used ones keep their values (outputs determine 2 of" in repr(found)
    few = identifiability(BiCapacity.random(7, True, 0), rng.uniform(-1, 1, (3, 7)))
    assert few.determined is None
    assert repr(few).splitlines()[0].endswith("if the used ones keep their values")


def test_capacities_and_nan(rng):
    X = rng.uniform(0, 1, (100_000, 3)).astype(np.float32)
    X[::3, 1] = np.nan
    measure = Capacity.random(3, 0)
    found = identifiability(measure, X, n_jobs=1)
    again = identifiability(measure, list(X.T), n_jobs=3)
    assert np.array_equal(found.counts, usage_counts(X, weighted=True, measure="capacity"))
    assert np.array_equal(found.weight, again.weight)
    assert not found.open.any()


def test_open_elements_show_as_intervals():
    found = identifiability(BiCapacity.additive([0.7, 0.3], ["a", "<b>"]), [[0.5, 1.0], [0.5, -0.5]])
    rows = {row[0].text: row[1].text for row in found.to_table().rows}
    assert rows["g_{a,∅}"] == "0.40 .. 1.00"
    assert rows["g_{a,<b>}"] == "0.40"
    assert "g_{∅,∅}" in rows
    assert found.n_free == 6
    assert "&lt;b&gt;" in found._repr_html_()
    without = identifiability(BiCapacity.random(2, False, 0), [[0.5, 1.0]])
    assert "g_{∅,∅}" not in without.to_table().to_text()


def test_large_tables_are_refused_but_summed_up(rng):
    found = identifiability(BiCapacity.random(6, True, 0), rng.uniform(-1, 1, (5, 6)))
    with refused("table-large", "729"):
        found.to_table()
    assert "696 of 726 free elements are open, if the used ones keep their values" in repr(found)
    assert "726 free elements" in found._repr_html_()


def test_a_measure_needs_data_in_range():
    measure = BiCapacity.additive([0.5, 0.5])
    with refused("counts-missing:X"):
        identifiability(measure)
    with refused("source-range", "'2'", "3.0"):
        identifiability(measure, [[0.5, 3.0]])
    with refused("sources-number"):
        identifiability(measure, [[0.5, 0.5, 0.5]])
    with refused("rule-kind"):
        identifiability([0.5], [[0.5]])
