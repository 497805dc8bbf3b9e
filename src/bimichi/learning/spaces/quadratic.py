"""Quadratic programs over the elements of a measure, solved by Clarabel."""

import logging

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bimichi._types import Floats, Ints
from bimichi.learning.spaces.order import Pairs, limits
from bimichi.measures.lattice import Lattice

log = logging.getLogger(__name__)

PRECISION = 1e-8

POLISH = 1e-13  # J is flat at its minimum: J to 1e-13 is an element to 1e-6. Not every QP can be solved so far


class Program:
    """Minimise x'Px/2 + q'x under linear constraints, which are added block by block as triplets.

    Building one sparse matrix from triplets is much quicker than stacking many, and these programs are small.
    """

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.n_rows = 0
        self.n_equal = 0
        self._triplets: list[tuple[Ints, Ints, Floats]] = []
        self._limit: list[Floats] = []
        self.multipliers = np.empty(0)  # of the rows, once solved

    def equal(self, limit: Floats, *triplets: tuple[ArrayLike, ArrayLike, ArrayLike]) -> None:
        """Add rows A x = limit; before any `below`."""
        self.n_equal += len(limit)
        self.below(limit, *triplets)

    def below(self, limit: Floats, *triplets: tuple[ArrayLike, ArrayLike, ArrayLike]) -> None:
        """Add rows A x <= limit, A given by triplets (row within this block, column, value)."""
        for row, column, data in triplets:
            row, column, data = np.broadcast_arrays(row, column, np.asarray(data, dtype=np.float64))
            self._triplets.append((row.ravel() + self.n_rows, column.ravel(), data.ravel()))
        self._limit.append(limit)
        self.n_rows += len(limit)

    def below_in_order(self, lattice: Lattice, elements: Ints, pairs: Pairs) -> None:
        """Let the first variables be the values of `elements`: `pairs` of them in order, and within their bounds."""
        lower, upper = pairs
        rows = np.arange(len(lower))
        self.below(np.zeros(len(lower)), (rows, lower, 1.0), (rows, upper, -1.0))
        low, high = limits(lattice, elements)
        # A bound that a neighbour has, too, follows from the order.
        floor, ceiling = np.ones(len(elements), dtype=bool), np.ones(len(elements), dtype=bool)
        floor[upper[low[lower] == low[upper]]] = False
        ceiling[lower[high[lower] == high[upper]]] = False
        for bound, side, needed in ((high, 1.0, ceiling), (low, -1.0, floor)):
            which = np.flatnonzero(needed)
            self.below(side * bound[which], (np.arange(len(which)), which, side))

    def matrix(self) -> tuple[sp.csc_matrix, Floats]:
        """Return the rows, first those that are equal, and their limits."""
        row, column, data = map(np.concatenate, zip(*self._triplets, strict=True))
        return sp.csc_matrix((data, (row, column)), shape=(self.n_rows, self.n_variables)), np.concatenate(self._limit)

    def solve(self, P: sp.csc_matrix, q: Floats, precision: float = PRECISION) -> tuple[Floats, float] | None:
        """Return the minimum and the dual value, a lower bound; None when Clarabel reports trouble.

        `P` is upper triangular.
        """
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = precision
        settings.iterative_refinement_enable = precision < PRECISION  # needless above, and half of the time
        A, limit = self.matrix()
        cones = [clarabel.ZeroConeT(self.n_equal), clarabel.NonnegativeConeT(self.n_rows - self.n_equal)]
        answer = clarabel.DefaultSolver(P, q, A, limit, cones, settings).solve()
        if str(answer.status) not in ("Solved", "AlmostSolved"):
            log.debug("Clarabel, asked for %g: %s", precision, answer.status)
            return None
        self.multipliers = np.array(answer.z)
        return np.array(answer.x), float(answer.obj_val_dual)
