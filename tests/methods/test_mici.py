"""Normalised measures from bags: objectives against plain loops, solvers against each other, and MICI's facts."""

import math
from decimal import Decimal, localcontext

import naive
import numpy as np
import pytest
from demo import TRUE_MEASURE, demo, real_demo
from refusals import refused

from bimichi import (
    MICI,
    Bags,
    BinaryMICI,
    Capacity,
    ConvexSolver,
    EvolutionarySolver,
    MICIRegressor,
    choquet,
)
from bimichi.fit.objectives import CAPACITY_OBJECTIVES, term_of_bag
from bimichi.fit.objectives.mici import MIN_MAX, REGRESSION
from bimichi.fit.problem import InMemory
from bimichi.fit.solvers import BinarySolver
from bimichi.record import Status


def listing(capacity):
    return [value for _, value in capacity.listing()]


def as_table(g):
    return {frozenset(k for k in range(g.n_sources) if code >> k & 1): float(v) for code, v in enumerate(g.values)}


def small_bags(seed, m=3, real=False, decimals=2):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 8)
    X = rng.uniform(0, 0.95, (sizes.sum(), m)).round(decimals)
    labels = rng.random(8).round(2) if real else (np.arange(8) % 2)
    ids = np.repeat(np.arange(8), sizes)
    return Bags.from_instances(X, labels[ids], ids, real_labels=real), np.split(X, np.cumsum(sizes)[:-1]), labels


@pytest.mark.parametrize("objective", [*CAPACITY_OBJECTIVES.values(), REGRESSION], ids=lambda o: o.name)
@pytest.mark.parametrize("seed", range(6))
def test_objectives_are_those_of_plain_loops(objective, seed):
    m = seed % 4 + 1
    bags, parts, labels = small_bags(seed, m, objective is REGRESSION, decimals=1)
    g = Capacity.random(m, seed)
    expected = naive.capacity_objective(objective.name, [p.tolist() for p in parts], labels.tolist(), as_table(g))
    for reduce in (True, False):
        assert InMemory(bags, objective, reduce=reduce).value(g.values) == pytest.approx(expected, rel=1e-9)


def noisy_or_in_fifty_digits(fused, counts, positive, mu, sigma):
    """Term of one bag, with nothing rounded away; N is kept below 1 - 2^-53."""
    with localcontext() as context:
        context.prec = 400
        silent = Decimal(1)
        for c, count in zip(fused, counts, strict=True):
            chance = (-((Decimal(float(c)) - Decimal(mu)) ** 2) / (2 * Decimal(sigma) ** 2)).exp()
            silent *= (1 - min(chance, 1 - Decimal(2) ** -53)) ** int(count)
        return float(-(1 - silent).ln() if positive else -silent.ln())


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("size", [1, 7, 32, 33, 120])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.2), (0.1, 0.100001), (0.15, 0.4), (0.9, 1)])
def test_noisy_or_is_that_of_exact_arithmetic(positive, size, low, high):
    rng = np.random.default_rng(size)
    fused, counts = rng.uniform(low, high, size), rng.integers(1, 4, size).astype(float)
    found = term_of_bag(CAPACITY_OBJECTIVES["noisy-or"].term, fused, counts, float(positive))
    expected = noisy_or_in_fifty_digits(fused, counts, positive, 1.0, 0.1)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_noisy_or_counts_all_instances_where_all_chances_are_tiny():
    """The nearest alone gave 40.5."""
    c = 1 - math.sqrt(40.5 * 2) * 0.1
    for size in (300, 30):
        found = term_of_bag(CAPACITY_OBJECTIVES["noisy-or"].term, np.full(size, c), np.ones(size), 1.0)
        assert found == pytest.approx(40.5 - math.log(size), rel=1e-12)


def test_noisy_or_is_flat_beyond_its_clamp():
    term = CAPACITY_OBJECTIVES["noisy-or"].with_parameters(sigma=1e-3).term
    for size in (1, 50):
        assert term_of_bag(term, np.zeros(size), np.ones(size), 1.0) == pytest.approx(690 - math.log(size), rel=1e-10)


def test_noisy_or_stays_finite_where_no_measure_helps():
    bags = Bags.from_list([[[1.0, 1.0]], [[0.0, 0.0]]], [0, 1])  # C is 1 of the negative, 0 of the positive one
    value = InMemory(bags, CAPACITY_OBJECTIVES["noisy-or"]).value(Capacity.additive([0.5, 0.5]).values)
    assert value == pytest.approx(53 * np.log(2) + 50, rel=1e-6)


