"""Every method that learns a measure, with every additivity, is explained by every function."""

import subprocess
import sys

import numpy as np
import pytest
from methods import BARE, MEASURED

from bimichi import BiCapacity, Capacity, as_rule
from bimichi.explain import bootstrap, chain, contributions, data_indices, identifiability, indices, summary


def rows_of(data, name):
    return np.abs(data[0]) if name == "capacity" else data[0]


@pytest.mark.parametrize("name", [*MEASURED, *BARE])
def test_chain_and_contributions_add_up_to_the_integral(model_of, data, name):
    model, X = model_of(name), rows_of(data, name)
    rule = as_rule(model)
    total, offset = (rule.integral(X), 0.0) if rule.link is None else (rule.log_odds(X), rule.link.offset)
    np.testing.assert_allclose(offset + contributions(model, X).sum(axis=1), total, rtol=0, atol=1e-12)
    for k in (0, 36, 100):
        steps = chain(model, X[k])
        assert steps.total == pytest.approx(total[k], abs=1e-12)
        ends = 1 if rule.link is None else 2  # C, or the log-odds and the probability
        assert len(steps.to_frame()) == len(steps.steps) == len(steps.to_table().rows) - ends


@pytest.mark.parametrize("name", [*MEASURED, *BARE])
def test_indices_add_up(model_of, data, name):
    model, X = model_of(name), rows_of(data, name)
    rule = as_rule(model)
    found = indices(model)
    assert found.shapley.sum() == pytest.approx(1 if isinstance(rule.measure, Capacity) else 2, abs=1e-9)
    averaged = data_indices(model, X)
    assert averaged.share.sum() == pytest.approx(1)
    slope = 1.0 if rule.link is None else rule.link.slope
    assert averaged.signed.sum() == pytest.approx(slope * rule.integral(X).mean())
    for result in (found, averaged):
        assert list(result.to_frame()["source"]) == list(rule.source_names)
        assert result.to_table().to_text() in repr(result)


@pytest.mark.parametrize("name", [*MEASURED, *BARE])
def test_summary_and_identifiability(model_of, data, name):
    model, X = model_of(name), rows_of(data, name)
    said = summary(model, X)
    assert str(said).splitlines() == said.sentences == list(said.to_frame()["sentence"])
    assert said.to_table().rows
    given = identifiability(model, X)
    if as_rule(model).usage:
        trained = identifiability(model)
        for what in ("touched", "counts", "used", "lower", "upper"):
            assert np.array_equal(getattr(trained, what), getattr(given, what), equal_nan=True)
    assert ("Intervals are not applicable" in repr(given)) == (given.measure.parts == "terms")
    assert len(given.to_frame()) == len(given.to_table().rows)


@pytest.mark.parametrize("name", MEASURED)
def test_bootstrap(model_of, data, name):
    X, y, bags, target = data
    model = model_of(name)
    labels = {"bags": y, "instances": target}[model.needs]
    found = bootstrap(model, X, labels, bags, n_resamples=3, n_jobs=1)
    again = bootstrap(model, X, labels, bags, n_resamples=3, n_jobs=2)
    assert np.array_equal(found.values, again.values)
    assert found.values.shape == (3, len(model.measure_.values))
    assert np.ptp(found.values, axis=0).max() > 0 or name in ("MICI-BFM", "CI-QP")  # of which all values may stay
    for values in found.values:
        measure = type(model.measure_)
        options = {"zero_bound": model.measure_.zero_bound} if measure is BiCapacity else {}
        assert measure(values, **options).is_monotone(1e-9)
    assert list(found.to_frame()["source"]) == list(model.rule_.source_names)
    assert found.element_table().rows


def test_a_refit_to_the_same_data_finds_the_same_measure(model_of, data):
    """With one copy of every bag, the bootstrap's refit is the fit."""
    from bimichi.explain.stability import refit, training_bags

    X, y, bags, target = data
    for name, method in MEASURED.items():
        model = model_of(name)
        rule = model.rule_
        found = refit(rule, training_bags(rule, X, {"bags": y, "instances": target}[method.needs], bags, None), 0)
        scale = len(X) if name == "weighted mean" else 1  # whose J is a mean
        assert found.objective_value / scale == pytest.approx(model.objective_value_, rel=1e-6, abs=1e-9), name
        if name in ("CI-QP", "bi-capacity QP", "weighted mean", "Bi-MIChI (mean)"):
            np.testing.assert_allclose(found.values, rule.measure.values, atol=1e-6)


def test_class_weights_stay_as_fitted(data):
    from bimichi import ChoquetQP
    from bimichi.explain.stability import refit, training_bags

    X, _, _, target = data
    for class_weight in ("balanced", {0: 1.0, 1: 7.0}):
        model = ChoquetQP(class_weight, bipolar_input=True).fit(X, target)
        found = refit(model.rule_, training_bags(model.rule_, X, target, None, None), 0)
        np.testing.assert_allclose(found.values, model.capacity_.values, atol=1e-6)


def test_explaining_a_measure_imports_no_scikit_learn():
    code = """
import sys
from bimichi import AdditiveBiCapacity, BiCapacity, Capacity
from bimichi.explain import bootstrap, chain, contributions, data_indices, identifiability, indices, summary
for g in (BiCapacity.random(2), Capacity.random(2), AdditiveBiCapacity.random(2)):
    chain(g, [0.5, 0.2]), contributions(g, [[0.5, 0.2]]), indices(g), data_indices(g, [[0.5, 0.2]])
    identifiability(g, [[0.5, 0.2]]), summary(g, [[0.5, 0.2]])
assert not {"sklearn", "pandas", "bimichi.methods"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
