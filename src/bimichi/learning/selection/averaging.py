"""The mean of a learned fusion and of the best single sources, in log-odds.

From a few scenes, weights that fit them may lose to a single source on others. The mean of both loses less, and most
often gains on either, as their errors differ. Which source is best is uncertain, too: all take part whose average
precision is within one standard error of the best one's (of the mean difference, scene by scene). The mean of integrals
is the integral of one measure, since integrals are linear in the measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bimichi._types import Floats
from bimichi.learning.bags import Bags
from bimichi.learning.calibration import fit_link
from bimichi.learning.fit import FitResult
from bimichi.learning.folds import spread
from bimichi.learning.objectives import Objective
from bimichi.learning.spaces.losses import Outcomes
from bimichi.link import Link

AVERAGED = ", averaged with sources "
"""What the status says of an average, before the numbers of the sources, from 1."""

ROWS = 50_000  # of each part, by which the log-odds of a source are fitted; two numbers need no more


def best_sources(scores: Floats) -> list[int]:
    """Return the source of the largest mean score, and those within one standard error of it, scene by scene.

    Parameters
    ----------
    scores : ndarray of shape (n_scenes, n_sources)
        Average precision of each source alone.

    Examples
    --------
    >>> best_sources(np.array([[0.9, 0.2, 0.8], [0.5, 0.1, 0.7], [0.8, 0.1, 0.6]]))
    [0, 2]
    """
    best = int(scores.mean(axis=0).argmax())
    leads = [spread(scores[:, best] - scores[:, k]) for k in range(scores.shape[1])]
    return [k for k, lead in enumerate(leads) if k == best or lead.mean <= lead.error]


def source_terms(k: int, n_sources: int) -> Floats:
    """Return the terms of the measure whose integral is one source."""
    terms = np.zeros(2 * n_sources * n_sources)
    terms[k], terms[n_sources + k] = 1.0, -1.0
    return terms


def source_links(parts: Sequence[Bags], which: Sequence[int]) -> dict[int, Link]:
    """Fit the log-odds of some sources alone to instances; those in which targets are not above the rest have none."""
    few = [slice(0, None, -(-len(bags.X) // ROWS)) for bags in parts]
    outcomes = [(Outcomes.of(bags), part) for bags, part in zip(parts, few, strict=True)]
    positive = np.concatenate([one.positive[part] for one, part in outcomes])
    weight = np.concatenate([one.share[part] * part.step for one, part in outcomes])
    X = np.concatenate([bags.X[part] for bags, part in zip(parts, few, strict=True)])
    fitted = [(k, fit_link(X[:, k].astype(np.float64), positive, weight)) for k in which]
    return {k: link for k, link in fitted if link is not None}


def with_sources(result: FitResult, objective: Objective, links: Mapping[int, Link]) -> FitResult:
    """Average the log-odds of a result, of additive measures, with those of sources, fitted to the same instances.

    The result counts as much as all sources together.
    """
    own = result.solution.link
    if own is None or not links:
        return result
    m, n = len(result.polarity), len(links)
    steep = own.slope * result.solution.values + sum(link.slope * source_terms(k, m) for k, link in links.items()) / n
    slope = own.slope + sum(link.slope for link in links.values()) / n
    offset = own.offset + sum(link.offset for link in links.values()) / n
    names = result.measure.source_names
    status = f"{result.solution.status}{AVERAGED}{', '.join(str(k + 1) for k in links)}"
    joined = Link(slope / 2, offset / 2, own.base_rate)
    solution = replace(result.solution, values=steep / slope, link=joined, status=status)
    return replace(result, measure=objective.space(m).measure(steep / slope, names), solution=solution)


def averaged_with(status: str) -> list[int]:
    """Return the sources, from 0, that a result of this status was averaged with.

    Examples
    --------
    >>> averaged_with("converged, averaged with sources 1, 3")
    [0, 2]
    """
    return [int(k) - 1 for k in status.partition(AVERAGED)[2].split(", ") if k.isdecimal()]


def scored_anew(result: FitResult, problem: Any) -> FitResult:
    """Return the result with the J of its values, which after `with_sources` are not those that a solver ended with."""
    solution = result.solution
    value = problem.value(solution.values, solution.link)
    return replace(result, solution=replace(solution, objective_value=value, history=np.array([value])))
