"""Global optimality: against all choices of witnesses, in exact arithmetic, and where a proof ends early."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from enumeration import least, small_problem
from refusals import refused

from bimichi import MICI, BiMIChI, ConvexSolver, choquet
from bimichi.fit import certificate as tree
from bimichi.fit.certificate.candidates import JOINED, Candidates, Region
from bimichi.fit.objectives import REGISTRY
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces import base as quadratic
from bimichi.scenes.bags import Bags

OBJECTIVES = ("bipolar", "magnitude", "min-max")
KINDS = ("uniform", "binary", "three-valued", "correlated")
TIGHT = ConvexSolver(certify=True, gap=1e-5)


def fitted(X, bags, labels, weights, objective, solver, seed=0, **options):
    if objective == "min-max":
        model = MICI(objective="min-max", solver=solver, bipolar_input=False, random_state=seed, **options)
    else:
        model = BiMIChI(objective, solver, random_state=seed, **options)
    return model.fit(X, labels[bags].astype(int), bags=bags, sample_weight=weights[bags])


def check_against_all_witnesses(seed, objective, kind):
    problem = small_problem(np.random.default_rng(seed), objective, kind)
    optimum, _ = least(*problem, objective)
    found = fitted(*problem, objective, TIGHT).solution_
    assert found.certificate == "optimal"
    assert found.global_bound <= optimum + 1e-7
    assert found.objective_value == pytest.approx(optimum, rel=2e-5, abs=2e-6)
    plain = fitted(*problem, objective, "convex").solution_.objective_value
    return plain <= optimum * (1 + 1e-4) + 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_finds_and_proves_the_least_over_all_witnesses(objective, kind):
    assert all(check_against_all_witnesses(seed, objective, kind) for seed in range(2))


def scene(m=3, n_bags=60, n_positive=10, size=20, seed=0):
    """Bags as of a scene: a few bright instances in positive ones."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(n_bags), size)
    labels = np.arange(n_bags) < n_positive
    X = np.clip(rng.normal(-0.3, 0.35, (len(bags), m)), -1, 1)
    targets = labels[bags] & (rng.random(len(bags)) < 0.2)
    X[targets] = np.clip(rng.normal(0.5, 0.3, (targets.sum(), m)), -1, 1)
    return X, bags, labels, np.ones(n_bags)


@pytest.fixture(scope="module")
def certified():
    return {
        objective: fitted(*scene(), objective, ConvexSolver(certify=True)) for objective in ("bipolar", "magnitude")
    }


@pytest.mark.parametrize("objective", ["bipolar", "magnitude"])
def test_no_search_goes_below_the_bound(certified, objective):
    bound = certified[objective].solution_.global_bound
    assert certified[objective].solution_.certificate == "optimal"
    many = fitted(*scene(), objective, ConvexSolver(n_starts=60), seed=1).solution_.objective_value
    assert bound <= many
    assert certified[objective].objective_value_ <= many * (1 + 1e-3)


def test_threads_and_repetition_change_nothing(certified):
    again = fitted(*scene(), "magnitude", ConvexSolver(certify=True), n_jobs=1).solution_
    first = certified["magnitude"].solution_
    assert np.array_equal(again.values, first.values)
    assert (again.global_bound, again.n_nodes) == (first.global_bound, first.n_nodes)


def test_max_nodes_ends_with_an_honest_gap(certified):
    few = fitted(*scene(), "magnitude", ConvexSolver(certify=True, gap=0.0, absolute_gap=0.0, max_nodes=3)).solution_
    assert few.certificate == "max_nodes"
    assert few.global_bound <= certified["magnitude"].objective_value_
    assert few.gap > 0
    assert "max_nodes" in replace_record(certified["magnitude"], few).proof


def replace_record(model, solution):
    names = ("objective_value", "global_bound", "n_nodes", "certificate")
    return replace(model.rule_.training, **{name: getattr(solution, name) for name in names})


def test_time_limit(monkeypatch):
    clock = iter(range(0, 10**6, 100))
    monkeypatch.setattr(tree.time, "monotonic", lambda: next(clock))
    solver = ConvexSolver(certify=True, gap=0.0, absolute_gap=0.0, time_limit=150.0)
    assert fitted(*scene(), "magnitude", solver).solution_.certificate == "time_limit"


def test_interrupted_returns_the_best_so_far(monkeypatch, certified):
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return divide(*arguments)

    divide = tree._divide_batch
    monkeypatch.setattr(tree, "_divide_batch", interrupted)
    solver = ConvexSolver(certify=True, gap=0.0, absolute_gap=0.0)
    found = fitted(*scene(), "magnitude", solver).solution_
    assert found.certificate == "interrupted"
    assert found.global_bound <= certified["magnitude"].objective_value_ <= found.objective_value * (1 + 1e-3)


def test_an_interrupted_batch_stays_open(monkeypatch, certified):
    """Parts that were being divided still count for the bound."""
    real = tree._bounded
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(tree, "_bounded", interrupted)
    solver = ConvexSolver(certify=True, gap=0.0, absolute_gap=0.0)
    found = fitted(*scene(), "magnitude", solver, n_jobs=1).solution_
    assert found.certificate == "interrupted"
    assert found.global_bound <= certified["magnitude"].objective_value_


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_hold_in_exact_arithmetic(monkeypatch, objective):
    """Every bound of a small proof, recomputed from its multipliers with fractions, without any tolerance."""
    real, seen = quadratic.dual_bound, []

    def recorded(*arguments):
        seen.append((real(*arguments), arguments))
        return seen[-1][0]

    monkeypatch.setattr(quadratic, "dual_bound", recorded)
    problem = small_problem(np.random.default_rng(3), objective, "uniform")
    fitted(*problem, objective, replace(TIGHT, max_nodes=3))
    assert seen
    for bound, arguments in seen[:4]:
        assert Fraction(bound) <= exact_bound(*arguments)


