import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused, warned
from sklearn.base import clone

from bimichi import (
    MICI,
    Bags,
    BiCapacity,
    BiCapacityQP,
    BiMIChI,
    MeanFusion,
    Scene,
    WeightedMeanFusion,
)
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.problem import InMemory

X = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.1, 0.2]])


def same(a, b):
    return (
        np.array_equal(a.X, b.X)
        and np.array_equal(a.offsets, b.offsets)
        and np.array_equal(a.labels, b.labels)
        and np.array_equal(a.weights, b.weights)
    )


@pytest.mark.parametrize(
    ("ids", "y"),
    [
        ([7, 3, 7, 3], [1, 0, 1, 0]),
        (["b", "a", "b", "a"], [1, -1, 1, -1]),
        ([(1, 2), None, (1, 2), None], [True, False, True, False]),
        ([0.5, 1.5, 0.5, 1.5], [1.0, 0.0, 1.0, 0.0]),
    ],
)
def test_every_way_to_hold_bags_gives_the_same(ids, y):
    bags = Bags.from_instances(X, y, ids)
    assert bags.ids == [ids[0], ids[1]]
    assert bags.instance.tolist() == [0, 2, 1, 3]
    assert same(bags, Bags.from_list([X[[0, 2]], X[[1, 3]]], [1, 0]))
    assert same(bags, Bags.from_image(X.reshape(2, 2, 2), [[4, 9], [4, 9]], {4: 1, 9: 0}))
    assert same(bags, Bags.from_image([X[:, 0].reshape(2, 2), X[:, 1].reshape(2, 2)], [[0, 1], [0, 1]], [1, 0]))
    assert "1 positive, 1 negative; 4 instances of 2 sources" in repr(bags)


def test_each_instance_its_own_bag():
    bags = Bags.from_instances(X, [1, 0, 1, 0])
    assert len(bags) == 4
    assert bags.labels.tolist() == [True, False, True, False]


def test_segments_without_a_label_are_left_out():
    bags = Bags.from_image(X.reshape(2, 2, 2), [[4, 9], [5, 9]], {4: 1, 9: 0})
    assert bags.ids == [4, 9]
    assert bags.instance.tolist() == [0, 1, 3]


