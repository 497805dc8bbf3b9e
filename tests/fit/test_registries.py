"""Every objective, space and solver that is registered, against plain loops and against each other."""

import json
import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from refusals import refused
from registries import restored

from bimichi import Bags, BiMIChI, ConvexSolver, EvolutionarySolver, InvalidInputError
from bimichi.fit.objectives import OBJECTIVES, REGISTRY, Objective, Parameter, get_objective, register_objective
from bimichi.fit.problem import IN_MEMORY, ON_CLUSTER, InMemory, Solution, check_solver, needs_of
from bimichi.fit.solvers import SOLVERS, get_solver, register_solver, solver_from_record, solver_record
from bimichi.fit.train import check_training, fit_measure, problem_in_memory

OPTIONS = {"convex": {"n_starts": 3}, "evolutionary": {"max_iter": 60, "population_size": 6}, "binary": {}}
ADDITIVE = [objective.with_additivity(k) for objective in REGISTRY.values() if objective.additive for k in (1, 2)]
ALL = [*REGISTRY.values(), *ADDITIVE]


def label(objective):
    return f"{objective.name}-{objective.measure}-{objective.additivity}"


def some_bags(objective, seed=0, m=3):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(9), 4)
    X = rng.uniform(-0.95, 0.95, (len(ids), m)).round(1)
    X = (X + 1) / 2 if objective.measure == "capacity" else X
    real = objective.labels == "real"
    return Bags.from_instances(X, ids % 5 / 5 if real else ids % 3 == 0, ids, real_labels=real)


def expected_value(objective, bags, g):
    parts = [part.tolist() for part in np.split(bags.X, bags.offsets[1:-1])]
    labels = bags.labels.astype(float).tolist()
    if objective.measure == "capacity":
        table = {frozenset(s): float(g[s]) for s in naive.subsets(g.n_sources)}
        return naive.capacity_objective(objective.name, parts, labels, table)
    return naive.objective(objective.name, parts, labels, {pair: g[pair] for pair in naive.pairs(g.n_sources)})


@pytest.mark.parametrize("objective", ALL, ids=label)
def test_objectives_are_those_of_plain_loops_in_every_space(objective):
    for seed in range(3):
        bags = some_bags(objective, seed)
        space = objective.space(3)
        values = space.sample(np.random.default_rng(seed))
        g = space.measure(values)
        for reduce in (True, False):
            problem = InMemory(bags, objective, reduce=reduce)
            assert problem.value(values) == pytest.approx(expected_value(objective, bags, g), rel=1e-9)
        assert g.is_monotone(1e-12)
        assert len(values) == space.size
        codes, weights = problem.rows(np.arange(4))
        assert codes.shape == weights.shape == (4, space.row_length)
        fused = (weights * values[codes]).sum(axis=1)
        low, high = problem.extremes(values)[:2]
        assert (fused.min(), fused.max()) == pytest.approx((low[0], high[0]))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("objective", ALL, ids=label)
