"""Intervals of fused values against linear programs over the naive order of elements, and refits by hand."""

import sys

import naive
import numpy as np
import pytest
import samples
from numpy.testing import assert_allclose
from refusals import refused
from scipy.optimize import linprog

from bimichi import AdditiveBiCapacity, BiCapacity, BiMIChI, Capacity, FusionRule, Link
from bimichi.explain import bootstrap, uncertainty

M = 3


def least_and_most(order, fixed, weights):
    """The ends of a weighted sum over all values in [-1, 1] with ``values[a] <= values[b]``, some of them fixed."""
    n = len(weights)
    rows = np.zeros((len(order), n))
    for row, (a, b) in zip(rows, order, strict=True):
        row[a] += 1
        row[b] -= 1
    bounds = [(fixed[k], fixed[k]) if k in fixed else (-1, 1) for k in range(n)]
    ends = []
    for sign in (1, -1):
        found = linprog(sign * weights, A_ub=rows, b_ub=np.full(len(rows), 1e-9), bounds=bounds)
        assert found.status == 0
        ends.append(float(weights @ found.x))
    return ends


def pair_order(m, zero_bound):
    """Ordered codes; through the pair of empty sets, (empty, j) is below (k, empty) with or without it."""
    pairs = naive.pairs(m)
    empty = naive.code((frozenset(), frozenset()))
    order = [(naive.code(a), naive.code(b)) for a in pairs for b in pairs if a != b and naive.less_equal(a, b)]
    return [pair for pair in order if zero_bound or empty not in pair]


def brute(g, used, x):
    weights = np.zeros(3**g.n_sources)
    for element, weight in naive.chain(x.tolist()):
        weights[naive.code(element)] += weight
    fixed = {k: g.values[k] for k in np.flatnonzero(used)} | dict(g.lattice.fixed)
    return least_and_most(pair_order(g.n_sources, g.zero_bound), fixed, weights)


def used_by(rows, m):
    used = np.zeros(3**m, bool)
    for x in rows:
        for element, weight in naive.chain(x.tolist()):
            used[naive.code(element)] |= weight > 0
    return used


@pytest.mark.parametrize(("m", "zero_bound"), [(2, True), (2, False), (3, True), (3, False)])
def test_ends_are_those_of_all_measures_that_keep_used_elements(m, zero_bound):
    rng = np.random.default_rng(m)
    g = BiCapacity.random(m, zero_bound, random_state=4)
    training, X = rng.uniform(-1, 1, (4, m)), rng.uniform(-1, 1, (12, m))
    found = uncertainty(g, X, training=training)
    used = used_by(training, m)
    expected = np.array([brute(g, used, x) for x in X])
    assert_allclose(found.lower, expected[:, 0], atol=1e-7)
    assert_allclose(found.upper, expected[:, 1], atol=1e-7)
    assert found.exact
    assert (found.width > 0.1).any()
    assert np.array_equal(found.fused, FusionRule(g).fuse(X))
    same = uncertainty(g, training, training=training)  # of training instances, nothing is open
    assert_allclose(same.lower, same.upper, atol=1e-12)


def test_the_ends_of_a_capacity():
    rng = np.random.default_rng(2)
    g = Capacity.random(M, random_state=1)
    training, X = rng.uniform(0, 1, (2, M)), rng.uniform(0, 1, (8, M))
    sets = naive.subsets(M)
    order = [(i, j) for i, a in enumerate(sets) for j, b in enumerate(sets) if a < b]

    def weights_of(x):
        weights, ranked = np.zeros(2**M), sorted(range(M), key=lambda k: -x[k])
        for n, k in enumerate(ranked):
            weights[sets.index(frozenset(ranked[: n + 1]))] += x[k] - (x[ranked[n + 1]] if n + 1 < M else 0)
        return weights

    used = np.sum([weights_of(x) for x in training], axis=0) > 0
    fixed = {k: g.values[k] for k in np.flatnonzero(used)} | {0: 0.0, 2**M - 1: 1.0}
    found = uncertainty(g, X, training=training)
    expected = np.array([least_and_most(order, fixed, weights_of(x)) for x in X])
    assert_allclose(np.stack([found.lower, found.upper], axis=1), expected, atol=1e-7)


