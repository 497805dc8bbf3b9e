import naive
import naive_explain
import numpy as np
import pytest

from bimichi import BiCapacity, BiMIChI, Capacity, InvalidInputError, choquet, usage_counts
from bimichi.explain import identifiability


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_intervals_agree_with_plain_loops(m, zero_bound, rng):
    measure = BiCapacity.random(m, zero_bound, m)
    g = naive_explain.as_dict(measure.values.tolist(), m)
    X = rng.uniform(-1, 1, (3, m))
    X[1] = 0.5
    found = identifiability(measure, X)
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
    found = identifiability(measure, X)
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
    trained, given = identifiability(model), identifiability(model, X)
    assert trained.weight is None
    assert given.weight.sum() == pytest.approx(np.abs(X * model.rule_.factor).max(axis=1).sum())
    for name in ("lower", "upper", "used", "counts", "touched"):
        assert np.array_equal(getattr(trained, name), getattr(given, name))
    assert "weight " not in repr(trained).splitlines()[1]


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
    with pytest.raises(InvalidInputError, match=r"729 rows.*to_frame"):
        found.to_table()
    assert "726 free elements are open" in repr(found)
    assert "726 free elements" in found._repr_html_()


def test_a_measure_needs_data_in_range():
    measure = BiCapacity.additive([0.5, 0.5])
    with pytest.raises(InvalidInputError, match="X must be given"):
        identifiability(measure)
    with pytest.raises(InvalidInputError, match=r"Source '2'.*reaches 3.0"):
        identifiability(measure, [[0.5, 3.0]])
    with pytest.raises(InvalidInputError, match="3 sources"):
        identifiability(measure, [[0.5, 0.5, 0.5]])
    with pytest.raises(InvalidInputError, match="got list"):
        identifiability([0.5], [[0.5]])
