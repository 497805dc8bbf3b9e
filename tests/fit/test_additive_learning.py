"""Learning 2-additive bi-capacities: the minimum, the estimator, the program."""

import json
import pickle

import dask.array as da
import naive
import numpy as np
import pytest
from refusals import refused
from samples import make_bags, rows, scene
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from bimichi import AdditiveBiCapacity, BiCapacity, BiMIChI, ConvexSolver, choquet
from bimichi.fit.objectives import ADDITIVE_OBJECTIVES, OBJECTIVES
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces import lines as term_program
from bimichi.fit.spaces.terms import TermUsage
from bimichi.integral.terms import term_features
from bimichi.measures.additive import Terms

NAMES = list(ADDITIVE_OBJECTIVES)


def solve(bags, name, **options):
    problem = InMemory(bags, ADDITIVE_OBJECTIVES[name])
    return problem, ConvexSolver(**options).solve(problem, np.random.default_rng(0))


def slope_at(problem, values):
    return problem.total("slope", targets=(-1.0, 1.0), values=values)


def all_features(X):
    space = Terms(X.shape[1])
    features = np.empty((len(X), space.size))
    term_features(X, *space.both_sides, features)
    return features


def all_covers(m):
    """Every neighbour of the 3^m elements as a row over the terms: no smarter than that."""
    space = Terms(m)
    lattice = OBJECTIVES["magnitude"].space(m).lattice
    inside = np.zeros((lattice.size, space.size))
    for code in range(lattice.size):
        up, down = lattice.sets(code)
        sides = [*up, *(k + m for k in down)]
        inside[code, [space.index[s, t] for s in sides for t in sides]] = 1
    lower, upper = lattice.covers()
    return inside[upper] - inside[lower], inside[[lattice.top, lattice.bottom]]


def scipy_minimum(m, function, gradient, n_extra=0, constraints=()):
    """Minimise over (terms, extras) with all covers as constraints."""
    covers, ends = all_covers(m)
    covers, ends = (np.pad(table, ((0, 0), (0, n_extra))) for table in (covers, ends))
    limits = [
        {"type": "ineq", "fun": lambda x: covers @ x, "jac": lambda x: covers},
        {"type": "eq", "fun": lambda x: ends @ x - [1, -1], "jac": lambda x: ends},
        *constraints,
    ]
    for extra in (1.0, 2.0, 3.0):  # from some starts, on some processors, its line search gives up at once
        start = np.concatenate([Terms(m).neutral(), np.full(n_extra, extra)])
        options = {"maxiter": 2000, "ftol": 1e-14}
        result = minimize(function, start, jac=gradient, method="SLSQP", options=options, constraints=limits)
        if result.success:
            return result.fun
    raise AssertionError(result.message)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_mean_is_the_minimum_over_all_covers(m):
    problem, found = solve(make_bags(m), "mean")
    bags, space = make_bags(m), Terms(m)
    features = all_features(bags.X)
    share = np.repeat(1 / np.diff(bags.offsets), np.diff(bags.offsets))
    target = np.repeat(np.where(bags.labels, 1.0, -1.0), np.diff(bags.offsets))
    best = scipy_minimum(
        m,
        lambda b: share @ (features @ b - target) ** 2,
        lambda b: 2 * (share * (features @ b - target)) @ features,
    )
    assert problem.space.terms == space
    assert found.objective_value == pytest.approx(best, abs=1e-7)
    assert found.lower_bound == pytest.approx(best, abs=1e-7)
    assert found.status == "converged"


