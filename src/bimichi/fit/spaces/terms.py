"""The space of additive bi-capacities: terms of single sources, and of pairs of them.

An instance uses m (m + 1) / 2 of the 2 m^2 terms, so the rows of all instances would take far more memory than the
instances. Rows are made on demand; integrals are computed from the instances themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from bimichi._types import Codes, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.spaces.base import Completion, Instances, Minimum, Order, QuadraticRows, Space, Sums
from bimichi.fit.spaces.lines import SquaredLines, SumOfSquares, TermLines, Tied, minimise
from bimichi.fit.spaces.sums import Gram, LossInstances, RowsOfSquares, squares_of_rows
from bimichi.integral.planes import SMALL_CHUNK, check_n_jobs, in_threads, run_chunks
from bimichi.integral.terms import (
    add_features,
    add_single_squares,
    integrate_terms,
    sign_table,
    term_features,
    term_rows,
)
from bimichi.measures.additive import AdditiveBiCapacity, Terms
from bimichi.scenes.bags import Bags

FEATURES = 1 << 22  # how many features are held at a time when quadratic forms are summed up: 32 MB
GRID = 2.0**40  # snapped terms are multiples of its inverse, so that their sums are exact
POLISH_LIMIT = 3**6  # with more terms, a program of the highest precision would cost seconds


class TermInstances(LossInstances, Instances):
    """Instances as they are."""

    def __init__(self, terms: Terms, bags: Bags, n_jobs: int | None = None) -> None:
        self._terms, self._bags, self._n_jobs = terms, bags, check_n_jobs(n_jobs)
        self._X = np.ascontiguousarray(bags.X)

    def fuse(self, values: Floats) -> Floats:
        table = sign_table(self._terms, values)
        fused = np.empty(len(self._X))

        def run(chunk: slice) -> None:
            integrate_terms(self._X[chunk].T, table, fused[chunk])

        run_chunks(run, self._chunks(), self._n_jobs)
        return fused

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        return self._rows_of(self._X[which])

    def _rows_of(self, X: NDArray[Any]) -> tuple[Codes, Floats]:
        shape = (len(X), self._terms.row_length)
        codes, weights = np.empty(shape, np.int32), np.empty(shape)
        term_rows(X, self._terms.index, codes, weights)
        return codes, weights

    def with_signs(self, signs: Floats, bags: Bags) -> "TermInstances":
        return TermInstances(self._terms, bags, self._n_jobs)

    def gram(self, targets: tuple[float, float]) -> "TermForm":
        """Return the mean over each bag of squared distances to these targets as a quadratic form in all terms."""
        terms, bags = self._terms, self._bags
        columns = np.arange(terms.size if terms.pairs else 2 * terms.n_sources)
        matrix = np.zeros((terms.size, terms.size))
        matrix[np.ix_(columns, columns)] = self.squares(columns)
        constant = float(bags.weights @ np.where(bags.labels, targets[1], targets[0]) ** 2)
        return TermForm(matrix, self.slope(targets, np.zeros(terms.size)), constant)

    def squares(self, columns: Ints) -> Floats:
        """Return the mean over each bag of squared integrals as a quadratic form in c of the terms; O(n c^2).

        Rows have few of all terms, so that of all, it is quicker to add up rows.
        """
        if len(columns) >= (self._terms.size if self._terms.pairs else 2 * self._terms.n_sources):
            form = self._squares_of(self._bags.shares(), slice(0, None))
            return np.asarray(form.matrix[columns][:, columns].toarray())
        root = np.sqrt(self._bags.shares())
        first, second = (sides[columns] for sides in self._terms.both_sides)
        matrix = np.zeros((len(columns), len(columns)))
        step = max(256, FEATURES // len(columns))
        for start in range(0, len(self._X), step):
            part = self._X[start : start + step]
            features = np.empty((len(part), len(columns)))
            term_features(part, first, second, features)
            features *= root[start : start + step, None]
            matrix += features.T @ features
        return matrix

    def slope(self, targets: tuple[float, float], values: Floats) -> Floats:
        """Return half of the gradient, in all terms, of the mean over each bag of squared distances; O(n m^2)."""
        bags = self._bags
        target = np.repeat(np.where(bags.labels, targets[1], targets[0]), np.diff(bags.offsets))
        factor = bags.shares() * (self.fuse(values) - target)
        parts = run_chunks(lambda chunk: self._add_part(factor[chunk], chunk), self._chunks(), self._n_jobs)
        return np.asarray(np.sum(parts, axis=0))

    def _fuser(self, values: Floats) -> Callable[[slice | Ints], Floats]:
        scale = float(np.abs(values).sum()) or 1.0  # of a measure or more: the kernel holds integrals within max |x|
        table = sign_table(self._terms, values / scale)

        def fuse(part: slice | Ints) -> Floats:
            X = self._X[part]
            fused = np.empty(len(X))
            integrate_terms(X.T, table, fused)
            fused *= scale
            return fused

        return fuse

    def _add_part(self, factor: Floats, part: slice) -> Floats:
        total = np.zeros(self._terms.size)
        add_features(self._X[part], factor, self._terms.index, self._terms.pairs, total)
        return total

    def _squares_of(self, share: Floats, part: slice) -> Gram:
        if not self._terms.pairs:
            return self._single_squares(share, part)
        X, target = self._X[part], np.ones(len(share))
        total = Gram(sp.csc_array((self._terms.size, self._terms.size)), np.zeros(self._terms.size), 0.0)
        step = max(256, FEATURES // self._terms.row_length)

        def squares(chunk: slice) -> Gram:
            rows = RowsOfSquares(*self._rows_of(X[chunk]), share[chunk], target[chunk])
            return squares_of_rows(self._terms.size, rows)

        chunks = [slice(start, start + step) for start in range(0, len(X), step)]
        for one in in_threads(squares, chunks, self._n_jobs):  # few at a time: rows take far more than instances
            total += one
        return total

    def _single_squares(self, share: Floats, part: slice) -> Gram:
        size, sides = self._terms.size, 2 * self._terms.n_sources
        matrix, linear = np.zeros((sides, sides)), np.zeros(size)
        add_single_squares(self._X[part], share, matrix, linear)
        matrix += np.tril(matrix, -1).T + np.triu(matrix, 1).T  # pairs of sides were added once, in either order
        placed = sp.coo_array(matrix)
        whole = sp.csc_array((placed.data, placed.coords), shape=(size, size))
        return Gram(whole, linear, float(share.sum()))

    def _chunks(self) -> list[slice]:
        return [slice(start, start + SMALL_CHUNK) for start in range(0, len(self._X), SMALL_CHUNK)]


class CompleteOrder(Order):
    """The order of terms: their programs have all of it from the start."""

    def with_violated(self, values: Floats, tolerance: float) -> tuple["CompleteOrder", bool]:
        return self, False

    def joined(self, other: "CompleteOrder") -> "CompleteOrder":
        return self


class TermSpace(Space):
    """The terms of additive bi-capacities; those of pairs of sources may differ from zero if `pairs`."""

    offers = frozenset({"terms"})
    lattice = None
    zero_bound = True

    def __init__(self, n_sources: int, pairs: bool = True) -> None:
        self.terms, self.n_sources = Terms(n_sources, pairs), n_sources
        self.size, self.row_length = self.terms.size, self.terms.row_length
        self.polishes = self.size <= POLISH_LIMIT

    def instances(self, bags: Bags, n_jobs: int | None = None) -> TermInstances:
        return TermInstances(self.terms, bags, n_jobs)

    def count_usage(self, X: NDArray[Any], n_jobs: int | None = None) -> "TermUsage":
        return TermUsage.of(X)

    def middle(self) -> Floats:
        return self.terms.neutral()

    def sample(self, rng: Generator) -> Floats:
        return self.terms.sample(rng)

    def known_at(self, values: Floats, codes: Codes) -> Floats:
        return values  # no term follows from others

    def complete(self, partial: Floats, completion: str) -> Completion:
        codes = np.arange(self.size, dtype=np.int32)
        return Completion(self.terms.repaired(partial), codes, codes)

    def snapped(self, values: Floats, near: float) -> Floats:
        """Make terms within `near` of zero zero, and those that this unsettles valid again."""
        terms, m = self.terms, self.n_sources
        snapped = np.where(np.abs(values) <= near, 0.0, values)
        lack = -terms.slack(snapped)
        snapped[: 2 * m] += terms.sign * np.where(lack > 0, lack, 0.0)
        up, down = terms.totals(snapped) * [1, -1]
        snapped[int(np.argmax(snapped[:m]))] += max(0.0, down - up)
        snapped[m + int(np.argmin(snapped[m : 2 * m]))] -= max(0.0, up - down)
        return np.asarray(np.rint(snapped / max(up, down) * GRID) / GRID)

    def order(self) -> CompleteOrder:
        return CompleteOrder()

    def minimise(self, rows: QuadraticRows, order: Any, precision: float, near: Floats) -> Minimum | None:
        n, length = rows.codes.shape
        places = (rows.weights.ravel(), rows.codes.ravel(), np.arange(0, n * length + 1, length))
        lines = sp.csr_array(places, shape=(n, self.size))
        squares = SquaredLines(lines[rows.alone], rows.constant[rows.alone], rows.share)
        tied = Tied(lines[rows.tied], rows.constant[rows.tied], rows.slack, rows.slack_weight)
        minimum = minimise(self.terms, squares, tied, precision, near)
        if minimum is None:
            return None
        constant = float(rows.share @ rows.constant[rows.alone] ** 2)
        return Minimum(minimum.values, lines @ minimum.values + rows.constant, minimum.slack, minimum.bound + constant)

    def least_squares(
        self, data: Sums, targets: tuple[float, float], completion: str, precisions: Sequence[float]
    ) -> tuple[Floats, float] | None:
        squares = SumOfSquares(data, targets, self.terms)
        for precision in precisions:
            minimum = minimise(self.terms, squares, None, precision)
            if minimum is not None:
                return self.terms.repaired(minimum.values), squares.scale * minimum.bound + squares.constant
        return None

    def lines(self, use: Floats) -> TermLines:
        return TermLines(self.terms, use)

    def measure(self, values: Floats, names: Sequence[str] | None = None) -> AdditiveBiCapacity:
        return AdditiveBiCapacity(values, names, 2 if self.terms.pairs else 1)


@dataclass(frozen=True, eq=False)
class TermForm:
    """The mean over each bag of squared distances to targets, as a quadratic form in all terms."""

    offers = frozenset({"rows"})  # of which least squares ask for none

    matrix: Floats
    half_gradient: Floats  # where all terms are zero
    constant: float

    def __add__(self, other: "TermForm") -> "TermForm":
        """Return the sum over the instances of both."""
        half_gradient = self.half_gradient + other.half_gradient
        return TermForm(self.matrix + other.matrix, half_gradient, self.constant + other.constant)

    def at(self, values: Floats) -> float:
        """Return the sum at these terms."""
        return float(values @ self.matrix @ values + 2 * self.half_gradient @ values + self.constant)

    def with_signs(self, signs: Floats) -> "TermForm":
        """Raise an error: inverted sources have other terms."""
        raise InvalidInputError("Signs must be applied before squares are added up.", code="signs-order")

    def squares(self, columns: Ints) -> Floats:
        """Return the form in some terms, as `TermInstances.squares`."""
        return np.asarray(self.matrix[np.ix_(columns, columns)])

    def slope(self, targets: tuple[float, float], values: Floats) -> Floats:
        """Return half of the gradient, as `TermInstances.slope`."""
        return np.asarray(self.matrix @ values + self.half_gradient)


@dataclass(frozen=True, eq=False)  # arrays do not compare to one bool
class TermUsage:
    """Counts of how often instances use each term, with sources as they are or with any of them inverted.

    `table` counts the instances that have two sources (or one, on the diagonal) above, below or at zero: row and
    column k, m + k and 2 m + k for source k.
    """

    table: Ints

    @classmethod
    def of(cls, X: NDArray[Any]) -> "TermUsage":
        """Count; O(n m^2), by matrix products."""
        m = X.shape[1]
        table = np.zeros((3 * m, 3 * m), np.int64)
        for start in range(0, len(X), SMALL_CHUNK):
            part = np.ascontiguousarray(X[start : start + SMALL_CHUNK].T)
            sides = np.concatenate([part > 0, part < 0, part == 0]).astype(np.float32)  # sums of a chunk are exact
            table += (sides @ sides.T).astype(np.int64)
        return cls(table)

    def __add__(self, other: "TermUsage") -> "TermUsage":
        """Return the usage by the instances of both."""
        return TermUsage(self.table + other.table)

    def counts(self, weighted: bool, signs: ArrayLike | None = None) -> Ints:
        """Return how many instances touch each term, or give it weight, sources multiplied by signs; a zero is up."""
        m = len(self.table) // 3
        own, inverted = np.arange(m), np.zeros(m, bool) if signs is None else np.asarray(signs) < 0
        sides = np.zeros((2 * m, 3 * m), np.int64)
        sides[own, np.where(inverted, m, 0) + own] = sides[m + own, np.where(inverted, 0, m) + own] = 1
        if not weighted:
            sides[own, 2 * m + own] = 1
        both = sides @ self.table @ sides.T
        return np.asarray(both[Terms(m).both_sides])
