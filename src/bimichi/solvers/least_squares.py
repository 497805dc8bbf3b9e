"""Objectives that are one sum of squares: a single quadratic program, however many instances there are."""

import warnings

import numpy as np
import scipy.sparse as sp

from bimichi.problem import Quadratic, Solution
from bimichi.solvers.completion import completed
from bimichi.solvers.quadratic import POLISH, Program, restricted_covers, variable_elements

__all__ = ["solve_least_squares"]


def solve_least_squares(problem: Quadratic, completion: str = "lowest") -> Solution:
    """Minimise a sum of squares by one QP over the elements that have weight; the others follow by `completion`."""
    lattice = problem.lattice
    gram = problem.gram()
    boundary = lattice.with_boundary(np.zeros(lattice.size))
    use = gram.matrix.diagonal()
    elements = variable_elements(lattice, np.flatnonzero(use > 0))
    scale = float(use.max())
    pull = gram.matrix @ boundary
    constant = gram.constant + boundary @ pull - 2 * gram.linear @ boundary
    partial = np.full(lattice.size, np.nan)
    status, bound = "converged", constant
    if len(elements):
        program = Program(len(elements))
        program.below_in_order(lattice, elements, restricted_covers(lattice, elements))
        P = sp.csc_matrix(sp.triu(2 / scale * gram.matrix[elements][:, elements]))
        q = 2 / scale * (pull - gram.linear)[elements]
        solved = program.solve(P, q, POLISH) or program.solve(P, q)
        if solved is None:
            status = "the QP could not be solved"
            warnings.warn(f"The convex solver failed: {status}; a neutral measure is returned.", stacklevel=3)
        else:
            partial[elements], bound = solved[0], scale * solved[1] + constant
            partial[use == 0] = np.nan  # some were variables only because that is simpler
    if status == "converged":
        values = completed(lattice, partial, completion)
    else:
        lower, upper = lattice.bounds(partial)
        values = (lower + upper) / 2
    value = problem.value(values)
    return Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value))