def test_generalised_mean_does_not_overflow():
    model = MICI("generalized-mean", p1=500, p2=-500, random_state=0, solver=EvolutionarySolver(max_iter=50))
    X, y, ids, _ = demo()
    assert np.isfinite(model.fit(X * 0.999, y, ids).history_).all()


class TestFacts:
    """Spec: on MICI's demonstration; here on data like it and, where it is at hand, on itself."""

    @pytest.fixture(params=["like it", "itself"])
    def data(self, request):
        return demo() if request.param == "like it" else real_demo()

    def test_min_max_by_the_convex_solver_is_exact(self, data):
        X, y, ids, _ = data
        model = MICI("min-max").fit(X, y, ids)
        assert model.objective_value_ <= 1e-8
        np.testing.assert_allclose(listing(model.capacity_), TRUE_MEASURE, atol=1e-6)

    @pytest.mark.parametrize("seed", range(5))
    def test_generalised_mean(self, data, seed):
        X, y, ids, truth = data
        model = MICI("generalized-mean", random_state=seed).fit(X, y, ids)
        assert np.sqrt(np.mean((model.fuse(X) - truth) ** 2)) < 0.05
        assert (np.diff(model.history_) <= 0).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_noisy_or(self, data, seed):
        X, y, ids, _ = data
        model = MICI("noisy-or", random_state=seed).fit(X, y, ids)
        assert model.objective_value_ < 1e-6
        assert model.objective_value_ == pytest.approx(model.history_[-1])

    def test_binary_finds_the_true_measure(self, data):
        X, y, ids, _ = data
        model = BinaryMICI().fit(X, y, ids)
        assert listing(model.capacity_) == TRUE_MEASURE
        assert model.objective_value_ == 0
        assert model.exact_
        assert model.solution_.status is Status.EXACT


