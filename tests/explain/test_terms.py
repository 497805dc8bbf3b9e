"""Additive measures are explained by their terms; up to the sources that elements allow, elements say the same."""

import naive_explain
import numpy as np
import pytest

from bimichi import AdditiveBiCapacity, BiMIChI, choquet
from bimichi.explain import bootstrap, chain, contributions, data_indices, identifiability, indices, summary

ARRAYS = ("up", "down", "shapley", "interaction_up", "interaction_down", "interaction_mixed")
CASES = [(m, order) for m in range(1, 7) for order in (1, 2)]


def instances(m, rng, n=30):
    X = rng.uniform(-1, 1, (n, m))
    X[0] = 0
    X[1] = 0.5
    X[2] = -X[1]
    return X


@pytest.mark.parametrize(("m", "order"), CASES)
def test_terms_say_what_elements_say(m, order, rng):
    terms = AdditiveBiCapacity.random(m, m, order=order)
    elements, X = terms.to_bicapacity(), instances(m, rng)
    np.testing.assert_allclose(contributions(terms, X), contributions(elements, X), rtol=0, atol=1e-12)
    for found, expected in (
        (indices(terms), indices(elements)),
        (data_indices(terms, X), data_indices(elements, X)),
    ):
        for name in set(ARRAYS) & set(vars(found)) | {"interaction_up", "interaction_down", "interaction_mixed"}:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-12)
    assert data_indices(terms, X).share == pytest.approx(data_indices(elements, X).share)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_contributions_agree_with_plain_loops(m, rng):
    terms, X = AdditiveBiCapacity.random(m, m), instances(m, rng, 8)
    g = naive_explain.as_dict(terms.to_bicapacity().values.tolist(), m)
    expected = [naive_explain.contributions(x, g) for x in X.tolist()]
    np.testing.assert_allclose(contributions(terms, X), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("m", "order"), [*CASES, (20, 2), (64, 1), (64, 2)])
def test_chains_list_terms_that_add_up(m, order, rng):
    measure, X = AdditiveBiCapacity.random(m, m, order=order), instances(m, rng, 6)
    for x, total in zip(X, choquet(X, measure), strict=True):
        found = chain(measure, x)
        assert found.total == pytest.approx(total, abs=1e-12)
        assert len({step.code for step in found.steps}) == len(found.steps) <= m * (m + 1) // 2
        for step in found.steps:
            up, down = measure.sets(step.code)
            names = measure.source_names
            sizes = [abs(x[names.index(name)]) for name in up + down]
            assert step.weight == min(sizes) > 0
            assert step.value == measure.terms[step.code] != 0
            assert all(x[names.index(name)] >= 0 for name in up)
            assert all(x[names.index(name)] < 0 for name in down)
        pairs = [abs(step.product) for step in found.steps if step.code >= 2 * m]
        assert pairs == sorted(pairs, reverse=True)
    assert "b_{" in repr(chain(AdditiveBiCapacity.random(2, 0, ["thermal", "rgb"]), [0.5, -0.2]))


@pytest.mark.parametrize("order", [1, 2])
def test_sixty_four_sources(order, rng):
    measure = AdditiveBiCapacity.random(64, 0, order=order)
    X = rng.uniform(-1, 1, (500, 64)).astype(np.float32)
    X[3, 5] = np.nan
    parts = contributions(measure, X)
    assert parts.dtype == np.float32
    assert np.isnan(parts[3]).all()
    np.testing.assert_allclose(parts.sum(axis=1), choquet(X, measure), atol=1e-5)
    assert indices(measure).shapley.sum() == pytest.approx(2)
    assert data_indices(measure, X).n_instances == 499
    assert summary(measure, X).sentences
    assert "8,192 terms" in repr(identifiability(measure, X)) or order == 1
    assert repr(chain(measure, X[0].astype(float)))


def test_a_term_is_used_by_instances_on_its_sides():
    measure = AdditiveBiCapacity.random(2, 0, ["a", "b"])
    found = identifiability(measure, [[0.5, -0.25], [0.5, 0.0], [-1.0, -0.5]])
    table = {row[0].text: [cell.text for cell in row[2:]] for row in found.to_table().rows}
    assert found.to_table().header == ["term", "b", "touched", "weighted", "weight"]
    assert table == {
        "b_{a,∅}": ["2", "2", "1.00"],
        "b_{b,∅}": ["1", "0", "0.00"],
        "b_{∅,a}": ["1", "1", "1.00"],
        "b_{∅,b}": ["2", "2", "0.75"],
        "b_{ab,∅}": ["1", "0", "0.00"],
        "b_{a,b}": ["1", "1", "0.25"],
        "b_{b,a}": ["0", "0", "0.00"],
        "b_{∅,ab}": ["1", "1", "0.50"],
    }
    assert not found.open.any()
    assert np.isnan(found.lower).all()
    assert (found.n_used, found.n_free) == (5, 8)
    assert "5 of 8 terms are used. Intervals are not applicable: the terms" in repr(found)


def test_the_summary_is_about_terms(data):
    X, y, bags, _ = data
    model = BiMIChI("mean", additivity=2, random_state=0).fit(X, y, bags=bags)
    fact = next(fact for fact in summary(model, X).facts if fact.kind == "terms")
    assert fact.numbers == {"used": 18, "terms": 18}
    assert fact.sentence == "The training data used all 18 terms of the measure."
    high = BiMIChI("mean", additivity=1).fit(np.abs(X), y, bags=bags)
    assert "used 3 of 6 terms of the measure; the solver chose the others." in str(summary(high, X))


def test_the_bootstrap_has_intervals_of_terms(data):
    X, y, bags, _ = data
    model = BiMIChI("mean", additivity=1, source_names=["a", "b", "c"]).fit(X, y, bags=bags)
    found = bootstrap(model, X, y, bags, n_resamples=20, level=0.8)
    np.testing.assert_allclose(found.lower, np.quantile(found.values, 0.1, axis=0))
    assert not found.open[:6].any()
    table = found.element_table()
    assert table.header == ["term", "b"]
    assert len(table.rows) == 6
    assert f"{model.measure_.up[0, 0]:.2f} ({found.lower[0]:.2f} .. {found.upper[0]:.2f})" in table.to_text()
    many = BiMIChI("mean", additivity=1).fit(np.hstack([X] * 7), y, bags=bags)
    assert bootstrap(many, np.hstack([X] * 7), y, bags, n_resamples=2).values.shape == (2, 2 * 21**2)
