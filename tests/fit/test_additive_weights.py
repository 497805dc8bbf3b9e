"""Learning additive bi-capacities: a weight for each source above zero, and one below."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from samples import make_bags
from scipy.optimize import minimize
from typer.testing import CliRunner

from bimichi import AdditiveBiCapacity, BiMIChI, ConvexSolver, ModelFileError
from bimichi.cli.app import app
from bimichi.fit.objectives import ADDITIVE_OBJECTIVES
from bimichi.fit.problem import InMemory

NAMES = list(ADDITIVE_OBJECTIVES)


@pytest.fixture(scope="module")
def bags():
    return make_bags(4, 40, seed=1)


def test_mean_is_the_minimum_over_weights(bags):
    model = BiMIChI("mean", additivity=1).fit(bags)
    features = np.maximum(np.hstack([bags.X, -bags.X]), 0)
    share = np.repeat(1 / np.diff(bags.offsets), np.diff(bags.offsets))
    target = np.repeat(np.where(bags.labels, 1.0, -1.0), np.diff(bags.offsets))
    up = np.repeat([1.0, 0.0], 4)
    found = minimize(
        lambda b: share @ (features @ b - target) ** 2,
        np.repeat([0.25, -0.25], 4),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
        bounds=[(0, 1)] * 4 + [(-1, 0)] * 4,
        constraints=[{"type": "eq", "fun": lambda b: [up @ b - 1, (1 - up) @ b + 1]}],
    )
    assert found.success
    assert model.objective_value_ == pytest.approx(found.fun, abs=1e-7)
    assert model.solution_.lower_bound == pytest.approx(found.fun, abs=1e-7)
    np.testing.assert_allclose(model.bicapacity_.terms[:8], found.x, atol=1e-4)
    np.testing.assert_allclose(model.integral(bags.X), features @ model.bicapacity_.terms[:8], atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_terms_fit_less(bags, name):
    one, two = (BiMIChI(name, additivity=k, random_state=0).fit(bags) for k in (1, 2))
    assert not one.bicapacity_.terms[8:].any()
    assert two.bicapacity_.terms[8:].any()
    assert one.objective_value_ > two.objective_value_
    assert one.bicapacity_.is_monotone(1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_random_starts_have_no_pairs(bags, name):
    objective = replace(ADDITIVE_OBJECTIVES[name], additivity=1)
    found = ConvexSolver(n_starts=6, max_rounds=1).solve(InMemory(bags, objective), np.random.default_rng(0))
    assert not found.values[8:].any()


@pytest.mark.parametrize("name", NAMES)
def test_polarity_and_files(bags, name, tmp_path):
    model = BiMIChI(name, additivity=1, polarity="learn", random_state=0, source_names=list("abcd")).fit(bags)
    model.save(tmp_path / "model.json")
    again = BiMIChI.load(tmp_path / "model.json")
    assert again.additivity == 1
    assert again.bicapacity_ == model.bicapacity_
    np.testing.assert_array_equal(again.fuse(bags.X), model.fuse(bags.X))
    assert again.get_params()["polarity"] == "learn"


def test_other_additivities_are_refused(bags):
    for wrong in (0, 3, True, "1", 2.0, np.array([1, 2])):
        with refused("choice:additivity"):
            BiMIChI("mean", additivity=wrong).fit(bags)
    with refused("objective-additive", "additivity=1"):
        BiMIChI("bipolar", additivity=1).fit(bags)


def test_whole_numbers_of_numpy_are_taken_and_saved(bags, tmp_path):
    BiMIChI("mean", additivity=np.int64(1)).fit(bags).save(tmp_path / "model.json")
    assert BiMIChI.load(tmp_path / "model.json").additivity == 1


def test_numbers_too_large_are_the_files_fault(bags, tmp_path):
    path = tmp_path / "model.json"
    BiMIChI("mean", additivity=1).fit(bags).save(path)
    document = json.loads(path.read_text())
    for field in ("objective_value", "lower_bound"):
        path.write_text(json.dumps(document | {"training": document["training"] | {field: 10**400}}))
        with pytest.raises(ModelFileError):
            BiMIChI.load(path)


def test_show_tells_the_weights_alone(bags, tmp_path):
    path = tmp_path / "model.json"
    BiMIChI("mean", additivity=1, source_names=list("abcd")).fit(bags).save(path)
    shown = CliRunner().invoke(app, ["show", str(path)]).stdout
    assert "BiMIChI (1-additive BiCapacity), objective mean" in shown
    assert "of 8 terms are used" in shown
    listed = json.loads(CliRunner().invoke(app, ["show", str(path), "--json"]).stdout)
    assert listed["additivity"] == 1
    assert len(listed["terms"]) == 8


def test_elements_are_pairs_of_sets_or_of_lone_sources():
    g = AdditiveBiCapacity.additive([0.7, 0.3], ["a", "b"])
    assert g["a", ()] == g[["a"], []] == g[0, ()] == 0.7
    for wrong in (0, "a", (0, 1, 0)):
        with refused("element-pair"):
            g[wrong]
