"""Ties are ties: learned values that differ by what a solver leaves behind are made equal, where J does not rise.

Interior points end near bounds and near each other, not on them. Instances whose integrals are equal but for that would
be ranked by rounding, and differently so in float32 and float64.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bimichi.learning.problem import Solution

NEAR = (1e-7, 1e-9, 1e-11)  # what counts as equal: the first by which J does not rise
ROUNDING = 1e-15  # of J, which is a sum


def snapped(problem: Any, solution: Solution) -> Solution:
    """Return the solution with values that nearly are a bound, or nearly each other, made so; J never rises."""
    for near in NEAR:
        values = problem.space.snapped(solution.values, near)
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