class TestBinary:
    @pytest.mark.parametrize("m", [1, 2, 3, 4])
    @pytest.mark.parametrize("seed", range(3))
    def test_exact_is_the_least_of_all(self, m, seed):
        bags, parts, labels = small_bags(seed, m)
        instances = [p.tolist() for p in parts]
        problem = InMemory(bags, MIN_MAX)
        found = BinarySolver().solve(problem, np.random.default_rng(0))
        best = min(
            naive.capacity_objective("min-max", instances, labels.tolist(), as_table(g)) for g in Capacity.all_binary(m)
        )
        assert found.objective_value == pytest.approx(best, abs=1e-12)
        assert Capacity(found.values).is_binary

    def test_five_sources_are_exact(self):
        bags, *_ = small_bags(3, 5)
        solution = BinarySolver().solve(InMemory(bags, MIN_MAX), np.random.default_rng(0))
        assert (solution.status, solution.n_iter) == (Status.EXACT, 7579)

    @pytest.mark.parametrize("seed", range(4))
    def test_local_search_finds_what_enumeration_does(self, seed):
        problem = InMemory(small_bags(seed, 5)[0], MIN_MAX)
        exact = BinarySolver().solve(problem, np.random.default_rng(0))
        local = BinarySolver(method="local").solve(problem, np.random.default_rng(0), n_jobs=1 + seed % 2)
        assert local.objective_value == pytest.approx(exact.objective_value, abs=1e-12)
        assert local.status is Status.LOCAL

    def test_many_sources_say_that_they_were_searched(self):
        rng = np.random.default_rng(0)
        X, ids = rng.random((200, 7)), np.repeat(np.arange(20), 10)
        X[ids % 2 == 1, 2:5] = 0.95
        one, two = (BinaryMICI(random_state=1, n_jobs=jobs).fit(X, ids % 2, ids) for jobs in (1, 2))
        assert one.capacity_ == two.capacity_
        assert one.capacity_.is_binary
        assert not one.exact_
        assert one.objective_value_ == pytest.approx(
            naive.capacity_objective(
                "min-max",
                [X[ids == b].tolist() for b in range(20)],
                [b % 2 for b in range(20)],
                as_table(one.capacity_),
            )
        )

    def test_ties_give_the_measure_that_says_least(self):
        X = [[0.9, 0.0], [0.0, 0.0]]
        assert listing(BinaryMICI().fit(X, [1, 0]).capacity_) == [1, 0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_convex_is_not_above_evolution(seed):
    problem = InMemory(small_bags(seed)[0], MIN_MAX)
    convex = ConvexSolver().solve(problem, np.random.default_rng(0))
    evolved = EvolutionarySolver(population_size=12, max_iter=1500).solve(problem, np.random.default_rng(0))
    assert convex.objective_value <= evolved.objective_value + 1e-9
    assert convex.lower_bound == pytest.approx(convex.objective_value, abs=1e-6)
    assert (Capacity(convex.values).values >= 0).all()


def test_regression_finds_the_measure_behind_the_labels():
    rng = np.random.default_rng(5)
    g = Capacity.random(3, 5)
    X, ids = rng.random((400, 3)), np.repeat(np.arange(100), 4)
    fused = choquet(X, g)
    y = fused[::4][ids]  # the first instance of each bag gives its label
    model = MICIRegressor(random_state=0, solver=EvolutionarySolver(patience=None)).fit(X, y, ids)
    assert model.objective_value_ < 0.02
    assert np.abs(model.predict(X) - fused).mean() < 0.05
    assert model.score(X, fused) > 0.9
    twin = MICIRegressor(random_state=0, solver=EvolutionarySolver(patience=None), n_jobs=1)
    assert twin.fit(Bags.from_instances(X, y, ids, real_labels=True)).capacity_ == model.capacity_


def test_single_bags_of_regression_are_least_squares():
    rng = np.random.default_rng(1)
    X = rng.random((60, 2))
    y = choquet(X, Capacity.random(2, 0))
    model = MICIRegressor(random_state=0, solver=EvolutionarySolver(patience=None)).fit(X, y)
    assert model.objective_value_ < 1e-6


def test_the_automatic_solver():
    X, y, ids, _ = demo()
    assert MICI("min-max").fit(X, y, ids).solution_.lower_bound is not None
    quick = MICI("mean").fit(X, y, ids)
    assert quick.n_iter_ == 1
    with refused("solver-objective", "'noisy-or'"):
        MICI("noisy-or", solver="convex").fit(X, y, ids)


def test_same_seed_same_model_whatever_the_number_of_jobs():
    X, y, ids, _ = demo(3)
    for objective in CAPACITY_OBJECTIVES:
        solver = "auto" if CAPACITY_OBJECTIVES[objective].convex else EvolutionarySolver(max_iter=200)
        one, two = (MICI(objective, solver, random_state=4, n_jobs=jobs).fit(X, y, ids) for jobs in (1, 2))
        assert one.capacity_ == two.capacity_


def test_bipolar_input_is_mapped():
    X, y, ids, _ = demo()
    one = MICI("min-max", random_state=0).fit(X, y, ids)
    two = MICI("min-max", bipolar_input=True, random_state=0).fit(2 * X - 1, y, ids)
    assert one.capacity_ == two.capacity_
    np.testing.assert_allclose(one.fuse(X), two.fuse(2 * X - 1), atol=1e-12)
    assert "| **" in one.to_markdown()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "best"}, "choice:objective"),
        ({"solver": "simplex"}, "solver-unknown:solver"),
        ({"sigma": 0}, "number-range:sigma"),
        ({"p1": -1}, "number-range:p1"),
        ({"p2": "x"}, "number-range:p2"),
        ({"source_names": ["a"]}, "names-number"),
    ],
)
def test_bad_parameters(options, message):
    X, y, ids, _ = demo()
    with refused(message):
        MICI(**options).fit(X, y, ids)


def test_bad_input():
    X, y, ids, _ = demo()
    with refused("source-range", "'b'", "1.0", "bipolar_input=True"):
        MICI(source_names=["a", "b", "c"]).fit(X * [1, -1, 1], y, ids)
    model = MICI("min-max").fit(X, y, ids)
    with refused("source-range", "[0, 1]", "1.5"):
        model.fuse(X * 1.5)
    with refused("labels-range:y", "[0, 1]", "3.0"):
        MICIRegressor().fit(X, 3.0 * y, ids)
    with refused("labels-real"):
        MICI().fit(Bags.from_instances(X, y / 2, ids, real_labels=True))
    with refused("whole-number:n_restarts"):
        BinaryMICI(n_restarts=0).fit(X, y, ids)
    with refused("choice:method"):
        BinarySolver(method="best")
    with refused("solver-objective", "'regression'", "'min-max'"):
        BinarySolver().solve(InMemory(Bags.from_instances(X, y, ids), REGRESSION), np.random.default_rng(0))
