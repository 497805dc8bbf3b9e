"""A problem whose measure is 2-additive: asked as any other, but with terms in the place of elements.

An instance uses m (m + 1) / 2 of the 2 m^2 terms, so the rows of all instances would take far more memory than the
instances. They are made when asked for; integrals come from the instances themselves.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numba
import numpy as np
from numpy.typing import NDArray

from bimichi.integral.planes import SMALL_CHUNK, check_n_jobs, run_chunks
from bimichi.integral.terms import add_features, integrate_terms, sign_table, term_features, term_rows
from bimichi.learning.bags import Bags, Keeps
from bimichi.learning.objectives import Objective, bag_term
from bimichi.learning.problem import Extremes
from bimichi.measures.terms import Terms

__all__ = ["TermProblem", "TermUsage", "TermsInMemory"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEATURES = 1 << 22
"""How many features are held at a time when quadratic forms are summed up: 32 MB."""


@runtime_checkable
class TermProblem(Protocol):
    """What a solver may ask; see `bimichi.learning.problem.Problem`. Values are those of terms."""

    terms: Terms
    objective: Objective
    labels: NDArray[Any]
    weights: Floats

    def value(self, values: Floats) -> float:
        """J at these terms."""
        ...

    def squares(self, columns: Ints) -> Floats:
        """The mean over each bag of squared integrals, as a quadratic form in some of the terms."""
        ...

    def slope(self, targets: tuple[float, float], values: Floats) -> Floats:
        """Half of the gradient, in all terms, of the mean over each bag of squared distances to these targets."""
        ...

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now."""
        ...

    def rows(self, which: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """Terms and features of some rows, each of shape (len(which), m (m + 1) / 2)."""
        ...


class TermsInMemory:
    """A problem whose instances are an array.

    Parameters
    ----------
    bags : Bags
        Instances in [-1, 1]. Those that cannot decide their bag are dropped first; see `Bags.reduced`.
    objective : Objective
        What is minimised; with the zero bound.
    n_jobs : int, optional
        Threads.
    reduce : bool, default=True
        Whether to drop them; False if that was done.
    """

    def __init__(self, bags: Bags, objective: Objective, n_jobs: int | None = None, reduce: bool = True) -> None:
        self.terms = Terms(bags.n_sources, objective.additivity == 2)
        self.objective = objective
        self.labels = bags.labels
        self.weights = bags.weights
        self._signs = np.ones(bags.n_sources)
        self._n_jobs = check_n_jobs(n_jobs)
        self._keeps: Keeps = objective.keeps if reduce else "all"
        self._merged = bags.merged(n_jobs) if reduce else bags
        self._take(self._merged.deciding(self._keeps, True, n_jobs))

    def _take(self, bags: Bags) -> None:
        self.bags, self.instance = bags, bags.instance
        self._X = np.ascontiguousarray(bags.X)

    def turned(self, signs: Floats) -> "TermsInMemory":
        """Return the problem whose sources are multiplied by these signs; as `InMemory.turned`."""
        if (signs == 1).all():
            return self
        other = copy(self)
        other._signs = self._signs * signs
        other._take(self._merged.turned(other._signs).deciding(self._keeps, True, self._n_jobs))
        return other

    def value(self, values: Floats) -> float:
        """J at these terms; O(n m^2)."""
        bags = self.bags
        labels = self.labels.astype(np.float64)
        return float(_value(self.objective.term, self._fused(values), bags.counts, bags.offsets, labels, self.weights))

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now; O(n m^2)."""
        return Extremes(*_extremes(self._fused(values), self.bags.offsets))

    def rows(self, which: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """Terms and features of some rows."""
        shape = (len(which), self.terms.row_length)
        codes, weights = np.empty(shape, np.int32), np.empty(shape)
        term_rows(self._X[which], self.terms.index, codes, weights)
        return codes, weights

    def squares(self, columns: Ints) -> Floats:
        """The mean over each bag of squared integrals, as a quadratic form in some of the terms.

        O(n c^2) for c terms, by matrix products, chunk by chunk.
        """
        root = np.sqrt(self._shares())
        first, second = (sides[columns] for sides in self.terms.both_sides)
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
        """Half of the gradient, in all terms, of the mean over each bag of squared distances; O(n m^2)."""
        target = np.repeat(np.where(self.labels, targets[1], targets[0]), np.diff(self.bags.offsets))
        factor = self._shares() * (self._fused(values) - target)

        def run(chunk: slice) -> Floats:
            part = np.zeros(self.terms.size)
            add_features(self._X[chunk], factor[chunk], self.terms.index, part)
            return part

        return np.asarray(np.sum(run_chunks(run, self._chunks(), self._n_jobs), axis=0))

    def _shares(self) -> Floats:
        """How much each instance counts in the mean over its bag, times the weight of the bag."""
        bags = self.bags
        number = np.add.reduceat(bags.counts, bags.offsets[:-1])
        return np.asarray(np.repeat(self.weights / number, np.diff(bags.offsets)) * bags.counts)

    def _chunks(self) -> list[slice]:
        return [slice(start, start + SMALL_CHUNK) for start in range(0, len(self._X), SMALL_CHUNK)]

    def _fused(self, values: Floats) -> Floats:
        """The integral of every instance."""
        table = sign_table(self.terms, values)
        fused = np.empty(len(self._X))

        def run(chunk: slice) -> None:
            integrate_terms(self._X[chunk].T, table, fused[chunk])

        run_chunks(run, self._chunks(), self._n_jobs)
        return fused


@dataclass(frozen=True, eq=False)
class TermUsage:
    """How often instances use each term, with sources as they are or with any of them turned over.

    Attributes
    ----------
    table : ndarray of int64, shape (3 m, 3 m)
        How many instances have two sources (or one, on the diagonal) above, below or at zero: row and column k, m + k
        and 2 m + k for source k.
    """

    table: NDArray[np.int64]

    @classmethod
    def of(cls, X: NDArray[Any]) -> "TermUsage":
        """Count; O(n m^2), by matrix products, chunk by chunk."""
        m = X.shape[1]
        table = np.zeros((3 * m, 3 * m), np.int64)
        for start in range(0, len(X), SMALL_CHUNK):
            part = X[start : start + SMALL_CHUNK]
            sides = np.hstack([part > 0, part < 0, part == 0]).astype(np.float32)  # sums of a chunk are exact
            table += (sides.T @ sides).astype(np.int64)
        return cls(table)

    def __add__(self, other: "TermUsage") -> "TermUsage":
        """Return the usage by the instances of both."""
        return TermUsage(self.table + other.table)

    def counts(self, signs: Floats, weighted: bool) -> NDArray[np.int64]:
        """Return how many instances touch each term, or give it weight, sources turned by signs; a zero is up."""
        m, own = len(signs), np.arange(len(signs))
        sides = np.zeros((2 * m, 3 * m), np.int64)
        sides[own, np.where(signs < 0, m, 0) + own] = sides[m + own, np.where(signs < 0, 0, m) + own] = 1
        if not weighted:
            sides[own, 2 * m + own] = 1
        both = sides @ self.table @ sides.T
        return np.asarray(both[Terms(m).both_sides])


@numba.njit(cache=True, nogil=True)
def _value(term, fused, counts, offsets, labels, weights):  # type: ignore[no-untyped-def]
    total = 0.0
    for b in range(labels.size):
        bag = slice(offsets[b], offsets[b + 1])
        total += weights[b] * bag_term(term, fused[bag], counts[bag], labels[b])
    return total


@numba.njit(cache=True, nogil=True)
def _extremes(fused, offsets):  # type: ignore[no-untyped-def]
    n = offsets.size - 1
    low, high = np.empty(n), np.empty(n)
    low_row, high_row = np.empty(n, np.int64), np.empty(n, np.int64)
    for b in range(n):
        bag = fused[offsets[b] : offsets[b + 1]]
        least, most = bag.argmin(), bag.argmax()
        low[b], high[b] = bag[least], bag[most]
        low_row[b], high_row[b] = offsets[b] + least, offsets[b] + most
    return low, high, low_row, high_row
