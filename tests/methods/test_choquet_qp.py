"""Least squares to instance labels, with a capacity and with a bi-capacity."""

import numpy as np
import pytest
from demo import demo, real_demo
from refusals import refused
from scipy.optimize import minimize

from bimichi import BiCapacity, BiCapacityQP, Capacity, ChoquetQP, choquet, linear_form
from bimichi.fit.objectives import MEAN
from bimichi.fit.problem import Summed
from bimichi.fit.spaces import sums as gram_module
from bimichi.fit.spaces.sums import RowsOfSquares, gram
from bimichi.measures.lattice import pair_lattice, subset_lattice


def instances(seed, n=200, m=3, low=-1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, 1, (n, m))
    return X, (X[:, 0] + rng.normal(0, 0.4, n) > (0 if low < 0 else 0.5)).astype(int)


class TestFacts:
    """On MICI's demonstration, as the specification has them."""

    def test_bag_labels_spread_to_instances(self):
        X, y, _, _ = real_demo()
        model = ChoquetQP().fit(X, y)
        measure = [value for _, value in model.capacity_.listing()]
        np.testing.assert_allclose(measure, [0.460, 0.396, 0.396, 1, 0.460, 0.396, 1], atol=5e-4)
        assert model.objective_value_ == pytest.approx(213.4, abs=0.05)

    @pytest.mark.parametrize("data", [demo, real_demo])
    def test_true_labels_give_the_true_measure(self, data):
        X, _, _, truth = data()
        model = ChoquetQP().fit(X, truth)
        measure = [value for _, value in model.capacity_.listing()]
        np.testing.assert_allclose(measure, [0, 0, 0, 1, 0, 0, 1], atol=1e-5)
        assert model.objective_value_ < 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_no_feasible_direction_improves(seed):
    """A general solver, started anywhere, ends where the QP does."""
    X, y = instances(seed, low=0.0)
    model = ChoquetQP().fit(X, y)
    codes, weights = linear_form(X, "capacity")
    lower, upper = subset_lattice(3).covers()

    def J(values):
        return float((((weights * values[codes]).sum(axis=1) - y) ** 2).sum())

    found = minimize(
        J,
        Capacity.random(3, seed).values,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda v: v[upper] - v[lower]},
            {"type": "eq", "fun": lambda v: v[[0, 7]] - [0, 1]},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert model.objective_value_ == pytest.approx(found.fun, rel=1e-6)
    assert model.solution_.lower_bound == pytest.approx(model.objective_value_, rel=1e-6)
    assert J(model.capacity_.values) == pytest.approx(model.objective_value_, rel=1e-12)


def test_a_bicapacity_on_positive_sources_is_a_capacity():
    X, y = instances(4, low=0.0)
    one = ChoquetQP().fit(X, y)
    two = BiCapacityQP(zero_bound=True, targets=(0.0, 1.0)).fit(X, y)
    lattice = pair_lattice(3)
    up, down = lattice.masks(np.arange(27))
    np.testing.assert_allclose(two.bicapacity_.values[down == 0], one.capacity_.values[up[down == 0]], atol=1e-6)
    assert two.objective_value_ == pytest.approx(one.objective_value_, rel=1e-9)
    np.testing.assert_allclose(two.fuse(X), one.fuse(X), atol=1e-6)


@pytest.mark.parametrize("zero_bound", [True, False])
def test_bicapacity_is_recovered(zero_bound):
    """Labels that some bi-capacity gives exactly are fitted exactly."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (200, 3))
    g = BiCapacity.from_elements({((0,), (1, 2)): 1.0, ((1, 2), (0,)): -1.0}, 3, zero_bound=zero_bound)
    keep = np.abs(choquet(X, g)) == 1
    model = BiCapacityQP(zero_bound).fit(X[keep], choquet(X[keep], g))
    assert model.objective_value_ < 1e-8
    np.testing.assert_allclose(model.fuse(X[keep]), choquet(X[keep], g), atol=1e-5)


@pytest.mark.parametrize("method", [ChoquetQP(bipolar_input=True), BiCapacityQP()], ids=["capacity", "bicapacity"])
class TestBoth:
    def test_weights_are_repetitions(self, method):
        X, y = instances(1)
        weight = np.random.default_rng(0).integers(0, 4, len(X))
        one = method.fit(X, y, sample_weight=weight).fuse(X)
        np.testing.assert_allclose(method.fit(X.repeat(weight, axis=0), y.repeat(weight)).fuse(X), one, atol=1e-6)

    def test_class_weights(self, method):
        X, y = instances(2)
        one = method.set_params(class_weight={0: 1.0, 1: 5.0}).fit(X, y).fuse(X)
        two = method.set_params(class_weight=None).fit(X, y, sample_weight=np.where(y, 5.0, 1.0)).fuse(X)
        np.testing.assert_allclose(one, two, atol=1e-9)
        balanced = method.set_params(class_weight="balanced").fit(X, y).fuse(X)
        three = method.set_params(class_weight=None).fit(
            X, y, sample_weight=np.where(y, 1 / y.mean(), 1 / (1 - y.mean()))
        )
        np.testing.assert_allclose(balanced, three.fuse(X), atol=1e-6)

    def test_result_does_not_depend_on_jobs_or_float_width(self, method, monkeypatch):
        monkeypatch.setattr(gram_module, "CHUNK", 37)
        X, y = instances(3)
        one = method.set_params(n_jobs=1).fit(X, y).fuse(X)
        np.testing.assert_array_equal(method.set_params(n_jobs=3).fit(X, y).fuse(X), one)
        narrow = method.fit(X.astype(np.float32), y).fuse(X.astype(np.float32))
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, one, atol=1e-5)

    def test_bad_input(self, method):
        X, y = instances(3)
        with refused("labels-missing"):
            method.fit(X)
        with refused("weights-zero:sample_weight"):
            method.fit(X, y, sample_weight=np.zeros(len(X)))
        with refused("source-range"):
            method.fit(X * [1, 1, 9], y)
        with refused("two-classes"):
            method.fit(X, np.arange(len(X)) % 3)


def test_targets_are_checked():
    X, y = instances(0)
    with refused("targets-rising:targets", "[-1, 1]"):
        BiCapacityQP(targets=(1, 0)).fit(X, y)


@pytest.mark.parametrize("m", [2, 4])
def test_the_quadratic_form_is_the_sum_of_squares(m, monkeypatch):
    rng = np.random.default_rng(m)
    X, target, share = rng.uniform(-1, 1, (50, m)), rng.uniform(-1, 1, 50), rng.random(50)
    codes, weights = linear_form(X)
    g = BiCapacity.random(m, random_state=0)
    expected = float((share * (choquet(X, g) - target) ** 2).sum())
    for limit in (3**7, 1):  # in a full matrix, and in a sparse one
        monkeypatch.setattr(gram_module, "DENSE_LIMIT", limit)
        form = gram(g.lattice, 50, lambda c: RowsOfSquares(codes[c], weights[c], share[c], target[c]), 2)
        v = g.values
        assert v @ (form.matrix @ v) - 2 * form.linear @ v + form.constant == pytest.approx(expected, rel=1e-12)
    problem = Summed.of_instances(X, target > 0, share, MEAN)
    form = problem.total("gram", targets=(-1.0, 1.0))
    assert v @ (form.matrix @ v) - 2 * form.linear @ v + form.constant == pytest.approx(problem.value(v), rel=1e-12)