def test_weights_scale_terms_and_zero_leaves_out(rng):
    data = rng.uniform(-1, 1, (30, 2))
    ids = np.repeat(np.arange(6), 5)
    y = ids % 2
    values = BiCapacity.random(2, False, 1).values
    objective = OBJECTIVES["bipolar"]

    def J(weight):
        return InMemory(Bags.from_instances(data, y, ids, weight), objective).value(values)

    single = [J(np.isin(ids, [b, 1 - b % 2]).astype(float)) for b in range(6)]
    ones = J(None)
    weights = rng.uniform(0.5, 2, 6)
    terms = [
        InMemory(Bags.from_instances(data, y, ids, np.where(ids == b, 2.0, 1.0)), objective).value(values) - ones
        for b in range(6)
    ]
    assert J(weights[ids]) == pytest.approx(float(weights @ terms))
    assert min(single) > 0
    gone = np.where(ids == 5, 0.0, 1.0)
    assert J(gone) == pytest.approx(sum(terms[:5]))
    assert Bags.from_instances(data, y, ids, gone).ids == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bags.from_instances(X, [1, 0, 0, 0], [1, 2, 1, 2]), "bag-constant"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], [1, 2, 1, 2], [1, 1, 2, 1]), "bag-constant:sample_weight"),
        (lambda: Bags.from_instances(X, [1, 1, 1, 1]), "one-class"),
        (lambda: Bags.from_instances(X, [0, 0, 0, 0]), "one-class"),
        (lambda: Bags.from_instances(X, [1, 2, 1, 2]), "labels-binary:Labels"),
        (lambda: Bags.from_instances(X, ["a", "b", "a", "b"]), "labels-binary:Labels"),
        (lambda: Bags.from_instances(X, [1, 0]), "entries-shape:y"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], [1, 2]), "bags-length:bags"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], [[], [], [], []]), "bags-hashable"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], 5), "bags-kind:bags"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], [1.0, np.nan, 1.0, np.nan]), "bags-nan"),
        (lambda: Bags.from_instances(X * np.inf, [1, 0, 1, 0]), "infinite"),
        (lambda: Bags.from_image(X.reshape(2, 2, 2), [[0, 1], [0, 1]], {"a": 1, 1: 0}), "labels-segments"),
        (lambda: InMemory(Bags.from_instances(5 * X, [1, 0, 1, 0]), OBJECTIVES["mean"]), "source-range"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], sample_weight=[-1, 1, 1, 1]), "weights-negative"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], sample_weight=[0, 0, 0, 0]), "bags-missing"),
        (lambda: Bags.from_instances(X[0], [1]), "rows-shape"),
        (lambda: Bags.from_instances(X.astype(complex), [1, 0, 1, 0]), "real-numbers"),
        (lambda: Bags.from_instances(X, [1, 0, 1, 0], nan="skip"), "choice:nan"),
        (lambda: Bags.from_list([], []), "bags-missing"),
        (lambda: Bags.from_list([X, X[:0]], [1, 0]), "bag-empty"),
        (lambda: Bags.from_list([X, X[:, :1]], [1, 0]), "bag-sources"),
        (lambda: Bags.from_list([X, X], [1]), "entries-shape:labels"),
        (lambda: Bags.from_image(X.reshape(2, 2, 2), [[0, 1]], [1, 0]), "segments-shape:segments"),
        (lambda: Bags.from_image(X.reshape(2, 2, 2), [[0, 1], [0, 2]], [1, 0]), "labels-segments"),
        (lambda: Bags.from_image(X.reshape(2, 2, 2), [[0, 1], [0, 1]], {0: 1, 1: 0, 7: 1}), "labels-segments"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()


def test_nan_instances_are_an_error_or_dropped_with_a_count():
    holed = np.concatenate([X, [[np.nan, 0]]])
    with refused("nan"):
        Bags.from_instances(holed, [1, 0, 1, 0, 0], [0, 1, 0, 1, 1])
    with warned("instances-left-out"):
        bags = Bags.from_instances(holed, [1, 0, 1, 0, 0], [0, 1, 0, 1, 1], nan="drop")
    assert len(bags.X) == 4
    with warned("instances-left-out"):
        bags = Bags.from_instances(holed, [1, 0, 1, 0, 0], nan="drop")
    assert bags.ids == [0, 1, 2, 3]


@settings(max_examples=120)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(OBJECTIVES)), st.integers(1, 4))
def test_dropped_instances_never_matter(seed, name, m):
    """J of all instances by the oracle equals J of those that are kept, for any measure."""
    rng = np.random.default_rng(seed)
    grid = rng.choice([np.linspace(-1, 1, 5), np.array([-1.0, 1.0]), np.linspace(-1, 1, 41)][rng.integers(3)], (60, m))
    if rng.random() < 0.5:
        grid[:, 0] = np.sign(grid[:, 0] + 0.01)
    parts = np.split(grid, np.sort(rng.choice(np.arange(1, 60), 5, replace=False)))
    labels = [True, False, True, False, False, True]
    objective = OBJECTIVES[name]
    problem = InMemory(Bags.from_list(parts, labels), objective)
    for _ in range(3):
        g = BiCapacity.random(m, objective.zero_bound, rng)
        table = {pair: g[pair] for pair in naive.pairs(m)}
        expected = naive.objective(name, [part.tolist() for part in parts], labels, table)
        assert problem.value(g.values) == pytest.approx(expected, abs=1e-12)


