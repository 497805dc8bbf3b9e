"""Ties are ties: what a solver leaves behind ranks nothing."""

import numpy as np
import pytest
from real import real

from bimichi import BiMIChI, metrics
from bimichi.datasets import msrs
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.fit.problem import InMemory
from bimichi.fit.solvers import ConvexSolver, convex
from bimichi.fit.solvers.convex import snapped
from bimichi.fit.spaces import ElementSpace
from bimichi.scenes.bags import Bags

EVERY = [(objective, k) for objective in OBJECTIVES for k in (None, 1, 2) if k is None or objective != "bipolar"]
"""Each objective with each additivity; `bipolar` has no zero bound, which additive measures need."""


def street(n=20_000, seed=0):
    """Sources that are often at the end of their range, so that many pixels tie; few of them are targets."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.05
    X = np.clip(rng.normal(-0.9, 0.5, (n, 3)) + 0.9 * y[:, None], -1, 1).astype(np.float32).astype(np.float64)
    return X, y, np.arange(n) // 50 * 2 + y


def agree(model, planes, truth, ignore=None):
    """AUC of float32, float64 and values rounded to 1e-9."""
    exact, coarse = model.fuse(planes.astype(np.float64)), model.fuse(planes.astype(np.float32))
    found = [metrics.auc(truth, fused, ignore) for fused in (exact, coarse, np.round(exact, 9))]
    assert max(found) - min(found) <= 0.002


@pytest.mark.parametrize("levels", [None, 8])
@pytest.mark.parametrize(("objective", "additivity"), EVERY)
def test_scores_do_not_depend_on_rounding(objective, additivity, levels):
    X, y, ids = street(4000)
    X = X if levels is None else np.round(X * levels) / levels  # a coarse grid, on which many more pixels tie
    model = BiMIChI(objective, additivity=additivity, random_state=0).fit(X, y, ids)
    agree(model, X, y)


@pytest.mark.parametrize(("objective", "additivity"), EVERY)
def test_snapping_never_raises_j(objective, additivity, monkeypatch):
    monkeypatch.setattr(convex, "snapped", lambda problem, solution: solution)
    for seed in range(3):
        bags = Bags.from_instances(*street(1500, seed))
        problem = InMemory(bags, get_objective(objective, additivity=additivity))
        plain = ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(seed))
        after = snapped(problem, plain)
        assert after.objective_value <= plain.objective_value * (1 + 1e-14)
        problem.space.measure(after.values)  # which checks order and bounds
        np.testing.assert_allclose(after.values, plain.values, atol=1e-6)


def test_values_near_a_bound_or_each_other_become_equal_and_stay_in_order():
    values = np.array([-1 + 1e-13, -1, -0.5, -0.5 + 3e-8, -0.5 + 6e-8, 2e-9, 0.3, 0.30001, 1 - 1e-8])
    made = ElementSpace(2).snapped(values, 1e-7)
    np.testing.assert_array_equal(made, [-1, -1, -0.5, -0.5, -0.5, 0, 0.3, 0.30001, 1])


@pytest.mark.parametrize(
    ("objective", "additivity"), [("bipolar", None), ("magnitude", None), ("mean", None), ("logistic", 2)]
)
def test_scores_of_night_scenes_do_not_depend_on_rounding(objective, additivity):
    scenes = msrs(real("msrs_night"))
    model = BiMIChI(objective, additivity=additivity, random_state=0).fit([*scenes[4:8]])
    for scene in scenes[16:18]:  # where AUC of exact values would differ by .04 for `magnitude`
        agree(model, np.asarray(scene.sources), scene.truth, scene.ignore)
