import naive_explain
import numpy as np
import pytest
from refusals import refused

from bimichi import BiCapacity, BiMIChI, Capacity, choquet
from bimichi.explain import data_indices, indices
from bimichi.measures.lattice import pair_lattice

NAMES = ("up", "down", "shapley", "interaction_up", "interaction_down", "interaction_mixed")


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_bicapacity_agrees_with_plain_loops(m, zero_bound):
    measure = BiCapacity.random(m, zero_bound, m)
    g, found, nothing = naive_explain.as_dict(measure.values.tolist(), measure.n_sources), indices(measure), frozenset()
    for i in range(m):
        one = frozenset([i])
        assert found.up[i] == pytest.approx(naive_explain.interaction(g, m, one, nothing), abs=1e-13)
        assert found.down[i] == pytest.approx(naive_explain.interaction(g, m, nothing, one), abs=1e-13)
        for j in range(m):
            both = frozenset([i, j])
            of = (found.interaction_up[i, j], found.interaction_down[i, j], found.interaction_mixed[i, j])
            if i == j:
                assert np.isnan(of).all()
                continue
            expected = [
                naive_explain.interaction(g, m, both, nothing),
                naive_explain.interaction(g, m, nothing, both),
                naive_explain.interaction(g, m, one, frozenset([j])),
            ]
            np.testing.assert_allclose(of, expected, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_capacity_agrees_with_plain_loops(m):
    measure = Capacity.random(m, m)
    g, found = naive_explain.as_dict(measure.values.tolist(), measure.n_sources), indices(measure)
    assert found.shapley.sum() == pytest.approx(1, abs=1e-13)
    assert np.array_equal(found.up, found.shapley)
    assert not found.down.any()
    for i in range(m):
        assert found.shapley[i] == pytest.approx(naive_explain.game_interaction(g, m, frozenset([i])), abs=1e-13)
        for j in range(i + 1, m):
            expected = naive_explain.game_interaction(g, m, frozenset([i, j]))
            assert found.interaction_up[i, j] == pytest.approx(expected, abs=1e-13)
            assert found.interaction_down[i, j] == found.interaction_mixed[i, j] == found.interaction_mixed[j, i] == 0


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", range(1, 9))
def test_shapley_values_add_up_to_two(m, zero_bound):
    found = indices(BiCapacity.random(m, zero_bound, 7))
    assert found.shapley.sum() == pytest.approx(2, abs=1e-12)
    np.testing.assert_allclose(found.up + found.down, found.shapley, rtol=0, atol=0)
    assert (found.up >= -1e-12).all()
    assert (found.down >= -1e-12).all()


def test_an_additive_measure_has_its_weights_and_no_interaction(rng):
    weights = rng.dirichlet(np.ones(6))
    found = indices(BiCapacity.additive(weights))
    np.testing.assert_allclose(found.up, weights, atol=1e-14)
    np.testing.assert_allclose(found.down, weights, atol=1e-14)
    np.testing.assert_allclose(found.shapley, 2 * weights, atol=1e-14)
    for name in NAMES[3:]:
        matrix = getattr(found, name)
        assert np.nanmax(np.abs(matrix)) < 1e-14
        assert np.isnan(np.diag(matrix)).all()
    one_sided = indices(Capacity.additive(weights))
    np.testing.assert_allclose(one_sided.shapley, weights, atol=1e-14)


def test_two_capacities_keep_their_own_sides():
    up, down = Capacity.random(4, 1), Capacity.random(4, 2)
    found = indices(BiCapacity.from_capacities(up, down))
    np.testing.assert_allclose(found.up, indices(up).shapley, atol=1e-14)
    np.testing.assert_allclose(found.down, indices(down).shapley, atol=1e-14)
    np.testing.assert_allclose(found.interaction_up, indices(up).interaction_up, atol=1e-14)
    np.testing.assert_allclose(found.interaction_down, -indices(down).interaction_up, atol=1e-14)
    assert np.nanmax(np.abs(found.interaction_mixed)) < 1e-14


def test_tables_name_sources_and_pairs():
    found = indices(BiCapacity.additive([0.75, 0.25], ["thermal", "<rgb>"]))
    assert "| thermal | 0.75 | 0.75 | 1.50 |" in found.to_table().to_markdown()
    assert "thermal, &lt;rgb&gt;" in found._repr_html_()
    one_sided = repr(indices(Capacity.additive([0.75, 0.25])))
    assert "down" not in one_sided
    assert "1, 2         0.00" in one_sided
    assert "pair" not in repr(indices(BiCapacity([0, 1, -1])))


def test_twelve_sources_are_quick_and_more_are_referred_to_data():
    assert indices(BiCapacity.additive(np.full(12, 1 / 12))).shapley.sum() == pytest.approx(2)
    with refused("sources-many", "13", "data_indices(measure, X)"):
        indices(Capacity.additive(np.full(13, 1 / 13)))


@pytest.mark.parametrize("wrong", [None, "thermal", pair_lattice(2), BiMIChI])
def test_what_cannot_be_explained_is_named(wrong):
    with refused("rule-kind"):
        indices(wrong)


def naive_data_indices(measure, X):
    g, m = naive_explain.as_dict(measure.values.tolist(), measure.n_sources), measure.n_sources
    parts = np.array([naive_explain.contributions(x, g) for x in X.tolist()])
    up, down, mixed = np.zeros((3, m, m))
    for x in X.tolist():
        game = naive_explain.game(x, g)
        for i in range(m):
            for j in range(m):
                value = 0.0 if i == j else naive_explain.game_interaction(game, m, frozenset([i, j])) / len(X)
                if x[i] >= 0 and x[j] >= 0:
                    up[i, j] += value
                elif x[i] < 0 and x[j] < 0:
                    down[i, j] += value
                elif x[i] >= 0:
                    mixed[i, j] -= value
    return parts, up, down, mixed


@pytest.mark.parametrize("kind", ["zero bound", "no zero bound", "capacity"])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_data_indices_agree_with_plain_loops(m, kind, rng):
    measure = Capacity.random(m, m) if kind == "capacity" else BiCapacity.random(m, kind == "zero bound", m)
    X = rng.uniform(0 if kind == "capacity" else -1, 1, (12, m))
    X[0] = 0
    X[1] = X[1, 0]
    found = data_indices(measure, X)
    parts, up, down, mixed = naive_data_indices(measure, X)
    total = np.abs(parts).sum() / len(X)
    assert found.magnitude == pytest.approx(total)
    high = X >= 0
    np.testing.assert_allclose(found.share, np.abs(parts).mean(axis=0) / total, atol=1e-13)
    np.testing.assert_allclose(found.share_up, np.where(high, np.abs(parts), 0).mean(axis=0) / total, atol=1e-13)
    np.testing.assert_allclose(found.signed, parts.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(found.signed_down, np.where(high, 0, parts).mean(axis=0), atol=1e-13)
    off = ~np.eye(m, dtype=bool)
    for matrix, expected in zip(
        (found.interaction_up, found.interaction_down, found.interaction_mixed), (up, down, mixed), strict=True
    ):
        np.testing.assert_allclose(matrix[off], expected[off], atol=1e-13)
        assert np.isnan(np.diag(matrix)).all()


def test_data_indices_add_up(rng):
    measure = BiCapacity.random(5, False, 0)
    X = rng.uniform(-1, 1, (500, 5))
    found = data_indices(measure, X)
    assert found.share.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.share_up + found.share_down, found.share)
    np.testing.assert_allclose(found.signed_up + found.signed_down, found.signed)
    assert found.signed.sum() == pytest.approx(choquet(X, measure).mean())
    assert "500 instances" in repr(found)
    assert found._repr_html_().count("<table>") == 1


def test_data_indices_do_not_depend_on_threads_or_layout(rng):
    measure = BiCapacity.random(3, True, 0)
    X = rng.uniform(-1, 1, (3, 200_001)).astype(np.float32)
    X[1, ::7] = np.nan
    first = data_indices(measure, list(X), n_jobs=1)
    for again in (data_indices(measure, list(X), n_jobs=3), data_indices(measure, X.T)):
        for name in ("share", "signed_up", "interaction_mixed"):
            assert np.array_equal(getattr(first, name), getattr(again, name), equal_nan=True)
    kept = data_indices(measure, X.T[~np.isnan(X[1])])
    assert first.n_instances == kept.n_instances
    np.testing.assert_allclose(first.share, kept.share, atol=1e-9)


def test_data_indices_of_silence_and_of_nothing():
    measure = BiCapacity.additive([0.5, 0.5])
    silent = data_indices(measure, np.zeros((4, 2)))
    assert silent.magnitude == 0
    assert not silent.share.any()
    for nothing in (np.full((3, 2), np.nan), np.empty((0, 2))):
        with refused("no-complete-instance"):
            data_indices(measure, nothing)


def test_data_indices_of_many_sources(rng):
    found = data_indices(Capacity.additive(np.full(13, 1 / 13)), rng.uniform(0, 1, (50, 13)))
    assert found.share.sum() == pytest.approx(1)
    assert np.nanmax(np.abs(found.interaction_up)) < 1e-10