def test_much_is_dropped_where_it_can_be(rng):
    data = rng.uniform(-1, 1, (2000, 3))
    ids, y = np.repeat([0, 1], 1000), np.repeat([0, 1], 1000)
    bags = Bags.from_instances(data, y, ids)
    assert len(bags.reduced("all", False).X) == 2000
    assert len(bags.reduced("maximal", False).X) == 2000  # no two share max|x|
    assert len(bags.reduced("extreme", True).X) < 400
    data[:, 0] = np.sign(data[:, 0])
    assert len(Bags.from_instances(data, y, ids).reduced("maximal", False).X) < 100
    doubled = Bags.from_instances(np.concatenate([data, data]), np.tile(y, 2), np.tile(ids, 2)).merged()
    assert len(doubled.X) == 2000
    assert (doubled.counts == 2).all()


@pytest.mark.parametrize("divisor", [128, 127.5, 1])
def test_round_numbers_are_merged_as_quickly(divisor):
    """Values whose low bits are all alike must not end in one slot of the table (which took minutes)."""
    data = np.random.default_rng(0).integers(0, 256, (200_000, 3)) / divisor
    bags = Bags.from_instances(data, np.arange(200_000) < 100_000, np.arange(200_000) < 100_000).merged()
    expected = sum(len(np.unique(part, axis=0)) for part in (data[:100_000], data[100_000:]))
    assert len(bags.X) == expected


def test_mixed_bags_do_not_hide_behind_weights_or_nan():
    with refused("bag-constant:sample_weight"):
        Bags.from_instances(X, [1, 0, 1, 0], [1, 2, 1, 2], [0, 1, 1, 1])
    holed = X.copy()
    holed[2] = np.nan
    with refused("bag-constant:y"):
        Bags.from_instances(holed, [1, 0, 0, 0], [1, 2, 1, 2], nan="drop")


def test_negative_zero_is_zero_when_merging():
    bags = Bags.from_list([[[0.0, 1.0], [-0.0, 1.0]], [[0.5, 0.5]]], [1, 0]).merged()
    assert len(bags.X) == 2


def test_extremes_and_gram_agree_with_the_rows(rng):
    parts = [rng.uniform(-1, 1, (7, 3)) for _ in range(4)]
    problem = InMemory(Bags.from_list(parts, [1, 0, 1, 0]), OBJECTIVES["mean"])
    g = BiCapacity.random(3, False, 2)
    table = {pair: g[pair] for pair in naive.pairs(3)}
    fused = [[naive.choquet(x, table) for x in part.tolist()] for part in parts]
    seen = problem.extremes(g.values)
    np.testing.assert_allclose(seen.low, [min(part) for part in fused], atol=1e-14)
    np.testing.assert_allclose(seen.high, [max(part) for part in fused], atol=1e-14)
    for row, value in [*zip(seen.low_row, seen.low, strict=True), *zip(seen.high_row, seen.high, strict=True)]:
        codes, weights = problem.rows(np.array([row]))
        assert float((weights * g.values[codes]).sum()) == pytest.approx(value)
    gram = problem.total("gram", targets=(-1.0, 1.0))
    quadratic = g.values @ (gram.matrix @ g.values) - 2 * gram.linear @ g.values + gram.constant
    assert quadratic == pytest.approx(problem.value(g.values))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_inverted_problem_is_the_problem_of_inverted_bags(name, rng):
    data = np.round(rng.uniform(-1, 1, (80, 3)), 1)  # with zeros and equal instances
    bags = Bags.from_instances(data, np.arange(80) % 4 == 0, np.arange(80) % 8)
    problem = InMemory(bags, OBJECTIVES[name])
    problem.total("gram", targets=(-1.0, 1.0))
    for signs in np.array([[1, 1, 1], [-1, 1, 1], [1, -1, -1], [-1, -1, -1]], dtype=float):
        inverted, direct = problem.with_signs(signs), InMemory(bags.with_signs(signs), OBJECTIVES[name])
        back = inverted.with_signs(signs)
        for seed in range(5):
            values = BiCapacity.random(3, OBJECTIVES[name].zero_bound, seed).values
            assert inverted.value(values) == pytest.approx(direct.value(values), rel=1e-12)
            assert back.value(values) == pytest.approx(problem.value(values), rel=1e-12)
            for ours, theirs in zip(inverted.extremes(values)[:2], direct.extremes(values)[:2], strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-14)
        ours, theirs = (p.total("gram", targets=(-1.0, 1.0)) for p in (inverted, direct))
        np.testing.assert_allclose(ours.matrix.toarray(), theirs.matrix.toarray(), atol=1e-12)
        np.testing.assert_allclose(ours.linear, theirs.linear, atol=1e-12)
        for ours, theirs in ((inverted.usage_counts(flag), direct.usage_counts(flag)) for flag in (False, True)):
            np.testing.assert_array_equal(ours, theirs)


