import numpy as np
import pytest
from refusals import refused

from bimichi import Bags, BiMIChI, ConvexSolver, EvolutionarySolver
from bimichi.explain import bootstrap, indices
from bimichi.explain.stability import _draw, _resampled
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.problem import InMemory

CHECKED = ("up", "down", "shapley", "interaction_up", "interaction_down", "interaction_mixed")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    bags = np.repeat(np.arange(24), 6)
    y = (bags % 3 == 0).astype(int)
    X = np.clip(rng.normal(-0.2, 0.4, (len(bags), 2)), -1, 1)
    targets = (y == 1) & (rng.random(len(bags)) < 0.4)
    X[targets] = rng.uniform([0.2, -0.9], [1.0, -0.2], (int(targets.sum()), 2))
    return X, y, bags


@pytest.fixture(scope="module")
def model(data):
    X, y, bags = data
    solver = ConvexSolver(n_starts=2)
    return BiMIChI(solver=solver, polarity="learn", source_names=["a", "b"], random_state=0).fit(X, y, bags=bags)


@pytest.fixture(scope="module")
def found(model, data):
    return bootstrap(model, *data, n_resamples=12, level=0.8, random_state=3, n_jobs=1)


def test_intervals_are_percentiles_of_the_refits(model, found):
    assert found.values.shape == (12, 9)
    np.testing.assert_allclose(found.lower, np.quantile(found.values, 0.1, axis=0))
    np.testing.assert_allclose(found.upper, np.quantile(found.values, 0.9, axis=0))
    assert (found.lower <= found.upper).all()
    assert found.lower[4] == found.upper[4] == 1
    assert found.lower[8] == found.upper[8] == -1
    refits = [indices(type(model.bicapacity_)(values, ["a", "b"], zero_bound=False)) for values in found.values]
    for name in CHECKED:
        low = np.quantile([getattr(one, name) for one in refits], 0.1, axis=0)
        np.testing.assert_allclose(getattr(found.indices_lower, name), low, atol=1e-12)
        assert np.array_equal(getattr(found.indices, name), getattr(indices(model), name), equal_nan=True)
    assert found.measure == model.bicapacity_
    assert found.converged == 12
    assert found.level == 0.8
    assert np.ptp(found.values, axis=0).max() > 0.01


def test_the_same_for_every_number_of_threads_and_way_to_hold_bags(model, data, found):
    X, y, bags = data
    for again in (
        bootstrap(model, X, y, bags, n_resamples=12, level=0.8, random_state=3, n_jobs=2),
        bootstrap(model, Bags.from_instances(X, y, bags), n_resamples=12, level=0.8, random_state=3),
    ):
        assert np.array_equal(again.values, found.values)
        assert again.redrawn == found.redrawn
    other = bootstrap(model, X, y, bags, n_resamples=12, random_state=4, n_jobs=2)
    assert not np.array_equal(other.values, found.values)


def test_a_bag_drawn_twice_weighs_twice(model, data, found):
    """One refit by hand: copies of bags instead of weights, and no instance dropped beforehand.

    J is compared, because several measures may have the least.
    """
    X, y, bags = data
    stream = np.random.default_rng(3).spawn(12)[0]
    counts, _ = _draw(Bags.from_instances(X, y, bags).labels, stream)
    rows = np.concatenate([np.flatnonzero(bags == b) for b, count in enumerate(counts) for _ in range(count)])
    copies = np.repeat(np.arange(counts.sum()), 6)
    copied = Bags.from_instances(X[rows] * model.polarity_, y[rows], copies)
    by_hand = BiMIChI(solver=ConvexSolver(n_starts=2), random_state=int(stream.integers(2**31))).fit(copied)
    problem = InMemory(copied, OBJECTIVES["bipolar"])
    assert problem.value(found.values[0]) == pytest.approx(by_hand.objective_value_, rel=1e-6)
    assert problem.value(model.bicapacity_.values) > by_hand.objective_value_ * 1.001


def test_resampled_bags_hold_what_was_drawn(data):
    X, y, ids = data
    bags = Bags.from_instances(X, y, ids, sample_weight=1 + ids % 2)
    counts = np.zeros(len(bags), np.int64)
    counts[[0, 4]] = 3, 2
    drawn = _resampled(bags, counts)
    assert drawn.ids == [0, 4]
    assert drawn.weights.tolist() == [3, 2]
    assert drawn.offsets.tolist() == [0, 6, 12]
    assert np.array_equal(drawn.X, X[(ids == 0) | (ids == 4)])
    assert drawn.labels.tolist() == [True, False]


