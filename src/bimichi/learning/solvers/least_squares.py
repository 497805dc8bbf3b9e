"""Objectives that are one sum of squares: a single quadratic program, however many instances there are."""

import warnings

import numpy as np

from bimichi.learning.problem import Problem, Solution, Summed
from bimichi.learning.spaces.quadratic import POLISH, PRECISION

__all__ = ["solve_least_squares"]


def solve_least_squares(problem: Problem | Summed, completion: str = "lowest") -> Solution:
    """Minimise an objective that is a sum of squares; values without weight follow by `completion`."""
    first, second = problem.objective.parameters
    values, status, bound = problem.space.least_squares(problem, (first, second), completion, (POLISH, PRECISION))
    if status != "converged":
        warnings.warn(f"The convex solver failed: {status}; a neutral measure is returned.", stacklevel=3)
    value = problem.value(values)
    return Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value))