@pytest.mark.parametrize("m", [1, 2, 3])
def test_magnitude_is_the_minimum_for_its_witnesses(m):
    bags = make_bags(m)
    problem, found = solve(bags, "magnitude", n_starts=2)
    space = problem.space.terms
    features = all_features(bags.X)
    place = {int(number): k for k, number in enumerate(bags.instance)}
    spoken = features[[place[int(number)] for number in found.witnesses]]
    signs = np.where(spoken @ found.values >= 0, 1.0, -1.0)
    negative = np.flatnonzero(~bags.labels)
    members = np.concatenate([np.arange(bags.offsets[b], bags.offsets[b + 1]) for b in negative])
    slack = np.repeat(np.arange(len(negative)), [bags.offsets[b + 1] - bags.offsets[b] for b in negative])
    pick = np.eye(len(negative))[slack]
    rows = np.concatenate(
        [np.hstack([-features[members], pick]), np.hstack([features[members], pick])]
    )  # t >= C and t >= -C

    def cost(x):
        b, t = x[: space.size], x[space.size :]
        return t @ t + ((1 - signs * (spoken @ b)) ** 2).sum()

    def slope(x):
        b, t = x[: space.size], x[space.size :]
        return np.concatenate([-2 * (signs * (1 - signs * (spoken @ b))) @ spoken, 2 * t])

    bounds = {"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows}
    best = scipy_minimum(m, cost, slope, len(negative), [bounds])
    assert found.objective_value == pytest.approx(best, abs=1e-6)
    assert found.lower_bound == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_few_variables_at_a_time_give_the_same_minimum(name, monkeypatch):
    bags = make_bags(9, 40, seed=3)
    monkeypatch.setattr(term_program, "ALL_TERMS", 0)
    _, few = solve(bags, name, n_starts=1)
    monkeypatch.setattr(term_program, "ALL_TERMS", 10**9)
    _, every = solve(bags, name, n_starts=1)
    assert few.objective_value == pytest.approx(every.objective_value, abs=1e-7)
    assert few.lower_bound == pytest.approx(few.objective_value, abs=1e-6, rel=1e-5 if name == "logistic" else 0)
    assert few.lower_bound <= few.objective_value


@pytest.mark.parametrize("name", NAMES)
def test_the_problem_is_that_of_the_same_measure_with_all_elements(name, rng):
    bags = make_bags(3)
    terms = InMemory(bags, ADDITIVE_OBJECTIVES[name])
    whole = InMemory(bags, OBJECTIVES[name])
    for _ in range(5):
        g = AdditiveBiCapacity.random(3, rng)
        values = g.to_bicapacity().values
        assert terms.value(g.terms) == pytest.approx(whole.value(values), abs=1e-12)
        one, two = terms.extremes(g.terms), whole.extremes(values)
        np.testing.assert_allclose(one.low, two.low, atol=1e-14)
        np.testing.assert_allclose(one.high, two.high, atol=1e-14)
        codes, weights = terms.rows(one.high_row)
        np.testing.assert_allclose((weights * g.terms[codes]).sum(axis=1), one.high, atol=1e-14)
        parts = [part.tolist() for part in np.split(bags.X, bags.offsets[1:-1])]
        table = {pair: g[pair] for pair in naive.pairs(3)}
        assert terms.value(g.terms) == pytest.approx(naive.objective(name, parts, bags.labels.tolist(), table))
        if name == "mean":
            zero, all_terms = np.zeros(terms.space.size), np.arange(terms.space.size)
            squares, at_zero = terms.total("squares", columns=all_terms), slope_at(terms, zero)
            assert g.terms @ squares @ g.terms + 2 * at_zero @ g.terms + len(bags) == pytest.approx(
                terms.value(g.terms)
            )
            np.testing.assert_allclose(slope_at(terms, g.terms), squares @ g.terms + at_zero, atol=1e-13)
            some = np.array([0, 5, 17])
            np.testing.assert_allclose(terms.total("squares", columns=some), squares[np.ix_(some, some)], atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_inverted_problems_are_those_of_inverted_bags(name, rng):
    bags, signs = make_bags(4), np.array([1.0, -1.0, 1.0, -1.0])
    problem = InMemory(bags, ADDITIVE_OBJECTIVES[name])
    other = problem.with_signs(np.array([-1.0, 1, 1, 1])).with_signs(np.array([-1.0, -1, 1, -1]))
    fresh = InMemory(bags.with_signs(signs), ADDITIVE_OBJECTIVES[name])
    values = Terms(4).sample(rng)
    assert other.value(values) == pytest.approx(fresh.value(values), abs=1e-13)
    np.testing.assert_array_equal(slope_at(other, values), slope_at(fresh, values))


def test_it_is_never_better_than_all_bicapacities_and_no_worse_than_the_mean():
    bags = make_bags(4, 40)
    for name in NAMES:
        problem, found = solve(bags, name)
        whole = InMemory(bags, OBJECTIVES[name])
        assert ConvexSolver().solve(whole, np.random.default_rng(0)).objective_value <= found.objective_value + 1e-7
        assert found.objective_value <= problem.value(problem.space.terms.neutral())


def test_usage_counts_terms():
    X = np.array([[0.5, -0.5], [0.0, -0.2], [0.3, 0.3]])
    touched, weighted = (TermUsage.of(X).counts(flag) for flag in (False, True))
    g = AdditiveBiCapacity.additive([0.5, 0.5])
    by_name = {str(g.sets(term)): (touched[term], weighted[term]) for term in range(8)}
    assert by_name == {
        "(['1'], [])": (3, 2),
        "(['2'], [])": (1, 1),
        "([], ['1'])": (0, 0),
        "([], ['2'])": (2, 2),
        "(['1', '2'], [])": (1, 1),
        "(['1'], ['2'])": (2, 1),
        "(['2'], ['1'])": (0, 0),
        "([], ['1', '2'])": (0, 0),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_usage_of_inverted_sources_and_of_parts(weighted):
    rng = np.random.default_rng(0)
    X, signs = rng.integers(-2, 3, (200, 5)) / 2, np.array([1.0, -1, -1, 1, -1])
    whole, parts = TermUsage.of(X), TermUsage.of(X[:70]) + TermUsage.of(X[70:])
    expected = TermUsage.of(X * signs).counts(weighted)
    np.testing.assert_array_equal(whole.counts(weighted, signs), expected)
    np.testing.assert_array_equal(parts.counts(weighted, signs), expected)


@pytest.fixture(scope="module")
def many():
    """Eighteen sources: three that show targets high, one that shows them low."""
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(40), 12)
    y = (ids % 2).astype(int)
    X = rng.normal(0, 0.3, (len(ids), 18))
    hits = (y == 1) & (np.arange(len(ids)) % 12 < 4)
    X[:, :4] += np.where(hits[:, None], 1, -1) * [0.5, 0.5, 0.5, -0.5]
    return np.clip(X, -1, 1), y, ids, hits


@pytest.mark.parametrize("name", NAMES)
def test_learns_eighteen_sources(name, many, tmp_path):
    X, y, ids, hits = many
    model = BiMIChI(
        name, ConvexSolver(n_starts=2), additivity=2, random_state=0, source_names=[f"s{k}" for k in range(18)]
    )
    model.fit(X, y, ids)
    g = model.bicapacity_
    assert isinstance(g, AdditiveBiCapacity)
    assert g.is_monotone()
    assert roc_auc_score(hits, model.fuse(X)) > 0.9
    np.testing.assert_allclose(model.integral(X), choquet(X, g), atol=1e-14)
    gap = 2e-6 * model.objective_value_ if name == "logistic" else 1e-5  # Newton steps end that near to the bound
    assert model.objective_value_ == pytest.approx(model.solution_.lower_bound, abs=gap)
    assert model.usage_["touched"].sum() == len(X) * 18 * 19 // 2
    assert (model.usage_["weighted"] <= model.usage_["touched"]).all()
    assert "No source is inverted." in model.to_markdown()
    model.save(tmp_path / "model")
    for other in (BiMIChI.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.bicapacity_ == g
        assert other.get_params()["additivity"] == 2
        np.testing.assert_array_equal(other.fuse(X), model.fuse(X))
        np.testing.assert_array_equal(other.usage_["weighted"], model.usage_["weighted"])
        assert other.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    again = clone(BiMIChI.load(tmp_path / "model")).set_params(n_jobs=1).fit(X, y, ids)
    assert again.bicapacity_ == g


def test_polarity_of_many_sources(many):
    X, y, ids, hits = many
    model = BiMIChI("mean", additivity=2, polarity="learn", random_state=0).fit(X, y, ids)
    assert model.polarity_[:4].tolist() == [1, 1, 1, -1]
    given = BiMIChI("mean", additivity=2, random_state=0).fit(X, y, ids)
    assert model.objective_value_ < given.objective_value_
    assert roc_auc_score(hits, model.fuse(X)) > roc_auc_score(hits, given.fuse(X))
    np.testing.assert_allclose(model.integral(X), choquet(X * model.polarity_, model.bicapacity_), atol=1e-14)


def test_scikit_learns_own_checks():
    results = check_estimator(BiMIChI("mean", scale="minmax", additivity=2), on_skip=None)
    status = {result["check_name"]: result["status"] for result in results}
    assert len(status) > 50
    assert {name for name, s in status.items() if s == "skipped"} <= {"check_array_api_input"}
    assert "xfail" not in status.values()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"additivity": 2}, "objective-additive"),
        ({"additivity": 3}, "choice"),
        ({"additivity": True}, "choice"),
        (
            {"objective": "mean", "additivity": 2, "solver": "evolutionary"},
            "solver-additive",
        ),
        ({"objective": "none", "additivity": 2}, "choice"),
        ({"objective": "mean"}, "sources-many"),
    ],
)
def test_what_cannot_be_is_refused(options, message, many):
    X, y, ids, _ = many
    with refused(message):
        BiMIChI(**options).fit(X, y, ids)


@pytest.mark.parametrize("name", NAMES)
def test_parts_give_the_same(name):
    X, y, ids = rows(m=5)
    options = {"objective": name, "solver": ConvexSolver(n_starts=2), "additivity": 2, "random_state": 0}
    whole = BiMIChI(**options).fit(X, y, ids)
    parts = BiMIChI(**options).fit(da.from_array(X, chunks=(330, 5)), y, ids)
    np.testing.assert_allclose(parts.bicapacity_.terms, whole.bicapacity_.terms, atol=1e-7)
    assert parts.objective_value_ == pytest.approx(whole.objective_value_, abs=1e-9)
    np.testing.assert_array_equal(parts.usage_["touched"], whole.usage_["touched"])
    if name == "magnitude":
        np.testing.assert_array_equal(parts.solution_.witnesses, whole.solution_.witnesses)
    BiMIChI(**options).fit([scene(0, "a"), scene(1, "b")])


def test_a_model_of_all_elements_is_as_before(tmp_path):
    model = BiMIChI("mean").fit(make_bags(3))
    assert isinstance(model.bicapacity_, BiCapacity)
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model").read_text())["measure"] == "bicapacity"
