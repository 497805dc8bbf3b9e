"""Quadratic programs over the terms of a 2-additive bi-capacity, with few of them at a time; see docs/design.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from bimichi._types import Floats, Ints
from bimichi.fit.spaces.base import Program, Sums
from bimichi.measures.additive import Terms

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