def test_cutting_bags_for_threads_changes_nothing(rng, monkeypatch):
    data = np.round(rng.uniform(-1, 1, (300, 2)), 1)
    bags = Bags.from_instances(data, np.arange(300) % 3 == 0, np.arange(300) % 30)
    whole = bags.reduced("extreme", True, 1)
    monkeypatch.setattr("bimichi.scenes.bags.SMALL_CHUNK", 7)
    assert len(bags._parts()) > 20
    for jobs in (1, 3):
        cut = bags.reduced("extreme", True, jobs)
        assert same(cut, whole)
        assert np.array_equal(cut.counts, whole.counts)
        assert np.array_equal(cut.instance, whole.instance)


@pytest.mark.parametrize("which", ["X", "y", "bags", "sample_weight"])
@pytest.mark.parametrize("method", [BiMIChI(), MeanFusion(bipolar_input=True), MICI("min-max", bipolar_input=True)])
def test_masked_arrays_are_refused(which, method):
    """Masks were ignored, so that masked values counted."""
    given = {"X": np.zeros((4, 2)), "y": np.array([0, 0, 1, 1]), "bags": np.arange(4), "sample_weight": np.ones(4)}
    if which == "sample_weight" and isinstance(method, MeanFusion):
        return
    given = {name: array for name, array in given.items() if name in ("X", "y", which)}
    given[which] = np.ma.masked_array(given[which], np.zeros(given[which].shape, bool))
    with refused(f"masked-array:{which}"):
        clone(method).fit(**given)


def test_masked_arrays_of_bags_and_scenes_are_refused():
    X, segments = np.zeros((2, 2, 2)), np.array([[0, 0], [1, 1]])
    masked = np.ma.masked_array
    for make, what in (
        (lambda: Bags.from_list([masked(X[0]), X[1]], [0, 1]), "bag 0"),
        (lambda: Bags.from_list([X[0], X[1]], masked([0, 1])), "labels"),
        (lambda: Bags.from_image(masked(X), segments, [0, 1]), "X"),
        (lambda: Bags.from_image(X, masked(segments), [0, 1]), "segments"),
        (lambda: Bags.from_image(X, segments, masked([0, 1])), "labels"),
        (lambda: Scene(masked(X)), "sources"),
        (lambda: Scene(X, truth=masked(segments > 0)), "truth"),
    ):
        with refused(f"masked-array:{what}"):
            make()


@pytest.mark.parametrize("method", [BiMIChI(), BiMIChI("mean"), BiCapacityQP(), WeightedMeanFusion(bipolar_input=True)])
def test_weights_that_overflow_are_refused(method):
    X, y = np.array([[0.1, 0.2], [-0.3, 0.9], [0.5, -0.6], [0.2, 0.2]]), [0, 0, 1, 1]
    with refused("weights-large:sample_weight", "308"):
        clone(method).fit(X, y, sample_weight=np.full(4, 1e308))
    model = clone(method).fit(X, y, sample_weight=np.full(4, 1e90))
    assert np.isfinite(model.objective_value_)


def test_class_weights_that_overflow_are_refused():
    with refused("weights-negative:class_weight"):
        BiCapacityQP(class_weight={0: 1e308, 1: 1e308}).fit([[0.1], [0.5]], [0, 1], sample_weight=[10, 10])
