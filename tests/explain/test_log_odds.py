"""Explanations of rules with a link speak in log-odds, which add up exactly."""

import numpy as np
import pytest

from bimichi import AdditiveBiCapacity, BiCapacity, FusionRule
from bimichi.explain import chain, contributions, data_indices, summary

MEASURES = {
    "elements": BiCapacity.random(4, zero_bound=False, random_state=0),
    "terms": AdditiveBiCapacity.random(4, 0),
}


@pytest.mark.parametrize("output", ["integral", "magnitude"])
@pytest.mark.parametrize("measure", MEASURES)
def test_offset_and_contributions_add_up_to_the_log_odds(measure, output):
    rule = FusionRule(MEASURES[measure], output=output, polarity=[1, -1, 1, 1]).linked(7.5, -3.25)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    parts, odds = contributions(rule, X), rule.log_odds(X)
    np.testing.assert_allclose(rule.link.offset + parts.sum(axis=1), odds, atol=1e-12)
    for x, f, p in zip(X[:20], odds, rule.fuse(X), strict=False):
        steps = chain(rule, x)
        assert steps.total == pytest.approx(f, abs=1e-12)
        assert steps.steps[0].element == "offset"
        assert steps.probability == pytest.approx(p, abs=1e-12)
        assert "log-odds" in repr(steps)
        assert "probability" in repr(steps)


def test_without_a_link_nothing_changes():
    g = MEASURES["elements"]
    X = np.random.default_rng(0).uniform(-1, 1, (20, 4))
    np.testing.assert_allclose(contributions(g, X).sum(axis=1), FusionRule(g).integral(X), atol=1e-12)
    assert chain(g, X[0]).probability is None
    assert repr(chain(g, X[0])).splitlines()[-1].startswith("C ")


def test_averages_are_in_log_odds_and_the_summary_says_so():
    plain = FusionRule(MEASURES["elements"])
    X = np.random.default_rng(0).uniform(-1, 1, (100, 4))
    linked = plain.linked(2.0, -1.0)
    np.testing.assert_allclose(data_indices(linked, X).signed, contributions(linked, X).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(data_indices(linked, X).share, data_indices(plain, X).share, atol=1e-12)
    said = [fact for fact in summary(linked, X).facts if fact.kind == "link"]
    assert len(said) == 1
    assert said[0].sentence == (
        "The log-odds of a target are -1.00 plus 2.00 times the integral, of which each source has its part; where "
        "that is 0, the probability is 0.27."
    )
    assert not [fact for fact in summary(plain, X).facts if fact.kind == "link"]