def exact_bound(P, q, A, b, x, z, low, high):
    def exact(array):
        return [Fraction(float(value)) for value in array]

    P, A = P.toarray(), A.toarray()
    P = P + np.triu(P, 1).T
    q, b, x, z, low, high = map(exact, (q, b, x, z, low, high))
    pull = [sum((Fraction(float(P[i, j])) * x[j] for j in np.flatnonzero(P[i])), Fraction(0)) for i in range(len(x))]
    total = -sum((x[i] * pull[i] for i in range(len(x))), Fraction(0)) / 2 - sum(map(lambda u, v: u * v, b, z))
    for i in range(len(x)):
        rest = pull[i] + q[i] + sum((Fraction(float(A[r, i])) * z[r] for r in np.flatnonzero(A[:, i])), Fraction(0))
        total += min(rest * low[i], rest * high[i])
    return total


def test_multipliers_are_in_the_dual_cone(monkeypatch):
    real, seen = quadratic.dual_bound, []
    monkeypatch.setattr(quadratic, "dual_bound", lambda *given: seen.append(given[5].copy()) or real(*given))
    programs = []
    solve = quadratic.Program.solve_within
    monkeypatch.setattr(
        quadratic.Program, "solve_within", lambda self, *given: programs.append(self) or solve(self, *given)
    )
    problem = small_problem(np.random.default_rng(3), "magnitude", "uniform")
    fitted(*problem, "magnitude", replace(TIGHT, max_nodes=3), n_jobs=1)
    for program, z in zip(programs, seen, strict=True):
        end = program.n_rows - 3 * program.n_cones
        assert (z[program.n_equal : end] >= 0).all()
        for first, second, third in z[end:].reshape(-1, 3):
            assert Fraction(first) ** 2 >= Fraction(second) ** 2 + Fraction(third) ** 2
            assert first >= 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_joined_candidates_exceed_their_members(objective):
    """Under every monotone measure; without the zero bound also where peaks differ."""
    X, bags, labels, _ = scene(n_positive=2, n_bags=4, size=60, seed=5)
    X = np.abs(X) if objective == "min-max" else X
    rng = np.random.default_rng(0)
    problem, form = problem_of(X, bags, labels, objective)
    candidates = Candidates(problem, form, Region(problem.space.lattice), rng)
    ids = np.arange(len(candidates.constants))
    ids = ids[candidates.signs == candidates.signs[0]]
    vectors, constants = candidates.grouped(ids)
    assert len(ids) > JOINED >= len(vectors)
    for values in candidates.region.sample(rng, 200):
        assert candidates.values(ids, values).max() <= (vectors @ values + constants).max() + 1e-12


def problem_of(X, bags, labels, objective):
    (objective,) = (one for one in REGISTRY.values() if one.name == objective)
    return InMemory(Bags.from_instances(X, labels[bags], bags), objective, reduce=False), objective.convex


def test_vectors_give_the_integral():
    X, bags, labels, _ = scene(n_bags=4, n_positive=2, size=5)
    problem, form = problem_of(X, bags, labels, "magnitude")
    candidates = Candidates(problem, form, Region(problem.space.lattice), np.random.default_rng(0))
    values = problem.space.sample(np.random.default_rng(1))
    free = values[candidates.region.elements]
    expected = candidates.signs * choquet(candidates.points, problem.space.measure(values))
    assert np.allclose(candidates.values(np.arange(len(expected)), free), expected, atol=1e-12)


def test_one_bag_with_four_choices_is_solved_by_every_seed():
    X = np.array([[0, -0.5], [-0.5, 1], [0, -1], [0.5, 1], [0, 0]])
    y, bags = [1, 1, 0, 0, 0], [0, 0, 1, 1, 2]
    for seed in range(20):
        model = BiMIChI("magnitude", random_state=seed).fit(X, y, bags=bags)
        assert model.objective_value_ == pytest.approx(0.5, abs=1e-9)


def test_the_proof_survives_saving_and_is_said(tmp_path, certified):
    model = certified["bipolar"]
    model.save(tmp_path / "model.json")
    loaded = BiMIChI.load(tmp_path / "model.json")
    record = loaded.rule_.training
    assert record.global_bound == model.solution_.global_bound
    assert loaded.solution_.gap == pytest.approx(model.solution_.gap)
    assert record.proof.startswith("Proven: no measure of this kind has J below ")
    shown = float(record.proof.split("below ")[1].split(";")[0])
    assert shown <= record.global_bound


def test_what_cannot_be_proven_is_refused():
    X, bags, labels, _ = scene(n_bags=8, n_positive=3, size=5)
    y = labels[bags].astype(int)
    with refused("certify-additive"):
        BiMIChI("magnitude", TIGHT, additivity=2).fit(X, y, bags=bags)
    wide = np.tile(X, 3)[:, :8]
    with refused("certify-elements"):
        BiMIChI("bipolar", TIGHT).fit(wide, y, bags=bags)
    with refused("number-range:gap"):
        ConvexSolver(certify=True, gap=-1)