def test_draws_without_one_kind_of_bag_are_made_again_and_counted():
    rng = np.random.default_rng(0)
    labels = np.array([True, False, False])
    drawn = [_draw(labels, rng) for _ in range(300)]
    for counts, _ in drawn:
        assert counts.sum() == 3
        assert counts[0] > 0
        assert counts[1:].sum() > 0
    again = sum(number for _, number in drawn)
    bad = (2 / 3) ** 3 + (1 / 3) ** 3
    assert again / 300 == pytest.approx(bad / (1 - bad), abs=0.15)
    X = [[0.5], [-0.5]]
    model = BiMIChI(random_state=0).fit(X, [1, 0])
    assert bootstrap(model, X, [1, 0], n_resamples=20).redrawn > 0


def test_scale_and_polarity_stay_as_fitted(data):
    X, y, bags = data
    X = X * [-1, 1]
    labels = np.where(y == 1, "yes", "no")
    model = BiMIChI("mean", polarity="learn", scale="minmax", random_state=0).fit(50 * X, labels, bags=bags)
    assert (model.polarity_ < 0).any()
    found = bootstrap(model, 50 * X, labels, bags, n_resamples=3)
    entered = np.clip((50 * X - model.rule_.centre) * model.rule_.factor, -1, 1) * model.polarity_
    plain = BiMIChI("mean", random_state=0).fit(entered, y, bags=bags)
    same = bootstrap(plain, entered, y, bags, n_resamples=3)
    np.testing.assert_allclose(found.values, same.values, atol=1e-7)


def test_a_checkpoint_belongs_to_one_search(data, tmp_path):
    X, y, bags = data
    solver = EvolutionarySolver(population_size=4, max_iter=20, checkpoint=tmp_path / "state")
    model = BiMIChI(solver=solver, random_state=0).fit(X, y, bags=bags)
    before = (tmp_path / "state").read_bytes()
    found = bootstrap(model, X, y, bags, n_resamples=3)
    assert (tmp_path / "state").read_bytes() == before
    assert len(np.unique(found.values, axis=0)) == 3
    assert found.converged == 0


def test_tables_show_intervals_and_leave_out_open_elements(found):
    text = repr(found)
    assert text.startswith("Stability over 12 resamples: 80% intervals")
    assert f"{found.indices.up[0]:.2f} ({found.indices_lower.up[0]:.2f} .. {found.indices_upper.up[0]:.2f})" in text
    assert found._repr_html_().count("<table>") == 1
    shown = found.element_table().to_text()
    assert "g_{a,b}" in shown
    assert "∅,∅" not in shown
    model = BiMIChI("mean", random_state=0).fit([[0.9, 0.3], [-0.9, -0.3]], [1, 0])
    partly = bootstrap(model, [[0.9, 0.3], [-0.9, -0.3]], [1, 0], n_resamples=2)
    assert [row[0].text for row in partly.element_table().rows] == ["g_{1,∅}", "g_{∅,1}", "g_{12,∅}", "g_{∅,12}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 0}, "whole-number:n_resamples"),
        ({"n_resamples": True}, "whole-number:n_resamples"),
        ({"level": 1.0}, "number-range:level"),
        ({"level": "90 %"}, "number-range:level"),
        ({"n_jobs": 0}, "n-jobs:n_jobs"),
        ({"random_state": "x"}, "random-state:random_state"),
        ({"y": None}, "labels-missing:y"),
        ({"y": np.full(144, 7)}, "label-unknown:y"),
        ({"X": np.zeros((144, 3))}, "sources-number"),
        ({"X": np.full((144, 2), 5.0)}, "source-range"),
    ],
)
def test_bad_input(model, data, options, message):
    X, y, bags = data
    arguments = {"X": X, "y": y, "bags": bags, "n_resamples": 2} | options
    with refused(message):
        bootstrap(model, **arguments)


def test_bags_come_alone(model, data):
    with refused("bags-with-labels"):
        bootstrap(model, Bags.from_instances(*data), data[1])
    with refused("training-missing"):
        bootstrap(model.bicapacity_, *data)


def test_many_sources_are_refused(rng):
    X = rng.uniform(-1, 1, (4, 13))
    model = BiMIChI("mean").fit(X, [0, 1, 0, 1])
    with refused("sources-many", "13"):
        bootstrap(model, X, [0, 1, 0, 1])
