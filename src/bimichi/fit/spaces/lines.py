"""Programs over a measure times a free slope, and a free offset: f = slope * C + offset.

With h = slope * g, f is linear in h and the offset, and what g must satisfy becomes linear in h and the slope: the
order stays as it is, and a bound of 1 becomes the slope. So any convex loss of f is convex in these, and a quadratic
one is minimised by one program.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import lsqr

from bimichi._types import Floats, Ints
from bimichi.fit.spaces.base import OrderedPairs, Program, completion_of, limits
from bimichi.fit.spaces.sums import Gram, LossSums
from bimichi.fit.spaces.term_program import ActiveTerms
from bimichi.measures.additive import Terms
from bimichi.measures.base import TOLERANCE
from bimichi.measures.lattice import Lattice

SLOPE_LIMIT = 100.0
"""Where classes can be separated, the loss falls for ever steeper slopes; they end here."""

FLAT = 1e-9  # a slope below is none
PRICE = 1e-7  # what dividing by curvature may cost a bound, relative to the loss
CURVED_LIMIT = 3**6  # of more variables, curvature would take too long to use in bounds


class Line(NamedTuple):
    """f = slope * C + offset, as h = slope * g at all codes, the slope, and the offset."""

    values: Floats
    slope: float
    offset: float

    def toward(self, other: "Line", share: float) -> "Line":
        """Return the point so far on the way to another."""
        values = (1 - share) * self.values + share * other.values
        slope, offset = ((1 - share) * a + share * b for a, b in zip(self[1:], other[1:], strict=True))
        return Line(values, slope, offset)


class Limits(NamedTuple):
    """Limits of lines: the largest offset; and the share of second derivatives that is sure, None if quadratic."""

    offset: float
    sure: float | None

    def weight(self, at: Line) -> float:
        """Return by how much of d'Pd a loss is above its tangent, for any step d within the limits.

        Along a step by which f moves by R at most, the second derivative of the log-loss falls no faster than e^-R t,
        as its third is no larger than the second [1]_.

        References
        ----------
        .. [1] F. Bach, "Self-concordant analysis for logistic regression", Electronic Journal of Statistics 4, 2010.
        """
        if self.sure is None:
            return 0.5
        R = SLOPE_LIMIT + at.slope + self.offset + abs(at.offset)
        return self.sure * float(np.exp(-R) + R - 1) / R**2


class LineProgram(ABC):
    """Minimises quadratic functions of lines; keeps the multipliers of the last one.

    Its variables are h at some codes, perhaps helpers, and last the slope and the offset.
    """

    _solved: "_Solved | None" = None

    @abstractmethod
    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        """Minimise the expansion of a loss around a line, with these derivatives; None if that fails.

        `form` has the second derivatives: by h twice, by h and the offset (`linear`), by the offset (`constant`).
        """

    def bound(self, sums: LossSums, form: Gram, at: Line, limits: Limits) -> float:
        """Return what no line within `SLOPE_LIMIT` has a smaller loss than; whatever the multipliers, this holds.

        Derivatives, first and second, are those at the line.
        """
        x = self._point(at)
        largest = np.append(np.full(len(x) - 1, SLOPE_LIMIT), limits.offset)
        point = self._gradient(sums), self._matrix(form), x, largest, limits.weight(at)
        return _bound(self._solved, sums.value, *point)

    @abstractmethod
    def measure(self, line: Line) -> Floats:
        """Return valid values of g."""

    @abstractmethod
    def _matrix(self, form: Gram) -> Any:
        """Return second derivatives by all variables."""

    @abstractmethod
    def _point(self, at: Line) -> Floats:
        """Return the variables at a line."""

    @abstractmethod
    def _gradient(self, sums: LossSums) -> Floats:
        """Return first derivatives by all variables."""

    def _expanded(self, form: Gram, use: Floats) -> Any:
        """Return `_matrix`; where few instances were asked, codes without any curvature have some by their use."""
        P = self._matrix(form)
        unseen = np.zeros(P.shape[0])
        unseen[: len(use)] = use * form.constant
        return P + sp.diags_array(np.where(P.diagonal() > 0, 0.0, unseen))


_Solved = tuple[Program, Floats]
"""The last program, which has the multipliers, and its solution."""


def _solve(program: Program, P: Any, gradient: Floats, x: Floats, precision: float) -> _Solved | None:
    """Minimise gradient'd + d'Pd/2 over the step d from x, within the constraints of the program."""
    solved = program.solve(sp.csc_matrix(sp.triu(P)), gradient - P @ x, precision)
    return None if solved is None else (program, solved[0])


def _bound(
    solved: _Solved | None, value: float, gradient: Floats, P: Any, x: Floats, largest: Floats, weight: float
) -> float:
    """Bound a convex loss from below, from its derivatives at x and any multipliers.

    The loss is nowhere below its tangent, and by weight * d'Pd above it at a distance of d. Constraints, times
    multipliers that are not negative, bound the tangent; what they leave of its slope counts in full, with variables as
    large as they may be, or is balanced by the curvature. Multipliers of a program are those of its own function; least
    squares over constraints that hold fit them to the tangent.
    """
    if solved is None:
        return -np.inf
    program, solution = solved
    A, limit = program.matrix()

    def at(z: Floats) -> tuple[float, Floats]:
        z = np.append(z[: program.n_equal], np.maximum(z[program.n_equal :], 0))
        rest = gradient + A.T @ z
        return float(value - limit @ z - (gradient - rest) @ x), rest

    z = program.multipliers
    holding = z > limit - A @ solution  # constraints with more of a multiplier than of a distance
    holding[: program.n_equal] = True
    better = z.copy()
    better[holding] += lsqr(A[holding].T, -at(z)[1], atol=1e-15, btol=1e-15, iter_lim=2 * A.shape[1])[0]
    (first, rest), (second, less) = at(z), at(better)
    reach = np.abs(x) + largest
    depth = min(float(np.abs(less) @ reach), _depth(less, P, reach, weight, PRICE * value))
    return max(first - float(np.abs(rest) @ reach), second - depth)


def _depth(rest: Floats, P: Any, reach: Floats, weight: float, price: float) -> float:
    """Return what -(rest'd + weight * d'Pd) is at most, over steps d with no variable beyond its reach.

    A little is added to the diagonal, so that it can be divided by; that can cost the bound no more than the price.
    """
    curved = P.diagonal() > 0
    if weight == 0 or not curved.any() or curved.sum() > CURVED_LIMIT:
        return np.inf
    inner, far = P.tocsc()[curved][:, curved].toarray(), float(reach[curved] @ reach[curved])
    added = max(price / (weight * far), 1e-13 * float(inner.diagonal().max()))
    try:
        solved = cho_solve(cho_factor(inner + added * np.eye(len(inner)), overwrite_a=True), rest[curved])
    except LinAlgError:
        return np.inf
    flat = float(np.abs(rest[~curved]) @ reach[~curved])
    return flat + float(rest[curved] @ solved) / (4 * weight) + weight * added * far


class ElementLines(LineProgram):
    """Lines over the elements of a lattice; elements without weight are no variables."""

    def __init__(self, lattice: Lattice, elements: Ints, use: Floats) -> None:
        self._lattice, self._elements, self._used = lattice, elements, use > 0
        self._use, self._order = use[elements], OrderedPairs(lattice)
        self._boundary = lattice.with_boundary(np.zeros(lattice.size))

    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        e, P = self._elements, self._expanded(form, self._use)
        x, gradient, more = self._point(at), self._gradient(sums), True
        while more:
            solved = _solve(self._program(), P, gradient, x, precision)
            if solved is None:
                return None
            self._solved, solution = solved, solved[1]
            partial = np.full(self._lattice.size, np.nan)
            partial[e] = solution[:-2] / max(solution[-2], FLAT)
            self._order, more = self._order.with_violated(partial, max(TOLERANCE, 10 * precision))
        values = solution[-2] * self._boundary
        values[e] = solution[:-2]
        return Line(values, float(solution[-2]), float(solution[-1]))

    def measure(self, line: Line) -> Floats:
        partial = np.where(self._used, line.values / max(line.slope, FLAT), np.nan)
        partial[list(self._lattice.fixed)] = np.nan
        return completion_of(self._lattice, partial, "lowest").values

    def _matrix(self, form: Gram) -> Any:
        e, u = self._elements, self._boundary
        pull = form.matrix @ u
        columns = np.column_stack([pull[e], form.linear[e]])
        corner = np.array([[u @ pull, form.linear @ u], [form.linear @ u, form.constant]])
        return sp.block_array([[form.matrix[e][:, e], columns], [columns.T, corner]], format="csc")

    def _point(self, at: Line) -> Floats:
        return np.concatenate([at.values[self._elements], [at.slope, at.offset]])

    def _gradient(self, sums: LossSums) -> Floats:
        return np.concatenate([sums.gradient[self._elements], [sums.gradient @ self._boundary, sums.offset]])

    def _program(self) -> Program:
        n = len(self._elements)
        program = Program(n + 2)
        lower, upper = self._order.among(self._elements)
        rows = np.arange(len(lower))
        program.below(np.zeros(len(rows)), (rows, lower, 1.0), (rows, upper, -1.0))
        low, high = limits(self._lattice, self._elements)
        each = np.arange(n)
        for bound, side in ((high, 1.0), (low, -1.0)):
            program.below(np.zeros(n), (each, each, side), (each, n, -side * bound))
        program.below(np.array([SLOPE_LIMIT, 0.0]), ([0, 1], n, [1.0, -1.0]))
        return program


class TermLines(LineProgram):
    """Lines over the terms of an additive bi-capacity."""

    def __init__(self, terms: Terms, use: Floats) -> None:
        self._terms, self._use = terms, use
        self._columns = np.arange(terms.size if terms.pairs else 2 * terms.n_sources)
        self._active = ActiveTerms(terms, self._columns)

    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        c, P = self._columns, self._expanded(form, self._use[self._columns])
        solved = _solve(self._active.scaled_program(SLOPE_LIMIT), P, self._gradient(sums), self._point(at), precision)
        if solved is None:
            return None
        self._solved = solved
        values = np.zeros(self._terms.size)
        values[c] = solved[1][: len(c)]
        return Line(values, float(solved[1][-2]), float(solved[1][-1]))

    def measure(self, line: Line) -> Floats:
        return self._terms.repaired(line.values / max(line.slope, FLAT))

    def _matrix(self, form: Gram) -> Any:
        size = len(self._columns)  # the first ones; helpers and the slope have no derivatives
        n = size + self._active.n_helpers + 2
        P = np.zeros((n, n))
        P[:size, :size], P[:size, -1] = form.matrix[:size, :size].toarray(), form.linear[:size]
        P[-1, :size], P[-1, -1] = form.linear[:size], form.constant
        return sp.csc_array(P)

    def _point(self, at: Line) -> Floats:
        # Helpers have no derivatives, so that what they are does not matter here.
        return np.concatenate([at.values[self._columns], np.zeros(self._active.n_helpers), [at.slope, at.offset]])

    def _gradient(self, sums: LossSums) -> Floats:
        return np.concatenate([sums.gradient[self._columns], np.zeros(self._active.n_helpers), [0.0, sums.offset]])
