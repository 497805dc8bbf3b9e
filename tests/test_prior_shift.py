"""Base rates on new scenes: what is estimated, what it does for the error, and where it is refused."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from refusals import refused, warned
from scipy.special import logit

from bimichi import BiCapacity, BiMIChI, FusionRule, metrics
from bimichi.fit.calibrate import platt
from bimichi.link import BINS, Link, estimate_base_rate, mixture_distance, reliability_of


def sample(n, rate, seed):
    """Targets and others look alike wherever they are; only how many there are differs."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    return np.clip(rng.normal(-0.2, 0.3, (n, 2)) + 0.5 * y[:, None], -1, 1), y


@pytest.fixture(scope="module")
def link():
    """A link that knows the outputs of training."""
    return BiMIChI("logistic", additivity=1).fit(*sample(20_000, 0.1, 0)).rule_.link


def test_the_error_falls_where_targets_are_rarer_than_in_training():
    X, y = sample(20_000, 0.3, 0)
    rule = BiMIChI("logistic", additivity=1).fit(X, y).rule_
    assert rule.link.base_rate == pytest.approx(y.mean())
    new, truth = sample(20_000, 0.03, 1)
    shifted = rule.shifted(new)
    assert shifted.link.base_rate == pytest.approx(0.03, abs=0.01)
    before, after = (metrics.scores(truth, r.fuse(new), (0, 1)) for r in (rule, shifted))
    assert after.rmse < 0.8 * before.rmse
    assert after.calibration_error < 0.2 * before.calibration_error
    assert after.auc == pytest.approx(before.auc, abs=1e-6)  # the largest round to 1
    known = rule.shifted(base_rate=0.03)
    np.testing.assert_allclose(
        known.log_odds(new) - rule.log_odds(new), known.link.offset - rule.link.offset, atol=1e-9
    )


def test_a_larger_share_is_believed_only_if_asked_for():
    X, y = sample(20_000, 0.1, 0)
    rule = BiMIChI("logistic", additivity=1).fit(X, y).rule_
    new, _ = sample(20_000, 0.3, 1)
    assert rule.shifted(new).link.offset == rule.link.offset
    assert rule.shifted(new, upward=True).link.base_rate == pytest.approx(0.3, abs=0.03)


def test_another_gain_is_told_from_another_share():
    X, y = sample(20_000, 0.1, 0)
    rule = BiMIChI("logistic", additivity=1).fit(X, y).rule_
    new, truth = sample(20_000, 0.02, 1)
    bright = np.clip(0.8 * new + 0.25, -1, 1)
    with warned("shift-corrected", "1.2", "--base-rate"):
        shifted = rule.shifted(bright)
    assert shifted.link.base_rate == pytest.approx(0.02, abs=0.01)
    empty, right, after, before = (
        metrics.scores(truth, fused, (0, 1)).rmse
        for fused in (np.zeros(len(new)), rule.shifted(new).fuse(new), shifted.fuse(bright), rule.fuse(bright))
    )
    assert after == pytest.approx(right, abs=0.005)
    assert after < empty < before
    holes = np.where(np.arange(len(new))[:, None] % 2 == 0, np.nan, new)
    with np.testing.assert_no_warnings():
        assert rule.shifted(holes).link.base_rate == pytest.approx(0.02, abs=0.01)


def test_a_scene_that_no_gain_explains_is_left_as_it_is_with_a_warning():
    X, y = sample(20_000, 0.1, 0)
    rule = BiMIChI("logistic", additivity=1).fit(X, y).rule_
    halves = np.where(np.arange(20_000)[:, None] % 2 == 0, 0.9, -0.9) + np.random.default_rng(0).normal(
        0, 0.01, (20_000, 2)
    )
    for unlike in (halves, sample(20_000, 0.45, 1)[0]):
        with warned("shift-unexplained", "--base-rate"):
            assert rule.shifted(unlike).link == rule.link


def test_scenes_that_vary_in_training_may_vary_later():
    rng = np.random.default_rng(0)
    scenes = [(rng.normal(0.5 + k / 4, 0.1, 200), rng.normal(k / 4 - 0.5, 0.1, 2000), (1.0, 1.0)) for k in range(4)]
    even = [(targets - k / 4, others - k / 4, shares) for k, (targets, others, shares) in enumerate(scenes)]
    varied, alike = (platt(some, keep_outputs=True) for some in (scenes, even))
    assert alike.variety < 0.1 < 0.5 < varied.variety
    assert Link.unpack(varied.pack()) == varied
    bright = rng.normal(0.0, 0.1, 2000)
    with np.testing.assert_no_warnings():
        varied.adapted(bright)
    with warned("shift-corrected"):
        alike.adapted(bright)


