"""Links: probabilities and log-odds of rules, their files, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from bimichi import BiCapacity, BiMIChI, FusionRule, Link, ModelFileError


def rule_of(**options):
    return FusionRule(BiCapacity.random(3, random_state=0), **options)


def rows(n=50, kind=np.float64):
    return np.random.default_rng(1).uniform(-1, 1, (n, 3)).astype(kind)


@pytest.mark.parametrize("output", ["integral", "magnitude"])
def test_fuse_is_the_probability_of_the_log_odds(output):
    rule, X = rule_of(output=output), rows()
    linked = rule.linked(3.0, -1.5)
    np.testing.assert_array_equal(linked.log_odds(X), 3.0 * rule.fuse(X) - 1.5)
    np.testing.assert_allclose(linked.fuse(X), 1 / (1 + np.exp(-linked.log_odds(X))), rtol=1e-14)
    np.testing.assert_array_equal(linked.integral(X), rule.integral(X))
    assert linked.output_range == (0, 1)
    assert linked.link == Link(3.0, -1.5)


def test_float32_stays_float32_and_nan_stays_nan():
    rule, X = rule_of().linked(3.0, -1.5), rows(kind=np.float32)
    X[0, 0] = np.nan
    assert rule.fuse(X).dtype == rule.log_odds(X).dtype == np.float32
    assert np.isnan(rule.fuse(X)).tolist() == [True] + [False] * 49


def test_steep_links_do_not_overflow():
    assert rule_of().linked(1e6, 0.0).fuse([[1.0, 1, 1], [-1, -1, -1]]).tolist() == [1.0, 0.0]


def test_xarray_is_linked_too():
    import xarray

    rule, X = rule_of().linked(3.0, -1.5), rows()
    array = xarray.DataArray(X, dims=("pixel", "source"))
    np.testing.assert_array_equal(rule.fuse(array).values, rule.fuse(X))
    np.testing.assert_array_equal(rule.fuse(array.chunk(pixel=20)).values, rule.fuse(X))


def test_files_keep_the_link(tmp_path):
    plain, linked = rule_of(), rule_of().linked(1 / 3, -0.1, base_rate=0.02)
    for name, rule in (("plain", plain), ("linked", linked)):
        rule.save(tmp_path / name)
        assert FusionRule.load(tmp_path / name).link == rule.link
    np.testing.assert_array_equal(FusionRule.load(tmp_path / "linked").fuse(rows()), linked.fuse(rows()))


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (3, "model-link"),
        ({"slope": 1.0}, "model-incomplete"),
        ({"slope": -1.0, "offset": 0.0, "base_rate": None, "outputs": None, "variety": None}, "number-range"),
        ({"slope": 1, "offset": "0", "base_rate": None, "outputs": None, "variety": None}, "number-range"),
        ({"slope": True, "offset": 0, "base_rate": None, "outputs": None, "variety": None}, "number-range"),
    ],
)
def test_damaged_links_in_files_are_refused(tmp_path, wrong, rule):
    rule_of().linked(1.0, 0.0).save(tmp_path / "model")
    document = json.loads((tmp_path / "model").read_text()) | {"link": wrong}
    (tmp_path / "model").write_text(json.dumps(document))
    with refused(rule, kind=ModelFileError):
        FusionRule.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 0.0), "number-range"),
        ((np.inf, 0.0), "number-range"),
        ((1.0, np.nan), "number-range"),
        ((1.0, 0.0, 1.0), "number-range:base_rate"),
    ],
)
def test_impossible_links_are_refused(arguments, message):
    with refused(message):
        Link(*arguments)


def test_a_rule_without_a_link_has_no_log_odds():
    with refused("link-missing"):
        rule_of().log_odds(rows())
    with refused("link-kind:link"):
        rule_of(link=(1, 2))


def test_any_model_with_a_link_predicts_probabilities():
    X = np.array([[0.9, 0.2], [-0.8, -0.4], [-0.7, 0.1], [-0.9, -0.2]])
    model = BiMIChI(random_state=0).fit(X, [1, 1, 0, 0], bags=["a", "a", "b", "b"])
    assert not hasattr(model, "predict_proba")
    model.rule_ = model.rule_.linked(4.0, 1.0)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_array_equal(probabilities[:, 1], model.fuse(X))
    np.testing.assert_array_equal(model.decision_function(X), model.rule_.log_odds(X))
    np.testing.assert_array_equal(model.predict(X), (model.fuse(X) > 0.5).astype(int))
    assert model.output_range == (0, 1)
    assert replace(model.rule_, link=None).output_range == (-1, 1)
