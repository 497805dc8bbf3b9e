"""Programs over a measure times a free slope, and a free offset: f = slope * C + offset.

With h = slope * g, f is linear in h and the offset, and what g must satisfy becomes linear in h and the slope: the
order stays as it is, and a bound of 1 becomes the slope. So any convex loss of f is convex in these, and a quadratic
one is minimised by one program.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from bimichi._types import Floats, Ints
from bimichi.learning.spaces.gram import Gram
from bimichi.learning.spaces.losses import LossSums
from bimichi.learning.spaces.order import OrderedPairs, completion_of, limits
from bimichi.learning.spaces.quadratic import Program
from bimichi.learning.spaces.term_program import ActiveTerms
from bimichi.measures.base import TOLERANCE
from bimichi.measures.lattice import Lattice
from bimichi.measures.terms import Terms

SLOPE_LIMIT = 1000.0
"""Where classes can be separated, the loss falls for ever steeper slopes; they end here."""

FLAT = 1e-9  # a slope below is none


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


class LineProgram(Protocol):
    """Minimises quadratic functions of lines; keeps the multipliers of the last one."""

    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        """Minimise the expansion of a loss around a line, with these derivatives; None if that fails.

        `form` has the second derivatives: by h twice, by h and the offset (`linear`), by the offset (`constant`).
        """

    def bound(self, sums: LossSums, at: Line, offset_limit: float) -> float:
        """Return what no line within `SLOPE_LIMIT` has a smaller loss than; whatever the multipliers, this holds."""

    def measure(self, line: Line) -> Floats:
        """Return valid values of g."""


@dataclass
class _Solved:
    """The last program, its solution, and its multipliers."""

    program: Program
    x: Floats


def _solve(program: Program, P: Any, gradient: Floats, x: Floats, precision: float) -> _Solved | None:
    """Minimise gradient'd + d'Pd/2 over the step d from x, within the constraints of the program."""
    found = program.solve(sp.csc_matrix(sp.triu(P)), gradient - P @ x, precision)
    return None if found is None else _Solved(program, found[0])


def _bound(solved: _Solved | None, value: float, gradient: Floats, x: Floats, largest: Floats) -> float:
    """Bound a convex loss from below, from its derivatives at x and any multipliers.

    The loss is nowhere below its tangent. Constraints, times multipliers that are not negative, bound the tangent; what
    they leave of its slope counts in full, with variables as large as they may be. Multipliers of a program are those
    of its own function; least squares over constraints that hold fit them to the tangent.
    """
    if solved is None:
        return -np.inf
    program = solved.program
    A, limit = program.matrix()

    def at(z: Floats) -> tuple[float, Floats]:
        z = np.append(z[: program.n_equal], np.maximum(z[program.n_equal :], 0))
        rest = gradient + A.T @ z
        return float(value - gradient @ x - limit @ z - np.abs(rest) @ largest), rest

    z = program.multipliers
    first, rest = at(z)
    holding = z > limit - A @ solved.x  # constraints with more of a multiplier than of a distance
    holding[: program.n_equal] = True
    better = z.copy()
    better[holding] += lsqr(A[holding].T, -rest, atol=1e-15, btol=1e-15, iter_lim=2 * len(rest))[0]
    return max(first, at(better)[0])


class ElementLines(LineProgram):
    """Lines over the elements of a lattice; elements without weight are no variables."""

    def __init__(self, lattice: Lattice, elements: Ints, use: Floats) -> None:
        self._lattice, self._elements, self._used = lattice, elements, use > 0
        self._use, self._order = use[elements], OrderedPairs(lattice)
        self._boundary = lattice.with_boundary(np.zeros(lattice.size))
        self._solved: _Solved | None = None

    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        e, u = self._elements, self._boundary
        pull = form.matrix @ u
        inner = form.matrix[e][:, e]
        unseen = np.where(inner.diagonal() > 0, 0.0, self._use * form.constant)  # where few instances were asked
        columns = np.column_stack([pull[e], form.linear[e]])
        corner = np.array([[u @ pull, form.linear @ u], [form.linear @ u, form.constant]])
        P = sp.block_array([[inner + sp.diags_array(unseen), columns], [columns.T, corner]], format="csc")
        x, gradient, more = self._point(at), self._gradient(sums), True
        while more:
            found = _solve(self._program(), P, gradient, x, precision)
            if found is None:
                return None
            self._solved, solution = found, found.x
            partial = np.full(self._lattice.size, np.nan)
            partial[e] = solution[:-2] / max(solution[-2], FLAT)
            self._order, more = self._order.with_violated(partial, max(TOLERANCE, 10 * precision))
        values = solution[-2] * u
        values[e] = solution[:-2]
        return Line(values, float(solution[-2]), float(solution[-1]))

    def bound(self, sums: LossSums, at: Line, offset_limit: float) -> float:
        largest = np.full(len(self._elements) + 2, SLOPE_LIMIT)
        largest[-1] = offset_limit
        return _bound(self._solved, sums.value, self._gradient(sums), self._point(at), largest)

    def measure(self, line: Line) -> Floats:
        partial = np.where(self._used, line.values / max(line.slope, FLAT), np.nan)
        partial[list(self._lattice.fixed)] = np.nan
        return completion_of(self._lattice, partial, "lowest").values

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
        self._solved: _Solved | None = None

    def minimise(self, form: Gram, sums: LossSums, at: Line, precision: float) -> Line | None:
        c, n_helpers = self._columns, self._active.n_helpers
        inner, cross = form.matrix[c][:, c].toarray(), form.linear[c, None]
        inner += np.diag(np.where(inner.diagonal() > 0, 0.0, self._use[c] * form.constant))
        n = len(c) + n_helpers + 2
        P = np.zeros((n, n))
        P[: len(c), : len(c)], P[: len(c), -1:], P[-1:, : len(c)], P[-1, -1] = inner, cross, cross.T, form.constant
        found = _solve(self._active.scaled_program(SLOPE_LIMIT), P, self._gradient(sums), self._point(at), precision)
        if found is None:
            return None
        self._solved = found
        values = np.zeros(self._terms.size)
        values[c] = found.x[: len(c)]
        return Line(values, float(found.x[-2]), float(found.x[-1]))

    def bound(self, sums: LossSums, at: Line, offset_limit: float) -> float:
        largest = np.full(len(self._columns) + self._active.n_helpers + 2, SLOPE_LIMIT)
        largest[-1] = offset_limit
        return _bound(self._solved, sums.value, self._gradient(sums), self._point(at), largest)

    def measure(self, line: Line) -> Floats:
        return self._terms.repaired(line.values / max(line.slope, FLAT))

    def _point(self, at: Line) -> Floats:
        # Helpers have no derivatives, so that what they are does not matter here.
        return np.concatenate([at.values[self._columns], np.zeros(self._active.n_helpers), [at.slope, at.offset]])

    def _gradient(self, sums: LossSums) -> Floats:
        return np.concatenate([sums.gradient[self._columns], np.zeros(self._active.n_helpers), [0.0, sums.offset]])
