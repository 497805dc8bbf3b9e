"""Objectives that are one sum of squares: a single quadratic program, however many instances there are."""

import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.learning.gram import check_used
from bimichi.learning.problem import Quadratic, Solution
from bimichi.learning.solvers.completion import completed
from bimichi.learning.solvers.order import Order
from bimichi.learning.solvers.quadratic import POLISH, PRECISION, Program
from bimichi.measures.base import TOLERANCE
from bimichi.measures.lattice import Lattice

__all__ = ["least_squares", "solve_least_squares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    check_used(lattice, use)
    elements = _variables(lattice, np.flatnonzero(use > 0))
    scale = float(use.max())
    pull = gram.matrix @ boundary
    constant = gram.constant + boundary @ pull - 2 * gram.linear @ boundary
    partial = np.full(lattice.size, np.nan)
    if len(elements) == 0:
        return completed(lattice, partial, completion), "converged", constant
    P = sp.csc_matrix(sp.triu(2 / scale * gram.matrix[elements][:, elements]))
    q = 2 / scale * (pull - gram.linear)[elements]
    for precision in precisions:
        solved = _in_order(lattice, elements, P, q, precision)
        if solved is not None:
            partial[elements] = solved[0]
            partial[use == 0] = np.nan  # some were variables only because that is simpler
            return completed(lattice, partial, completion), "converged", scale * solved[1] + constant
    lower, upper = lattice.bounds(partial)
    return (lower + upper) / 2, "the QP could not be solved", -np.inf


def _variables(lattice: Lattice, used: Ints) -> Ints:
    """The elements that are variables, none fixed: those in use, or all once they are most, to know their order."""
    free = np.setdiff1d(used, list(lattice.fixed))
    return free if 2 * len(free) < lattice.size else np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))


def _in_order(
    lattice: Lattice, elements: Ints, P: sp.csc_matrix, q: Floats, precision: float
) -> tuple[Floats, float] | None:
    """Minimise, add what is out of order, and minimise again, until nothing is."""
    order = Order(lattice)
    while True:
        program = Program(len(elements))
        program.below_in_order(lattice, elements, order.among(elements))
        solved = program.solve(P, q, precision)
        if solved is None:
            return None
        partial = np.full(lattice.size, np.nan)
        partial[elements] = solved[0]
        known, order = order, order.with_violated(partial, max(TOLERANCE, 10 * precision))
        if order is known:
            return solved