@pytest.mark.parametrize("additivity", [None, 1, 2])
def test_outputs_of_training_are_counted_and_kept_in_files(additivity, tmp_path):
    X, y = sample(3000, 0.2, 0)
    rule = BiMIChI("logistic", additivity=additivity).fit(X, y).rule_
    for side, shares in zip((~y, y), rule.link.outputs, strict=True):
        edges = np.linspace(-1, 1, BINS + 1)
        np.testing.assert_allclose(shares, np.histogram(rule.integral(X[side]), edges)[0] / side.sum(), atol=2e-3)
    assert rule.link.departure(rule.integral(X), float(y.mean())) == pytest.approx(0, abs=1e-9)
    rule.save(tmp_path / "model.json")
    assert FusionRule.load(tmp_path / "model.json").link == rule.link
    with refused("link-outputs:outputs", "100"):
        Link(1, 0, 0.1, ([1.0], [1.0]))
    assert Link(1, 0, 0.1).departure(np.zeros(3), 0.1) is None


def test_the_estimate_is_where_em_ends():
    f, start = np.random.default_rng(0).normal(-2, 2, 2000), 0.2
    rate = start
    for _ in range(5000):
        shift = np.log(rate / (1 - rate)) - np.log(start / (1 - start))
        rate = (1 / (1 + np.exp(-f - shift))).mean()
    assert estimate_base_rate(f, start) == pytest.approx(rate, abs=1e-6)
    assert estimate_base_rate([*f, np.nan], start) == pytest.approx(rate, abs=1e-6)


def test_scenes_without_targets_or_without_others_have_a_rate_within_the_ends():
    assert estimate_base_rate(np.full(100, -9.0), 0.3) == 0.5 / 100
    assert estimate_base_rate(np.full(100, 9.0), 0.3) == 1 - 0.5 / 100


def test_what_cannot_be_shifted_is_refused():
    rule = FusionRule(BiCapacity.random(2, random_state=0))
    with refused("link-missing"):
        rule.shifted([[0.1, 0.2]])
    with refused("shift-by"):
        rule.linked(1, 0, 0.1).shifted()
    with refused("base-rate-unknown", "rule.linked(slope, offset, base_rate)"):
        rule.linked(1, 0).shifted([[0.1, 0.2]])
    with refused("no-complete-instance"):
        estimate_base_rate([np.nan], 0.1)
    with refused("number-range:base_rate"):
        Link(1, 0, 0.1).shifted(0.0)


def test_calibration_error_of_bins_that_are_right_is_zero_and_of_others_their_distance():
    probability = np.repeat([0.1, 0.5, 0.9], 10)
    truth = np.concatenate([np.arange(10) < n for n in (1, 5, 9)])
    assert metrics.calibration_error(truth, probability) == pytest.approx(0, abs=1e-12)
    assert metrics.calibration_error(truth, 2 * probability - 1, (-1, 1)) == pytest.approx(0, abs=1e-12)
    assert metrics.calibration_error(truth, np.zeros(30)) == pytest.approx(truth.mean())
    assert metrics.scores(truth, probability, (0, 1)).calibration_error == pytest.approx(0, abs=1e-12)
    found = reliability_of(truth, probability, bins=3, equal_counts=True)
    np.testing.assert_allclose(found.predicted, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.observed, [0.1, 0.5, 0.9])
    assert found.counts.tolist() == [10, 10, 10]


def test_reliability_is_drawn_and_maps_that_are_no_probabilities_are_refused():
    from bimichi import plot as plotting

    X, y = sample(2000, 0.3, 0)
    fused = BiMIChI("logistic").fit(X, y).fuse(X)
    ax = plotting.plot_reliability(y, {"logistic": fused, "half": np.full(len(y), 0.5)})
    assert ax.get_legend().get_texts()[0].get_text().endswith("logistic")
    assert len(ax.lines) == 3
    with refused("map-range", "[0, 1]"):
        plotting.plot_reliability(y, {"raw": 2 * fused - 1})


def test_a_link_that_says_nothing_stays_as_it_is():
    flat = Link(0.0, float(logit(0.1)), 0.1)
    for n in (10, 307_200):  # where only rounding would decide
        assert flat.adapted(np.linspace(-1, 1, n)) == flat


def test_outputs_that_cannot_be_used(link):
    with refused("no-complete-instance"):
        link.adapted([np.nan, np.inf])
    assert link.adapted([0.1, np.inf, -np.inf, 0.2]).base_rate == link.adapted([0.1, 0.2]).base_rate


def test_few_pixels_of_the_training_are_not_taken_for_another_gain(link):
    rng = np.random.default_rng(0)
    middles = np.linspace(-1, 1, 2 * BINS + 1)[1::2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            link.adapted(rng.choice(middles, 30, p=link.outputs[0]))


def test_distances_are_at_most_one():
    rng = np.random.default_rng(0)
    low, high = np.zeros(BINS), np.zeros(BINS)
    for _ in range(300):
        low[:50], high[50:] = rng.random(50), rng.random(50)
        assert 0.999 < mixture_distance(low, 0.0, high, high) <= 1.0


def test_a_rule_is_loaded_without_what_estimates_shares():
    code = "import sys, bimichi.rule; assert 'scipy.optimize' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