def test_every_solver_minimises_every_objective_or_says_why_not(objective, name):
    solver, bags = SOLVERS[name](**OPTIONS[name]), some_bags(objective)
    problem = problem_in_memory(bags, objective)
    if needs_of(solver, objective) - objective.offers - IN_MEMORY:
        with pytest.raises(InvalidInputError, match=f"{type(solver).__name__} cannot minimise '{objective.name}'"):
            fit_measure(problem, solver)
        return
    one, two = (fit_measure(problem, solver, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.solution.values, two.solution.values)
    assert np.array_equal(one.solution.history, two.solution.history)
    assert one.solution.n_iter == len(one.solution.history) > 0
    assert (np.diff(one.solution.history) <= 1e-9).all()
    assert one.measure.is_monotone(1e-9)
    expected = expected_value(objective, bags, one.measure)
    if one.solution.link is not None:
        expected = InMemory(bags, objective, reduce=False).value(one.solution.values, one.solution.link)
    assert one.solution.objective_value == pytest.approx(expected, rel=1e-6)
    middle = InMemory(bags, objective).value(objective.space(3).middle())
    if name != "binary":
        assert one.solution.objective_value <= middle + 1e-9
    assert one.polarity.tolist() == [1, 1, 1]
    assert one.usage["touched"].sum() == len(bags.X) * objective.space(3).row_length
    assert (one.usage["weighted"] <= one.usage["touched"]).all()


@pytest.mark.parametrize("objective", ALL, ids=label)
def test_spaces_keep_the_contract(objective):
    space, rng = objective.space(4), np.random.default_rng(0)
    for values in (space.middle(), space.sample(rng)):
        assert space.measure(values, list("abcd")).is_monotone(1e-12)
        whole = space.complete(values, "lowest")
        np.testing.assert_allclose(whole.values, values, atol=1e-12)
        free = np.setdiff1d(np.arange(space.size), list(space.lattice.fixed) if "elements" in space.offers else [])
        assert not space.order().with_violated(space.known_at(values, free), 1e-9)[1]
    X = rng.integers(0, 3, (50, 4)) / 2 if objective.measure == "capacity" else rng.integers(-2, 3, (50, 4)) / 2
    signs = np.ones(4) if objective.measure == "capacity" else np.array([1.0, -1, 1, -1])
    parts = space.count_usage(X[:20]) + space.count_usage(X[20:], n_jobs=2)
    for weighted in (False, True):
        inverted = space.count_usage(X * signs).counts(weighted)
        assert np.array_equal(parts.counts(weighted, signs), inverted)


@pytest.mark.parametrize("objective", ALL, ids=label)
def test_objectives_survive_pickling_and_describe_themselves(objective):
    assert pickle.loads(pickle.dumps(objective)) == objective
    assert objective.about
    assert len(objective.parameters) == 2


def fourth_power(fused, counts, size, label, first, second):
    """The mean fourth power of the distance to +1 or -1: no convex form."""
    total, number = 0.0, 0.0
    for i in range(size):
        total += counts[i] * (fused[i] - (1.0 if label > 0 else -1.0)) ** 4
        number += counts[i]
    return first * total / number


@pytest.fixture
def fourth():
    setting = Parameter("gain", 1.0, above=0.0)
    registered = register_objective(Objective("fourth", fourth_power, "fourth powers", settings=(setting,)))
    assert OBJECTIVES["fourth"] is registered
    yield registered
    REGISTRY.forget("fourth")


def data():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(12), 5)
    X = np.clip(rng.normal(0, 0.4, (60, 3)), -1, 1)
    X[ids % 3 == 0] += [0.5, -0.4, 0.2]
    return np.clip(X, -1, 1), (ids % 3 == 0).astype(int), ids


def test_an_objective_without_convex_form_is_one_registration(fourth, tmp_path):
    X, y, ids = data()
    solver = EvolutionarySolver(max_iter=80, population_size=5)
    for polarity in ("given", "learn"):
        model = BiMIChI("fourth", solver, polarity=polarity, random_state=0).fit(X, y, ids)
        plain = np.array([np.mean((model.integral(X[ids == b]) - (1 if b % 3 == 0 else -1)) ** 4) for b in range(12)])
        assert model.objective_value_ == pytest.approx(plain.sum())
    model.save(tmp_path / "m")
    assert np.array_equal(BiMIChI.load(tmp_path / "m").fuse(X), model.fuse(X))
    with refused("solver-objective", "solver='evol", "'fourth'"):
        BiMIChI("fourth").fit(X, y, ids)
    with refused("objective-additive", "'fourth'"):
        BiMIChI("fourth", additivity=1).fit(X, y, ids)
    twice = InMemory(Bags.from_instances(X, y, ids), fourth.with_parameters(gain=2))
    assert twice.value(twice.space.middle()) == pytest.approx(
        2 * InMemory(Bags.from_instances(X, y, ids), fourth).value(twice.space.middle())
    )


def test_bad_objectives(fourth):
    for make, message in (
        (lambda: register_objective(fourth), "objective-taken"),
        (lambda: register_objective(fourth_power), "objective-kind"),
        (lambda: fourth.with_parameters(gain=0), "number-range:gain"),
        (lambda: fourth.with_parameters(power=4), "objective-parameter"),
        (lambda: replace(fourth, settings=fourth.settings * 3), "objective-settings"),
        (
            lambda: get_objective("fifth"),
            "choice",
        ),
    ):
        with refused(message):
            make()


