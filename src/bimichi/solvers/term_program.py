"""Quadratic programs over the terms of a 2-additive bi-capacity, with few pairs of sources at a time.

At a minimum most pairs of sources have terms that are all zero. So a program starts with few pairs as variables; from its
multipliers it follows, exactly and in O(m^2), which further pairs would lower the minimum, and only these are added.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.gram import Gram
from bimichi.solvers.quadratic import Program
from bimichi.terms import Terms

__all__ = ["Minimum", "SquaredLines", "SumOfSquares", "Tied", "minimise"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALL_PAIRS = 30
"""Up to so many pairs, all are variables from the start."""

PRICE = 1e-8
"""By how much, relative to the pull on the terms, a pair must promise to lower the minimum; what is less is rounding."""


class Squares(Protocol):
    """A convex quadratic function of all terms."""

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        """P and q of x'Px/2 + q'x, for these terms alone."""
        ...

    def gradient(self, values: Floats) -> Floats:
        """Its gradient in all terms."""
        ...


@dataclass(frozen=True)
class SumOfSquares:
    """A sum over all instances, divided by `scale`, without its constant."""

    matrix: Floats
    linear: Floats
    scale: float

    @classmethod
    def of(cls, gram: Gram) -> "SumOfSquares":
        """From a quadratic form, scaled so that the largest entry is 1."""
        matrix = gram.matrix.toarray()
        return cls(matrix, gram.linear, float(matrix.diagonal().max()) or 1.0)

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        """P and q for these terms alone."""
        return 2 / self.scale * self.matrix[np.ix_(columns, columns)], -2 / self.scale * self.linear[columns]

    def gradient(self, values: Floats) -> Floats:
        """Its gradient in all terms."""
        return 2 / self.scale * (self.matrix @ values - self.linear)


@dataclass(frozen=True)
class SquaredLines:
    """The sum of share * (row @ v + constant)^2 over some rows, without share * constant^2."""

    rows: sp.csr_array
    constant: Floats
    share: Floats

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        """P and q for these terms alone."""
        rows = self.rows[:, columns].toarray()
        weighted = 2 * self.share[:, None] * rows
        return rows.T @ weighted, weighted.T @ self.constant

    def gradient(self, values: Floats) -> Floats:
        """Its gradient in all terms."""
        return np.asarray(self.rows.T @ (2 * self.share * (self.rows @ values + self.constant)))


class Tied(NamedTuple):
    """Rows that bound slacks t from below, ``t[slack] >= row @ v + constant``, each at the price weight * t^2."""

    rows: sp.csr_array
    constant: Floats
    slack: Ints
    weight: Floats


class Minimum(NamedTuple):
    """What was found: terms, nearly valid; slacks; and what no valid terms can be below of."""

    values: Floats
    slack: Floats
    bound: float


def minimise(space: Terms, squares: Squares, tied: Tied | None, precision: float) -> Minimum | None:
    """Minimise over all monotone terms within bounds; None if a program could not be solved."""
    m = space.n_sources
    tied = Tied(sp.csr_array((0, space.size)), np.empty(0), np.empty(0, np.int64), np.empty(0)) if tied is None else tied
    all_pairs = np.column_stack(np.triu_indices(m, 1))
    inside = np.full(len(all_pairs), len(all_pairs) <= ALL_PAIRS)
    while True:
        program = _Pairs(space, all_pairs[inside], squares, tied)
        solved = program.solve(precision)
        if solved is None:
            return None
        found, pull, sides = solved
        excess = np.where(inside, 0.0, _excess(space, all_pairs, pull, sides))
        missing = np.flatnonzero(excess > max(PRICE, 10 * precision) * (1 + np.abs(pull).max()))
        if not len(missing):
            return found._replace(bound=found.bound - float(excess.sum()))
        best = missing[np.argsort(-excess[missing], kind="stable")]
        inside[best[: max(m, int(inside.sum()))]] = True


def _excess(space: Terms, pairs: Ints, pull: Floats, sides: Floats) -> Floats:
    """For each pair of sources whose terms are zero: by how much no multipliers can hold them there.

    The pull on a term must be balanced by multipliers of "s <= sign * term" of its two sides. Of one side and one
    other source, they add up to no more than the multiplier of that side's own condition. A term of one side up and
    one down is balanced by one of the two alone; what it leaves is there for those of equal sides, which may take
    from both.
    """
    m, index = space.n_sources, space.index
    i, k = pairs.T
    rest_i, rest_k = [sides[i], sides[i + m]], [sides[k], sides[k + m]]  # what is left of each side, up and down
    for up, down, of_up, of_down in ((i, k + m, rest_i, rest_k), (k, i + m, rest_k, rest_i)):
        need = pull[index[up, down]]
        of_up[0] = of_up[0] - np.maximum(need, 0)
        of_down[1] = of_down[1] - np.maximum(-need, 0)
    total = np.zeros(len(pairs))
    for side, sign in ((0, 1.0), (1, -1.0)):
        need = sign * pull[index[i + side * m, k + side * m]]
        total += np.maximum(0, -rest_i[side]) + np.maximum(0, -rest_k[side]) + np.maximum(0, -need)
        total += np.maximum(0, need - np.maximum(0, rest_i[side]) - np.maximum(0, rest_k[side]))
    return total


class _Pairs:
    """The program whose variables are the terms of all sides and of some pairs of sources.

    Each "min(0, ., .)" of `Terms.slack` is a helper variable with three inequalities; see there why this is exact.
    """

    def __init__(self, space: Terms, pairs: Ints, squares: Squares, tied: Tied) -> None:
        m, index = space.n_sources, space.index
        i, k = pairs.T
        self._space, self._squares, self._tied = space, squares, tied
        self._of_pairs = [index[s, t].astype(np.int64) for s in (i, i + m) for t in (k, k + m)]
        self._columns = np.concatenate([np.arange(2 * m), *self._of_pairs])
        self._side, self._other = np.concatenate([i, i + m, k, k + m]), np.concatenate([k, k, i, i])
        self._n_terms = len(self._columns)
        self._n = self._n_terms + len(self._side)  # and the slacks after these

    def solve(self, precision: float) -> tuple[Minimum, Floats, Floats] | None:
        """Return the minimum, the pull on every term that its sides must balance, and the multiplier of every side."""
        tied, space = self._tied, self._space
        program, m, n_tied = self._constrained(), space.n_sources, len(tied.constant)
        P, q = self._squares.part(self._columns)
        blocks = [sp.triu(P), sp.csc_array((len(self._side), len(self._side))), sp.diags_array(2 * tied.weight)]
        whole = sp.csc_matrix(sp.block_diag(blocks, format="csc"))
        solved = program.solve(whole, np.append(q, np.zeros(whole.shape[0] - len(q))), precision)
        if solved is None:
            return None
        x, bound = solved
        values = np.zeros(space.size)
        values[self._columns] = x[: self._n_terms]
        pull = self._squares.gradient(values) + tied.rows.T @ program.multipliers[2 : 2 + n_tied]
        first, second = space.sides
        pull[2 * m :] += program.multipliers[0] * (second < m) + program.multipliers[1] * (first >= m)
        return Minimum(values, x[self._n :], bound), pull, program.multipliers[-2 * m :]

    def _constrained(self) -> Program:
        space, tied, m = self._space, self._tied, self._space.n_sources
        program = Program(self._n + len(tied.weight))
        position = np.full(space.size, -1)
        position[self._columns] = np.arange(self._n_terms)
        helper = np.arange(self._n_terms, self._n)
        up, down = (np.append(np.arange(m) + start, position[pairs]) for start, pairs in zip((0, m), self._of_pairs[::3]))
        program.equal(np.array([1.0, -1.0]), (np.zeros(len(up), int), up, 1.0), (np.ones(len(down), int), down, 1.0))
        rows = tied.rows[:, self._columns].tocoo()
        slacks = (np.arange(len(tied.slack)), self._n + tied.slack, -1.0)
        program.below(-tied.constant, (rows.row, rows.col, rows.data), slacks)
        rows_of = np.arange(len(helper))
        program.below(np.zeros(len(helper)), (rows_of, helper, 1.0))
        for half in (0, m):
            terms = position[space.index[self._side, self._other + half]]
            program.below(np.zeros(len(helper)), (rows_of, helper, 1.0), (rows_of, terms, -space.sign[self._side]))
        sides = np.arange(2 * m)
        program.below(np.zeros(2 * m), (sides, sides, -space.sign), (self._side, helper, -1.0))
        return program
