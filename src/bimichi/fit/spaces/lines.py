"""Programs over a measure times a free slope, and a free offset: f = slope * C + offset.

With h = slope * g, f is linear in h and the offset, and what g must satisfy becomes linear in h and the slope: the
order stays as it is, and a bound of 1 becomes the slope. So any convex loss of f is convex in these, and a quadratic
one is minimised by one program. Programs over the terms of a 2-additive bi-capacity take few of them at a time; see
docs/design.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import lsqr

from bimichi._types import Floats, Ints
from bimichi.fit.spaces.base import OrderedPairs, Program, Sums, completion_of, limits
from bimichi.fit.spaces.sums import Gram, LossSums
from bimichi.measures.additive import Terms
from bimichi.measures.base import TOLERANCE
from bimichi.measures.lattice import Lattice

SLOPE_LIMIT = 100.0
"""Where classes can be separated, the loss falls for ever steeper slopes; they end here."""

FLAT = 1e-9  # a slope below is none
CURVED_PRICE = 1e-7  # what dividing by curvature may cost a bound, relative to the loss
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
    depth = min(float(np.abs(less) @ reach), _depth(less, P, reach, weight, CURVED_PRICE * value))
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


ALL_TERMS = 128  # up to so many, all are variables from the start
NEAR_ZERO = 1e-6  # what is less may be rounding
PRICE = 1e-8  # a term must promise to lower the minimum by more, relative to the pull; less is rounding


class QuadraticFunction(Protocol):
    """A convex quadratic function of all terms."""

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        """P and q of x'Px/2 + q'x, for these terms alone."""

    def gradient(self, values: Floats) -> Floats:
        """Its gradient in all terms."""


@dataclass(frozen=True)
class SumOfSquares(QuadraticFunction):
    """The mean over each bag of squared distances to targets, divided by `scale`, without its constant."""

    data: Sums
    targets: tuple[float, float]
    space: Terms

    @property
    def scale(self) -> float:
        """The divisor that makes all entries 1 at most."""
        return float(self.data.weights.sum())

    @property
    def constant(self) -> float:
        """The value at terms that are all zero, not divided."""
        return float(self.data.weights @ np.where(self.data.labels, self.targets[1], self.targets[0]) ** 2)

    @cached_property
    def _at_zero(self) -> Floats:
        return self.gradient(np.zeros(self.space.size))

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        return 2 / self.scale * self.data.total("squares", columns=columns), self._at_zero[columns]

    def gradient(self, values: Floats) -> Floats:
        return np.asarray(2 / self.scale * self.data.total("slope", targets=self.targets, values=values))


@dataclass(frozen=True)
class SquaredLines(QuadraticFunction):
    """The sum of share * (row @ v + constant)^2 over some rows, without share * constant^2."""

    rows: sp.csr_array
    constant: Floats
    share: Floats

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        rows = self.rows[:, columns].toarray()
        weighted = 2 * self.share[:, None] * rows
        return rows.T @ weighted, weighted.T @ self.constant

    def gradient(self, values: Floats) -> Floats:
        return np.asarray(self.rows.T @ (2 * self.share * (self.rows @ values + self.constant)))


class Tied(NamedTuple):
    """Rows that bound slacks t from below, ``t[slack] >= row @ v + constant``, each at the price weight * t^2."""

    rows: sp.csr_array
    constant: Floats
    slack: Ints
    weight: Floats


class TermMinimum(NamedTuple):
    """Terms, nearly valid; slacks; and a lower bound over all valid terms."""

    values: Floats
    slack: Floats
    bound: float


def minimise(
    space: Terms, squares: QuadraticFunction, tied: Tied | None, precision: float, near: Floats | None = None
) -> TermMinimum | None:
    """Minimise over all monotone terms within bounds; None if a program could not be solved.

    Terms that are not zero in `near` are variables from the start, unless most of them are.
    """
    n_sides = 2 * space.n_sources
    if tied is None:
        tied = Tied(sp.csr_array((0, space.size)), np.empty(0), np.empty(0, np.int64), np.empty(0))
    inside = np.full(space.size, space.pairs and space.size <= ALL_TERMS)
    if near is not None and space.pairs and 2 * np.count_nonzero(near) < space.size:
        inside |= np.abs(near) > NEAR_ZERO
    inside[:n_sides] = True
    while True:
        program = _Active(space, np.flatnonzero(inside), squares, tied)
        minimum = program.solve(precision)
        if minimum is None or not space.pairs:
            return minimum
        excess = program.excess()
        missing = np.flatnonzero(excess > max(PRICE, 10 * precision) * (1 + np.abs(program.pull).max()))
        if not len(missing):
            return minimum._replace(bound=minimum.bound - float(excess.sum()))
        best = missing[np.argsort(-excess[missing], kind="stable")]
        inside[best[: max(n_sides, int(inside.sum()) // 2)]] = True


class ActiveTerms:
    """The terms of all sides and some of pairs as variables, with what makes them monotone.

    Each "min(0, ., .)" of `Terms.slack` is a helper variable, below all that it is the minimum of; see there why
    this is exact. A minimum of terms that are no variables is zero, and needs none.
    """

    def __init__(self, space: Terms, columns: Ints) -> None:
        self._space, self._columns = space, columns
        m, pairs = space.n_sources, columns[2 * space.n_sources :] - 2 * space.n_sources
        first, second = (side[pairs] for side in space.sides)
        self._side, self._other = np.concatenate([first, second]), np.concatenate([second, first])
        places, self._helper = np.unique(self._side * m + self._other % m, return_inverse=True)
        self._helped = places // m, places % m  # side and other source of each helper
        self._n_terms, self.n_helpers = len(columns), len(places)
        self._n = self._n_terms + self.n_helpers

    def scaled_program(self, limit: float) -> Program:
        """Return the program whose bounds are plus and minus a further variable, up to a limit; one more is free."""
        program, slope = Program(self._n + 2), self._n
        up, down = self._bounds()
        program.equal(np.zeros(2), (*up, 1.0), (*down, 1.0), ([0, 1], slope, [-1.0, 1.0]))
        program.below(np.array([limit, 0.0]), ([0, 1], slope, [1.0, -1.0]))
        self._add_order(program)
        return program

    def _bounds(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Rows and columns of the totals: of terms of sides that are up, and of those that are down."""
        m, n_pairs = self._space.n_sources, self._n_terms - 2 * self._space.n_sources
        pair, sides = np.arange(2 * m, self._n_terms), np.arange(2 * m)
        first, second = self._side[:n_pairs], self._side[n_pairs:]
        up, down = np.append(sides[:m], pair[second < m]), np.append(sides[m:], pair[first >= m])
        return (np.zeros(len(up), int), up), (np.ones(len(down), int), down)

    def _add_order(self, program: Program) -> None:
        space, m = self._space, self._space.n_sources
        n_pairs = self._n_terms - 2 * m
        pair, sides, helpers = np.arange(2 * m, self._n_terms), np.arange(2 * m), np.arange(self.n_helpers)
        program.below(np.zeros(self.n_helpers), (helpers, self._n_terms + helpers, 1.0))
        limits = np.arange(2 * n_pairs)
        program.below(
            np.zeros(2 * n_pairs),
            (limits, self._n_terms + self._helper, 1.0),
            (limits, np.tile(pair, 2), -space.sign[self._side]),
        )
        program.below(np.zeros(2 * m), (sides, sides, -space.sign), (self._helped[0], self._n_terms + helpers, -1.0))


