"""Rules: what enters the integral, model files, and what is refused."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from methods import METHODS, fitted
from refusals import refused
from sklearn.base import clone

from bimichi import (
    MICI,
    AdditiveBiCapacity,
    BiCapacity,
    BiMIChI,
    Capacity,
    FusionRule,
    MeanFusion,
    ModelFileError,
    as_rule,
    choquet,
)
from bimichi.methods.measured import MeasureFusion
from bimichi.record import Certificate, Status, TrainingRecord

BIPOLAR = BiMIChI("bipolar", random_state=0)
MODELS = Path(__file__).parent / "models"
MEASURES = {name: method for name, method in METHODS.items() if isinstance(method, MeasureFusion)} | {
    f"{objective}, additivity={additivity}, {polarity}": BiMIChI(
        objective, additivity=additivity, polarity=polarity, random_state=0
    )
    for objective in ("magnitude", "mean")
    for additivity in (1, 2)
    for polarity in ("given", "learn")
}
"""Every method that learns a measure, and every additivity with every objective that has one."""

FIELDS = [f.name for f in fields(TrainingRecord) if f.name not in ("usage", "classes", "feature_names")]


def same(one, two):
    assert one.measure == two.measure
    for name in ("centre", "factor", "polarity"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.scale, one.output, one.low, one.recipes) == (two.scale, two.output, two.low, two.recipes)
    assert (one.training is None) == (two.training is None)
    if one.training is not None:
        for name in FIELDS:
            np.testing.assert_equal(getattr(one.training, name), getattr(two.training, name))
        assert one.training.usage.keys() == two.training.usage.keys()
        for name, counts in one.training.usage.items():
            np.testing.assert_array_equal(counts, two.training.usage[name])


def test_sources_enter_scaled_inverted_and_clipped():
    g = BiCapacity.random(2, random_state=0)
    rule = FusionRule(g, centre=[10, 0], factor=[0.5, 1], polarity=[1, -1], scale="minmax")
    X = np.array([[11.0, 0.3], [20.0, -0.4], [9.0, np.nan]])
    entered = rule.enter(X)
    np.testing.assert_allclose(entered[0], [0.5, 1.0, -0.5])
    np.testing.assert_allclose(entered[1], [-0.3, 0.4, np.nan])
    np.testing.assert_array_equal(rule.integral(X), choquet(entered, g))
    np.testing.assert_array_equal(replace(rule, output="magnitude").fuse(X), abs(choquet(entered, g)))
    assert rule.output_range == (-1, 1)
    assert replace(rule, output="magnitude").output_range == (0, 1)
    assert rule.inverted == ("2",)


def test_planes_that_stay_as_they_are_are_not_copied():
    X = np.random.default_rng(0).uniform(-1, 1, (2, 5, 6)).astype(np.float32)
    entered = FusionRule(BiCapacity.random(2, random_state=0)).enter(list(X))
    assert all(np.shares_memory(plane, X) for plane in entered)


@pytest.mark.parametrize(
    ("rule", "X", "message"),
    [
        (FusionRule(BiCapacity.random(2, random_state=0)), [[0.5, 1.5]], "source-range"),
        (
            FusionRule(BiCapacity.random(2, random_state=0), polarity=[1, -1]),
            [[0.5, 1.5]],
            "source-range",  # as it was given, not as it enters
        ),
        (FusionRule(Capacity.random(2, 0)), [[-0.5, 0.5]], "source-range"),
        (
            FusionRule(Capacity.random(2, 0), centre=[-1, -1], factor=[0.5, 0.5]),
            [[-2.0, 0.5]],
            "source-range",
        ),
        (FusionRule(BiCapacity.random(2, random_state=0)), [[0.1, 0.2, 0.3]], "sources-number"),
    ],
)
def test_what_is_out_of_range_is_named_as_it_was_given(rule, X, message):
    for function in (rule.enter, rule.integral, rule.fuse):
        with refused(message):
            function(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"polarity": [1, 0]}, "polarity:polarity"),
        ({"centre": [1]}, "numbers-per-source:centre"),
        ({"factor": [1, np.inf]}, "numbers-per-source:factor"),
        ({"scale": "zscore"}, "choice:scale"),
        ({"output": "square"}, "choice:output"),
        ({"recipes": ["as_is"]}, "recipes-number:recipes"),
        ({"recipes": ["as_is", 3]}, "recipes-number:recipes"),
    ],
)
def test_nonsense_is_refused(options, message):
    with refused(message):
        FusionRule(BiCapacity.random(2, random_state=0), **options)


def test_anything_with_a_measure_is_a_rule(data):
    g = AdditiveBiCapacity.random(3, 0)
    assert as_rule(g).measure is g
    rule = FusionRule(g)
    assert as_rule(rule) is rule
    model = BIPOLAR.fit(*data[:3])
    assert as_rule(model) is model.rule_
    for wrong, message in (
        (BiMIChI(), "not-fitted"),
        (MeanFusion(), "not-fitted"),
        ([1, 2], "rule-kind"),
        (BiMIChI, "rule-kind"),
    ):
        with refused(message):
            as_rule(wrong)


def test_the_table_holds_every_additivity():
    found = {(type(method), getattr(method, "additivity", None)) for method in MEASURES.values()}
    assert {(BiMIChI, None), (BiMIChI, 1), (BiMIChI, 2)} <= found
    assert {kind.__name__ for kind, _ in found} >= {"MICI", "BinaryMICI", "MICIRegressor", "ChoquetQP", "BiCapacityQP"}


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_method_is_saved_whole(name, data, tmp_path):
    model = fitted(MEASURES[name], data)
    path = tmp_path / "model"
    replace(model.rule_, recipes=("gamma_correction",) * 3).save(path)
    back = type(model).load(path)
    back.save(path)  # nothing is lost on a second round
    rule = FusionRule.load(path)
    assert rule.recipes == ("gamma_correction",) * 3
    same(replace(rule, recipes=None), model.rule_)
    X = data[0]
    np.testing.assert_array_equal(back.fuse(X), model.fuse(X))
    np.testing.assert_array_equal(rule.fuse(X), model.fuse(X))
    assert back.output_range == rule.output_range == model.output_range
    kept = {key: value for key, value in model.get_params().items() if "random_state" not in key}
    assert {key: value for key, value in back.get_params().items() if key in kept} == kept
    assert model.measure_ == back.measure_
    assert back.solution_.status == model.solution_.status
    other = MICI if type(model) is BiMIChI else BiMIChI
    with refused("model-of-another", type(model).__name__, other.__name__, kind=ModelFileError):
        other.load(path)


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.json")), ids=lambda path: path.stem)
def test_stored_models_fuse_bit_for_bit(path, tmp_path):
    """Six of them were learned by the first versions of the program."""
    expected, name = np.load(MODELS / "expected.npz"), path.stem
    X = expected["R7" if name == "seven" else "R"]
    rule = FusionRule.load(path)
    np.testing.assert_array_equal(rule.fuse(X), expected[name])
    assert rule.training.classes == [0, 1]
    rule.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    if rule.training.method == "BiMIChI":
        model = BiMIChI.load(path)
        np.testing.assert_array_equal(model.fuse(X), expected[name])
        assert rule.n_instances == 200
    if name == "evo":
        assert (model.solver.max_iter, model.solver.population_size) == (50, 6)


def test_ten_models_are_stored():
    records = {path.stem: FusionRule.load(path).training for path in MODELS.glob("*.json")}
    assert len(records) == 10
    assert {record.status for record in records.values()} == {Status.CONVERGED, Status.EXACT, Status.MAX_ITER}
    assert records["averaged"].averaged == (0, 2)
    assert records["mici"].certificate is Certificate.OPTIMAL


def test_a_rule_without_training_is_saved(tmp_path):
    rule = FusionRule(Capacity.random(3, 0, ["a", "b", "c"]), centre=[-1] * 3, factor=[0.5] * 3)
    rule.save(tmp_path / "rule")
    same(FusionRule.load(tmp_path / "rule"), rule)
    with refused("model-of-another", kind=ModelFileError):
        BiMIChI.load(tmp_path / "rule")


def test_renamed_sources():
    rule = FusionRule(AdditiveBiCapacity.random(2, 0), polarity=[1, -1], recipes=("as_is", "equalize"))
    other = rule.renamed(["ir", "rgb"])
    assert other.source_names == ("ir", "rgb")
    assert other.inverted == ("rgb",)
    assert other.recipes == rule.recipes
    np.testing.assert_array_equal(other.measure.values, rule.measure.values)


def test_a_data_frame_must_have_the_columns_of_the_training_data(data):
    import pandas as pd

    rule = FusionRule(BiCapacity.random(2, random_state=0, source_names=["ir", "rgb"]))
    frame = pd.DataFrame({"ir": [0.1, 0.2], "rgb": [-0.4, 0.9]})
    np.testing.assert_array_equal(rule.fuse(frame), rule.fuse(frame.to_numpy()))
    with refused("sources-differ"):
        rule.fuse(frame[["rgb", "ir"]])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"training": {}}, "model-incomplete"),
        ({"training": 3}, "model-content"),
        ({"low": "x"}, "model-content"),
        ({"measure": "best"}, "model-incomplete"),
        ({"classes": 1}, "model-classes"),
    ],
)
def test_damaged_headers(change, code, data, tmp_path):
    path = tmp_path / "model.json"
    BIPOLAR.fit(*data[:3]).save(path)
    document = json.loads(path.read_text())
    if "classes" in change:
        document["training"] |= {"classes": [0, 1, 2]}
    else:
        document |= change
    path.write_text(json.dumps(document))
    with refused(code, kind=ModelFileError):
        FusionRule.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"touched": lambda counts: [-1.0, *counts[1:]]}, "model-counts"),
        ({"weighted": lambda counts: [0.5, *counts[1:]]}, "model-counts"),
        ({"touched": lambda counts: [1e300, *counts[1:]]}, "model-counts"),
        ({"n_iter": -3}, "model-record"),
        ({"n_iter": 10**400}, "model-record"),
        ({"objective_value": 10**400}, "model-content"),
        ({"objective_value": "big"}, "model-record"),
        ({"status": "the QP"}, "choice"),
        ({"certificate": 3}, "model-record"),
        ({"averaged": [3]}, "model-record"),
        ({"usage": "touched"}, "model-record"),
        ({"usage": ["touched", 3]}, "model-record"),
    ],
)
def test_numbers_that_no_training_gives_are_refused(change, message, data, tmp_path):
    path = tmp_path / "model.json"
    clone(BIPOLAR).fit(*data[:3]).save(path)
    document = json.loads(path.read_text())
    for name, value in change.items():
        if callable(value):
            document["arrays"][name] = value(document["arrays"][name])
        else:
            document["training"][name] = value
    path.write_text(json.dumps(document))
    with refused(message, kind=ModelFileError):
        FusionRule.load(path)


def test_rules_need_no_scikit_learn():
    script = (
        "import sys; from bimichi import BiCapacity, FusionRule;"
        "FusionRule(BiCapacity.additive([0.5, 0.5])).fuse([[0.1, 1]]);"
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_the_record_has_defaults():
    assert TrainingRecord(method="mine").usage == {}
