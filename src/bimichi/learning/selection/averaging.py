"""The mean of a learned fusion and of one source, in log-odds: a pull towards the source that ranks best alone.

From a few scenes, weights that fit them may lose to a single source on others. The mean of both loses less, and most
often gains on either, as errors of the two differ. It is the integral of one measure, since integrals are linear in
the measure.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bimichi._types import Floats
from bimichi.learning.bags import Bags
from bimichi.learning.calibration import fit_link
from bimichi.learning.fit import FitResult
from bimichi.learning.objectives import Objective
from bimichi.learning.spaces.losses import Outcomes
from bimichi.link import Link

ROWS = 50_000  # of each part, by which the log-odds of the source are fitted; two numbers need no more


def source_terms(k: int, n_sources: int) -> Floats:
    """Return the terms of the measure whose integral is one source."""
    terms = np.zeros(2 * n_sources * n_sources)
    terms[k], terms[n_sources + k] = 1.0, -1.0
    return terms


def with_source(result: FitResult, objective: Objective, parts: Sequence[Bags], k: int) -> FitResult:
    """Average the log-odds of a result, of additive measures, with those of source k, fitted to the same instances.

    Where targets are not higher in the source than the rest, the result stays as it is.
    """
    own, link = result.solution.link, _link_of(parts, k)
    if own is None or link is None:
        return result
    m = len(result.polarity)
    slope = own.slope + link.slope
    values = (own.slope * result.solution.values + link.slope * source_terms(k, m)) / slope
    joined = Link(slope / 2, (own.offset + link.offset) / 2, own.base_rate)
    status = f"{result.solution.status}, averaged with source {result.measure.source_names[k]}"
    solution = replace(result.solution, values=values, link=joined, status=status)
    return replace(result, measure=objective.space(m).measure(values, result.measure.source_names), solution=solution)


def scored_anew(result: FitResult, problem: Any) -> FitResult:
    """Return the result with the J of its values, which after `with_source` are not those that a solver ended with."""
    solution = result.solution
    value = problem.value(solution.values, solution.link)
    return replace(result, solution=replace(solution, objective_value=value, history=np.array([value])))


def _link_of(parts: Sequence[Bags], k: int) -> Link | None:
    few = [slice(0, None, -(-len(bags.X) // ROWS)) for bags in parts]
    outcomes = [Outcomes.of(bags) for bags in parts]
    x = np.concatenate([bags.X[part, k] for bags, part in zip(parts, few, strict=True)]).astype(np.float64)
    positive = np.concatenate([one.positive[part] for one, part in zip(outcomes, few, strict=True)])
    weight = np.concatenate([one.share[part] * part.step for one, part in zip(outcomes, few, strict=True)])
    return fit_link(x, positive, weight)