def term_ends(g, used, x):
    """The ends over all additive measures that keep the used terms, by the naive order of the elements they make."""
    m, n = g.n_sources, len(g.terms)
    first, second = g.space.both_sides
    pairs = naive.pairs(m)

    def row(pair):
        inside = [*pair[0], *(k + m for k in pair[1])]
        return np.isin(first, inside) & np.isin(second, inside)

    table = {pair: row(pair).astype(float) for pair in pairs}
    below = [table[a] - table[b] for a in pairs for b in pairs if a != b and naive.less_equal(a, b)]
    every = frozenset(range(m))
    equal = [table[every, frozenset()], table[frozenset(), every]]
    sides = np.maximum([*x, *-x], 0)
    weights = np.minimum(sides[first], sides[second])
    pair_free = g.order == 2
    bounds = [(g.terms[k],) * 2 if used[k] else (-2, 2) if pair_free or k < 2 * m else (0, 0) for k in range(n)]
    ends = []
    for sign in (1, -1):
        slack = np.full(len(below), 1e-9)
        found = linprog(sign * weights, A_ub=below, b_ub=slack, A_eq=equal, b_eq=[1, -1], bounds=bounds)
        assert found.status == 0
        ends.append(float(weights @ found.x))
    return ends


@pytest.mark.parametrize("order", [1, 2])
def test_the_ends_of_additive_measures(order):
    rng = np.random.default_rng(order)
    g = AdditiveBiCapacity.random(M, 3, order=order)
    training = rng.uniform(-1, 1, (3, M))
    training[:, 1:] = -abs(training[:, 1:])  # two sources are never above zero, so that their terms up are free
    training[:, 0] = abs(training[:, 0])  # and one is never below
    X = rng.uniform(-1, 1, (10, M))
    m, sides = M, np.hstack([training > 0, training < 0])
    first, second = g.space.both_sides
    used = (sides[:, first] & sides[:, second]).any(axis=0)
    expected = np.array([term_ends(g, used, x) for x in X])
    found = uncertainty(g, X, training=training)
    assert (expected[:, 1] - expected[:, 0] > 0.05).any()
    if order == 1:
        assert found.exact
        assert_allclose(np.stack([found.lower, found.upper], axis=1), expected, atol=1e-7)
        assert found.n_open == m
    else:
        assert not found.exact
        assert (found.lower <= expected[:, 0] + 1e-6).all()
        assert (found.upper >= expected[:, 1] - 1e-6).all()
        singles = np.eye(M)[1:2]  # an instance that needs one free term alone: its bounds are reached
        alone, needed = uncertainty(g, singles, training=training), term_ends(g, used, singles[0])
        assert_allclose([alone.lower[0], alone.upper[0]], needed, atol=1e-6)
    settled = uncertainty(g, X, training=rng.uniform(-1, 1, (60, M)))
    assert settled.exact
    assert settled.n_open == 0
    assert_allclose(settled.lower, settled.upper, atol=1e-12)


def test_many_free_terms_are_bounded_without_programs(monkeypatch):
    g = AdditiveBiCapacity.random(M, 3)
    X = np.random.default_rng(0).uniform(-1, 1, (6, M))
    exact = uncertainty(g, X, training=X[:1])
    monkeypatch.setattr(sys.modules["bimichi.explain.uncertainty"], "MOST_PROGRAMS", 0)
    wide = uncertainty(g, X, training=X[:1])
    assert (wide.lower <= exact.lower + 1e-6).all()
    assert (wide.upper >= exact.upper - 1e-6).all()


def test_magnitude_and_link_of_the_ends():
    rng = np.random.default_rng(8)
    g = BiCapacity.random(2, zero_bound=False, random_state=1)
    training, X = rng.uniform(-1, 1, (1, 2)), rng.uniform(-1, 1, (40, 2))
    plain = uncertainty(g, X, training=training)
    magnitude = uncertainty(FusionRule(g, output="magnitude"), X, training=training)
    crossing = (plain.lower < 0) & (plain.upper > 0)
    assert crossing.any()
    assert (magnitude.lower[crossing] == 0).all()
    ends = np.abs([plain.lower, plain.upper])
    assert_allclose(magnitude.lower[~crossing], ends.min(axis=0)[~crossing])
    assert_allclose(magnitude.upper, ends.max(axis=0))
    linked = uncertainty(FusionRule(g, link=Link(3.0, -1.0)), X, training=training)
    assert_allclose(linked.upper, 1 / (1 + np.exp(1 - 3 * plain.upper)))
    assert linked.output_range == (0, 1)
    assert_allclose(plain.width, (plain.upper - plain.lower) / 2)


