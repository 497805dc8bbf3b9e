"""Objectives that are one sum of squares: a single quadratic program, however many instances there are."""

import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.problem import Quadratic, Solution
from bimichi.solvers.completion import completed
from bimichi.solvers.quadratic import POLISH, PRECISION, Program, restricted_covers, variable_elements

__all__ = ["least_squares", "solve_least_squares"]

Floats = NDArray[np.float64]


def solve_least_squares(problem: Quadratic, completion: str = "lowest") -> Solution:
    """Minimise an objective that is a sum of squares; elements without weight follow by `completion`."""
    values, status, bound = least_squares(problem, problem.objective.parameters, completion)
    if status != "converged":
        warnings.warn(f"The convex solver failed: {status}; a neutral measure is returned.", stacklevel=3)
    value = problem.value(values)
    return Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value))


def least_squares(
    problem: Quadratic,
    targets: tuple[float, float],
    completion: str,
    precisions: tuple[float, ...] = (POLISH, PRECISION),
) -> tuple[Floats, str, float]:
    """Fit the integral to targets of the two classes by one QP over the elements that have weight.

    Returns the values, the status, and a lower bound; without convergence, the values in the middle of all.
    """
    lattice = problem.lattice
    gram = problem.gram(targets)
    boundary = lattice.with_boundary(np.zeros(lattice.size))
    use = gram.matrix.diagonal()
    elements = variable_elements(lattice, np.flatnonzero(use > 0))
    scale = float(use.max())
    pull = gram.matrix @ boundary
    constant = gram.constant + boundary @ pull - 2 * gram.linear @ boundary
    partial = np.full(lattice.size, np.nan)
    if len(elements) == 0:
        return completed(lattice, partial, completion), "converged", constant
    program = Program(len(elements))
    program.below_in_order(lattice, elements, restricted_covers(lattice, elements))
    P = sp.csc_matrix(sp.triu(2 / scale * gram.matrix[elements][:, elements]))
    q = 2 / scale * (pull - gram.linear)[elements]
    for precision in precisions:
        solved = program.solve(P, q, precision)
        if solved is not None:
            partial[elements] = solved[0]
            partial[use == 0] = np.nan  # some were variables only because that is simpler
            return completed(lattice, partial, completion), "converged", scale * solved[1] + constant
    lower, upper = lattice.bounds(partial)
    return (lower + upper) / 2, "the QP could not be solved", -np.inf