class Best:
    """A plain class, not a dataclass: the best of some random measures."""

    needs = ("rows",)

    def __init__(self, n_draws=20):
        self.n_draws = n_draws

    def solve(self, problem, rng, n_jobs=None, verbose=0):
        drawn = [problem.space.sample(stream) for stream in rng.spawn(self.n_draws)]
        J = np.array([problem.value(values) for values in drawn])
        best = int(J.argmin())
        return Solution(drawn[best], J[best], "converged", len(J), np.minimum.accumulate(J))


@pytest.mark.parametrize("objective", [objective for objective in ALL if objective.measure == "bicapacity"], ids=label)
def test_any_object_that_solves_is_a_solver_in_every_space(objective, tmp_path):
    X, y, ids = data()
    if objective.links:
        with refused("solver-free-scale", "'logistic'", "solver='convex'"):
            BiMIChI(objective.name, Best(5), additivity=objective.additivity).fit(X, y, ids)
        return
    model = BiMIChI(objective.name, Best(5), additivity=objective.additivity, random_state=0).fit(X, y, ids)
    model.save(tmp_path / "m")
    other = BiMIChI.load(tmp_path / "m")
    assert np.array_equal(other.fuse(X), model.fuse(X))
    assert solver_record(other.solver) == (f"{__name__}.Best", {"n_draws": 5})
    with refused("solver-foreign"):
        other.fit(X, y, ids)


@pytest.fixture
def best():
    with restored(SOLVERS):
        register_solver("best", Best)
        yield


def test_registered_solvers_come_back_from_files(best, tmp_path):
    X, y, ids = data()
    BiMIChI(solver=Best(7), random_state=0).fit(X, y, ids).save(tmp_path / "m")
    again = BiMIChI.load(tmp_path / "m")
    assert isinstance(again.solver, Best)
    assert again.solver.n_draws == 7
    assert BiMIChI(solver="best").fit(X, y, ids).solution_.n_iter == 20
    with refused("solver-taken", "'best'"):
        register_solver("best", ConvexSolver)
    with refused("solver-kind"):
        register_solver("none", int)
    with refused("model-solver", "'best'"):
        solver_from_record("best", {"draws": 3})


@pytest.mark.parametrize("solver", [ConvexSolver(3, 50, 1e-6), EvolutionarySolver(max_iter=7, checkpoint="file")])
def test_solver_records(solver):
    name, options = solver_record(solver)
    assert SOLVERS[name] is type(solver)
    assert solver_from_record(name, options) == replace(solver, **({"checkpoint": None} if name != "convex" else {}))


def test_a_model_file_cannot_name_a_checkpoint(tmp_path):
    """Fitting again would read and write that file."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (20, 2)), np.arange(20) % 2
    path, there = tmp_path / "model.json", tmp_path / "written.npz"
    BiMIChI(solver=EvolutionarySolver(2, 5), random_state=0).fit(X, y).save(path)
    document = json.loads(path.read_text())
    document["training"]["solver_options"] |= {"checkpoint": str(there), "callback": "print"}
    path.write_text(json.dumps(document))
    model = BiMIChI.load(path)
    assert (model.solver.checkpoint, model.solver.callback, model.solver.max_iter) == (None, None, 5)
    model.fit(X, y)
    assert not there.exists()


def test_what_does_not_go_together_is_refused_before_anything_is_computed():
    mean, noisy = get_objective("mean"), next(o for o in REGISTRY.values() if o.name == "noisy-or")
    for arguments, message in (
        ((noisy, ConvexSolver()), "solver-objective"),
        ((noisy, EvolutionarySolver(), "learn"), "polarity-objective"),
        ((mean, EvolutionarySolver(), "given", ON_CLUSTER), "solver-memory"),
        ((mean, ConvexSolver(), "no"), "choice:polarity"),
        ((mean, object(), "given", ON_CLUSTER), "solver-memory"),
    ):
        with refused(message):
            check_training(*arguments)
    check_solver(ConvexSolver(), mean, frozenset())
    check_solver(Best(), noisy, ON_CLUSTER)
    assert get_solver("auto", noisy) == EvolutionarySolver()
    assert get_solver("auto", mean) == ConvexSolver()
    assert needs_of(ConvexSolver(), mean) == {"convex form"}
    assert needs_of(ConvexSolver(), mean.with_additivity(1)) == {"convex form", "rows"}