@pytest.fixture(scope="module")
def fitted():
    X, y = samples.probable_rows(300, 3, seed=1)
    bags = np.arange(len(X)) // 5
    y = np.repeat(y[::5], 5)
    model = BiMIChI(objective="logistic", additivity=1, source_names=["a", "b", "c"], random_state=0)
    return model.fit(X, y, bags=bags), (X, y, bags)


def test_the_spread_is_that_of_the_refits(fitted):
    model, data = fitted
    stability = bootstrap(model, *data, n_resamples=9, level=0.8, random_state=2)
    X = np.random.default_rng(1).uniform(-1, 1, (7, 11, 3)).astype(np.float32)
    X[2, 3, 1] = np.nan
    found = uncertainty(model, X, stability=stability)
    links = {link.slope for link in stability.links}
    assert len(links) == 9  # slope and offset are learned anew
    fused = []
    for values, link in zip(stability.values, stability.links, strict=True):
        odds = np.zeros(X.shape[:2])
        for k in range(3):
            odds += np.where(X[..., k] >= 0, values[k], -values[3 + k]) * X[..., k] * model.rule_.polarity[k]
        fused.append(1 / (1 + np.exp(-link.slope * odds - link.offset)))
    low, high = np.quantile(fused, [0.1, 0.9], axis=0)
    assert_allclose(found.spread_lower, low, atol=2e-6)
    assert_allclose(found.spread_upper, high, atol=2e-6)
    assert found.spread_lower.dtype == np.float32
    for array in (found.lower, found.upper, found.spread, found.fused):
        assert np.array_equal(np.argwhere(np.isnan(array)), [[2, 3]])
    assert found.level == 0.8
    assert "80 % of refits" in repr(found)


def test_the_counts_of_training_are_enough(fitted):
    _, (X, y, bags) = fitted
    full = BiMIChI(objective="mean", random_state=0).fit(X[:40], y[:40], bags=bags[:40])
    again = uncertainty(full, X, training=X[:40])
    found = uncertainty(full, X)
    assert np.array_equal(found.lower, again.lower)
    assert found.n_open > 0
    assert (found.upper - found.lower).max() > 0.01
    assert "training left" in repr(found)


def test_arrays_of_xarray_keep_their_coordinates(fitted):
    import xarray

    model, data = fitted
    image = np.random.default_rng(1).uniform(-1, 1, (3, 4, 5))
    stability = bootstrap(model, *data, n_resamples=3)
    given = xarray.DataArray(image, dims=("source", "y", "x"), coords={"source": ["a", "b", "c"], "x": range(5)})
    found = uncertainty(model, given, stability=stability)
    plain = uncertainty(model, list(image), stability=stability)
    for name in ("fused", "lower", "upper", "width", "spread"):
        assert getattr(found, name).dims == ("y", "x")
        assert np.array_equal(getattr(found, name).values, getattr(plain, name))
    assert found.lower.coords["x"].size == 5


def test_what_is_missing_is_said(fitted):
    model, data = fitted
    with refused("counts-missing:training"):
        uncertainty(BiCapacity.random(2, random_state=0), [[0.1, 0.2]])
    other = bootstrap(model, *data, n_resamples=2)
    with refused("stability-of-another:stability"):
        uncertainty(BiCapacity.random(3, random_state=0), np.zeros((2, 3)), training=np.ones((1, 3)), stability=other)


def test_threads_change_nothing(fitted):
    model, data = fitted
    stability = bootstrap(model, *data, n_resamples=3)
    image = np.random.default_rng(1).uniform(-1, 1, (300, 300, 3))
    one, two = (uncertainty(model, image, stability=stability, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.spread_upper, two.spread_upper)
    assert np.array_equal(one.upper, two.upper)
