"""Decisions: smoothing of maps, and how rules keep them."""

import json

import numpy as np
import pytest
from refusals import refused

from bimichi import BiCapacity, Decision, FusionRule, ModelFileError
from bimichi.decision import smooth_map


def naive_smooth(fused, across, down):
    """Weighted means over valid pixels, by loops."""
    smoothed = np.full(fused.shape, np.nan)
    height, width = fused.shape
    reach = [int(4 * sigma + 0.5) for sigma in (down, across)]
    for r, c in np.ndindex(*fused.shape):
        if np.isnan(fused[r, c]):
            continue
        total = weight = 0.0
        for i in range(max(0, r - reach[0]), min(height, r + reach[0] + 1)):
            for j in range(max(0, c - reach[1]), min(width, c + reach[1] + 1)):
                if not np.isnan(fused[i, j]):
                    y = 0 if down == 0 else ((i - r) / down) ** 2
                    x = 0 if across == 0 else ((j - c) / across) ** 2
                    total += np.exp(-(x + y) / 2) * fused[i, j]
                    weight += np.exp(-(x + y) / 2)
        smoothed[r, c] = total / weight
    return smoothed


@pytest.mark.parametrize(("across", "down"), [(1.0, 2.0), (0.7, 0.0), (0.0, 0.0), (3.0, 1.0)])
def test_smoothing_against_loops(across, down, rng):
    fused = rng.uniform(-1, 1, (11, 14))
    fused[rng.random(fused.shape) < 0.2] = np.nan
    np.testing.assert_allclose(smooth_map(fused, (across, down)), naive_smooth(fused, across, down), atol=1e-9)


def test_invalid_pixels_and_borders_change_nothing_around_them(rng):
    fused = np.full((20, 30), 0.25, np.float32)
    fused[rng.random(fused.shape) < 0.5] = np.nan
    smoothed = smooth_map(fused, (2, 4))
    np.testing.assert_array_equal(smoothed, fused)
    assert smoothed.dtype == np.float32
    assert np.isnan(smooth_map(np.full((3, 3), np.nan), (1, 1))).all()
    extremes = np.where(rng.random((30, 30)) < 0.5, -1.0, 1.0)
    assert np.abs(smooth_map(extremes, (1, 1))).max() <= 1


def test_a_rule_keeps_its_decision(tmp_path):
    rule = FusionRule(BiCapacity.additive([0.75, 0.25]), decision=Decision(0.5, "by hand", 4, (2, 4)))
    rule.save(tmp_path / "model.json")
    assert FusionRule.load(tmp_path / "model.json").decision == Decision(0.5, "by hand", 4, (2.0, 4.0))
    FusionRule(rule.measure).save(tmp_path / "plain.json")
    assert FusionRule.load(tmp_path / "plain.json").decision is None


@pytest.mark.parametrize(
    "decision", [3, [], {"threshold": "high"}, {"min_size": 0}, {"smooth": [1]}, {"smooth": [-1, 2]}, {"chosen": 3}]
)
def test_hostile_decisions_in_a_model(decision, tmp_path):
    path = tmp_path / "model.json"
    FusionRule(BiCapacity.additive([0.75, 0.25]), decision=Decision(0.5)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"decision": decision}))
    with pytest.raises(ModelFileError):
        FusionRule.load(path)


def test_bad_input():
    for arguments, message in (
        ({"threshold": np.nan}, "number-range:threshold"),
        ({"min_size": 1.5}, "whole-number:min_size"),
        ({"smooth": 2.0}, "smooth-widths:smooth"),
        ({"smooth": "24"}, "smooth-widths:smooth"),
    ):
        with refused(message):
            Decision(**arguments)
    with refused("threshold-missing"):
        Decision().find(np.zeros((2, 2)))
    with refused("decision-kind:decision"):
        FusionRule(BiCapacity.additive([0.75, 0.25]), decision=0.5)
    with refused("map-shape"):
        smooth_map(np.zeros(3), (1, 1))