class _Active(ActiveTerms):
    """The program over these variables of a sum of squares; slacks come after the helpers."""

    def __init__(self, space: Terms, columns: Ints, squares: QuadraticFunction, tied: Tied) -> None:
        super().__init__(space, columns)
        self._squares, self._tied = squares, tied

    def solve(self, precision: float) -> TermMinimum | None:
        """Return the minimum over these variables; the others are zero."""
        tied, n_tied = self._tied, len(self._tied.constant)
        program = self._constrained()
        P, q = self._squares.part(self._columns)
        blocks = [sp.triu(P), sp.csc_array((self.n_helpers, self.n_helpers)), sp.diags_array(2 * tied.weight)]
        whole = sp.csc_matrix(sp.block_diag(blocks, format="csc"))
        solved = program.solve(whole, np.append(q, np.zeros(whole.shape[0] - len(q))), precision)
        if solved is None:
            return None
        x, bound = solved
        values = np.zeros(self._space.size)
        values[self._columns] = x[: self._n_terms]
        self.pull = self._squares.gradient(values) + tied.rows.T @ program.multipliers[2 : 2 + n_tied]
        self._multipliers = program.multipliers
        return TermMinimum(values, x[self._n :], bound)

    def _constrained(self) -> Program:
        tied = self._tied
        program = Program(self._n + len(tied.weight))
        up, down = self._bounds()
        program.equal(np.array([1.0, -1.0]), (*up, 1.0), (*down, 1.0))
        rows = tied.rows[:, self._columns].tocoo()
        slacks = (np.arange(len(tied.slack)), self._n + tied.slack, -1.0)
        program.below(-tied.constant, (rows.row, rows.col, rows.data), slacks)
        self._add_order(program)
        return program

    def excess(self) -> Floats:
        """Return, for each term that is no variable: by how much no multipliers can hold it at zero.

        The pull on a term must be balanced by multipliers of "helper <= sign * term" of its two sides. Those of one
        helper add up to no more than the multiplier of its side's own condition. A term of one side up and one down
        is balanced by one of the two alone; what it leaves is there for terms of equal sides, which take from both.
        """
        space, m = self._space, self._space.n_sources
        z, n_limits = self._multipliers, len(self._side)
        rest = np.repeat(z[-2 * m :, None], m, axis=1)  # of each side and other source
        np.subtract.at(rest, (self._side, self._other % m), z[-2 * m - n_limits : -2 * m])
        first, second = space.sides
        pull = self.pull[2 * m :] + z[0] * (second < m) + z[1] * (first >= m)
        outside = np.ones(len(first), dtype=bool)
        outside[self._columns[2 * m :] - 2 * m] = False
        excess = np.zeros(space.size)
        cross, equal = (np.flatnonzero(outside & ((first < m) & (second >= m) == mixed)) for mixed in (True, False))
        for sign, a, b in ((1.0, first, second), (-1.0, second, first)):
            need = np.maximum(0, sign * pull[cross])
            at = a[cross], b[cross] % m
            excess[2 * m + cross] += np.maximum(0, need - np.maximum(0, rest[at]))
            rest[at] -= need
        need = pull[equal] * space.sign[first[equal]]
        left = [np.maximum(0, rest[a[equal], b[equal] % m]) for a, b in ((first, second), (second, first))]
        excess[2 * m + equal] = np.maximum(0, -need) + np.maximum(0, need - left[0] - left[1])
        return excess
