"""Ties are ties: learned values that differ by what a solver leaves behind are made equal, where J does not rise.

Interior points end near bounds and near each other, not on them. Instances whose integrals are equal but for that would
be ranked by rounding, and differently so in float32 and float64.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bimichi._types import Floats
from bimichi.learning.problem import Solution
from bimichi.learning.spaces.terms import TermSpace

NEAR = (1e-7, 1e-9, 1e-11)  # what counts as equal: the first by which J does not rise
ROUNDING = 1e-15  # of J, which is a sum
GRID = 2.0**40  # terms become multiples of its inverse, so that their sums are exact


def snapped(problem: Any, solution: Solution) -> Solution:
    """Return the solution with values that nearly are a bound, or nearly each other, made so; J never rises."""
    for near in NEAR:
        values = _terms(problem.space, solution.values, near)
        values = _elements(solution.values, near) if values is None else values
        if (values == solution.values).all():
            return solution
        given = () if solution.link is None else (solution.link,)
        value = float(problem.value(values, *given))
        if value <= solution.objective_value * (1 + ROUNDING):
            bound = solution.lower_bound
            history = np.append(solution.history[:-1], min(value, solution.objective_value))
            return replace(
                solution,
                values=values,
                objective_value=value,
                history=history,
                lower_bound=None if bound is None else min(bound, value),
            )
    return solution


def _elements(values: Floats, near: float) -> Floats:
    """Make equal what lies within `near`, one value after the other; a bound among them is what they become.

    The map from old to new values never falls, and leaves -1, 0 and 1 where they are, so that all order is kept.
    """
    bounds = np.array([-1.0, 0.0, 1.0])
    known = np.union1d(values, bounds)
    group = np.append(0, np.cumsum(np.diff(known) > near))
    starts = np.flatnonzero(np.append(True, np.diff(group) > 0))
    level = known[starts]
    level[group[np.searchsorted(known, bounds)]] = bounds
    return np.asarray(level[group[np.searchsorted(known, values)]])


def _terms(space: Any, values: Floats, near: float) -> Floats | None:
    """Make terms within `near` of zero zero, and those that this unsettles valid again; None for elements."""
    if not isinstance(space, TermSpace):
        return None
    terms, m = space.terms, space.n_sources
    made = np.where(np.abs(values) <= near, 0.0, values)
    lack = -terms.slack(made)
    made[: 2 * m] += terms.sign * np.where(lack > 0, lack, 0.0)
    up, down = terms.totals(made) * [1, -1]
    made[int(np.argmax(made[:m]))] += max(0.0, down - up)
    made[m + int(np.argmin(made[m : 2 * m]))] -= max(0.0, up - down)
    return np.asarray(np.rint(made / max(up, down) * GRID) / GRID)
