"""What an error message recommends exists, and helps."""

import re

import numpy as np
import pytest
from refusals import warned

import bimichi
from bimichi import (
    BiCapacity,
    BiMIChI,
    FusionRule,
    InvalidInputError,
    MeanFusion,
    choquet,
    methods as all_estimators,
    usage_counts,
)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 1, (40, 2))
    return X, np.arange(40) % 2


def message(call):
    with pytest.raises(InvalidInputError) as caught:
        call()
    return str(caught.value)


def methods():
    """All methods that take sources and can be made without arguments."""
    kinds = [getattr(all_estimators, name) for name in all_estimators.__all__]
    kinds = [kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "fuse")]
    return [kind for kind in kinds if kind.needs != "image"]


@pytest.mark.parametrize("method", methods(), ids=lambda kind: kind.__name__)
def test_missing_values(method, data):
    X, y = data
    holed = X.copy()
    holed[3, 1] = np.nan
    said = message(lambda: method().fit(holed, y))
    assert "X contains NaN in 1 of 40 instances" in said
    assert "sklearn" not in said
    if "nan='drop'" in said:
        with warned("instances-left-out"):
            model = method(nan="drop").fit(holed, y)
    else:
        kept = ~np.isnan(holed).any(axis=1)
        model = method().fit(holed[kept], y[kept])
    said = message(lambda: method().fit(X, y).predict(holed))
    if "nan='drop'" in said:
        assert len(model.predict(holed)) == 40
    else:
        assert "use fuse" in said
        assert np.isnan(model.fuse(holed)).sum() == 1
    assert "inf" in message(lambda: method().fit(np.where(np.isnan(holed), np.inf, X), y))


@pytest.mark.parametrize("method", methods(), ids=lambda kind: kind.__name__)
def test_no_model_recommends_an_argument_that_it_does_not_have(method, data):
    X, y = data
    calls = [lambda: method().fit(5 * X - 2, y)]
    model = method().fit(X, y)
    calls += [lambda: model.fuse(5 * X - 2), lambda: model.predict(5 * X - 2)]
    for call in calls:
        said = ""
        try:
            call()
        except InvalidInputError as error:
            said = str(error)
        assert "check_range" not in said
        assert set(re.findall(r"(\w+)=", said)) <= set(model.get_params())


def test_out_of_range(data):
    X, y = data
    said = message(lambda: choquet(5 * X, BiCapacity.additive([0.5, 0.5])))
    assert "check_range=False" in said
    assert choquet(5 * X, BiCapacity.additive([0.5, 0.5]), check_range=False).max() > 1
    assert "check_range=False" in message(lambda: usage_counts(5 * X))
    assert usage_counts(5 * X, check_range=False).sum() > 0
    assert "scale='minmax'" in message(lambda: BiMIChI().fit(5 * X, y))
    assert BiMIChI(scale="minmax").fit(5 * X, y).fuse(9 * X).max() <= 1
    assert "bipolar_input=True" in message(lambda: MeanFusion().fit(X).fuse(-X))
    assert MeanFusion(bipolar_input=True).fit(X).fuse(-X).min() >= 0


def test_values_at_the_end_of_their_range_pass_despite_rounding():
    centre, factor = 0.1, 1 / 0.3
    rule = FusionRule(BiCapacity.additive([1.0]), centre=[centre], factor=[factor])
    for dtype in (np.float32, np.float64):
        for end in (-1.0, 1.0):
            value = dtype(centre + end / factor)
            given = np.array([[value]], dtype)
            if centre - 1 / factor <= float(value) <= centre + 1 / factor:
                assert rule.fuse(given) == pytest.approx([end], abs=1e-6)


def test_other_remedies(data, rng):
    X, y = data
    assert "X.filled(np.nan)" in message(lambda: choquet(np.ma.masked_array(X), BiCapacity.additive([0.5, 0.5])))
    masked = np.ma.masked_array(X, np.zeros_like(X, bool))
    masked[0, 0] = np.ma.masked
    assert np.isnan(choquet(masked.filled(np.nan), BiCapacity.additive([0.5, 0.5]))[0])
    assert "pass list(X)" in message(lambda: choquet(rng.uniform(size=(2, 5, 7)), BiCapacity.additive([0.5, 0.5])))
    assert "pass np.stack(X)" in message(lambda: choquet(list(X), BiCapacity.additive([0.5, 0.5])))
    assert choquet(np.stack(list(X)), BiCapacity.additive([0.5, 0.5])).shape == (40,)
    assert "nan='drop'" in message(lambda: bimichi.Bags.from_instances(np.where(X > 0.9, np.nan, X), y))
