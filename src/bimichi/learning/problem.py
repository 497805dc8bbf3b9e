"""`Problem` and `Solution`: what the parts of learning say to each other. Read this first.

A solver sees a `Problem`, never X, images or files. A problem answers few questions; `InMemory` answers them from
arrays, and chunks on disk or a cluster can answer the same ones.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from bimichi.integral.linear import linear_form, usage_counts
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.bags import Bags, Keeps
from bimichi.learning.gram import Gram, RowsOfSquares, gram
from bimichi.learning.objectives import Objective, bag_term
from bimichi.measures.lattice import Lattice

__all__ = ["Extremes", "InMemory", "Problem", "Quadratic", "Rows", "Solution"]

Floats = NDArray[np.float64]


class Extremes(NamedTuple):
    """For each bag, its smallest and its largest integral, and the rows that have them."""

    low: Floats
    high: Floats
    low_row: NDArray[np.int64]
    high_row: NDArray[np.int64]


class Quadratic(Protocol):
    """What least squares may ask."""

    lattice: Lattice
    objective: Objective
    weights: Floats

    def value(self, values: Floats) -> float:
        """J at these values of the measure."""
        ...

    def gram(self, targets: tuple[float, float]) -> Gram:
        """The mean over each bag of squared distances to these targets of the two classes, as a quadratic form."""
        ...


class Problem(Quadratic, Protocol):
    """What a solver may ask."""

    labels: NDArray[Any]  # bool, or real for regression

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now."""
        ...

    def rows(self, which: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """Codes and weights of some rows, each of shape (len(which), m)."""
        ...


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    values : ndarray
        The measure, monotone and within bounds, in code order.
    objective_value : float
        J at `values`.
    status : str
        "converged", or why it ended otherwise.
    n_iter : int
        Rounds of witnesses, or generations.
    history : ndarray
        J after each of them, never rising.
    witnesses : ndarray of int64, shape (n_positive_bags,), optional
        For each positive bag, the instance that speaks for it, as numbered by the user. (When every instance is
        its own bag, equal ones are one bag.)
    lower_bound : float, optional
        No measure has a smaller J with these witnesses; only if converged.
    starts : ndarray
        J of each start where it ended or came to the witnesses of another; of each member of a population.
    """

    values: Floats
    objective_value: float
    status: str
    n_iter: int
    history: Floats
    witnesses: NDArray[np.int64] | None = None
    lower_bound: float | None = None
    starts: Floats = field(default_factory=lambda: np.empty(0))


class Rows(NamedTuple):
    """The linear form of all instances, bag by bag, as kernels take it."""

    codes: NDArray[np.int32]
    weights: Floats
    counts: Floats
    offsets: NDArray[np.int64]
    labels: Floats  # above 0 for positive bags, or real
    bag_weights: Floats


class InMemory:
    """A problem whose rows are arrays.

    Parameters
    ----------
    bags : Bags
        Instances in [-1, 1], or in [0, 1] for a capacity. Those that cannot decide their bag are dropped first;
        see `Bags.reduced`.
    objective : Objective
        What is minimised.
    n_jobs : int, optional
        Threads for the linear form.
    reduce : bool, default=True
        Whether to drop them; to see what that saves.
    """

    def __init__(self, bags: Bags, objective: Objective, n_jobs: int | None = None, reduce: bool = True) -> None:
        self.lattice = objective.lattice(bags.n_sources)
        self.objective = objective
        self.labels = bags.labels
        self.weights = bags.weights
        self._given = bags.X
        self._signs = np.ones(bags.n_sources)
        self._n_jobs = n_jobs
        self._keeps: Keeps = objective.keeps if reduce else "all"
        self._merged = bags.merged(n_jobs) if reduce else bags
        self._take(self._merged.deciding(self._keeps, self.lattice.zero_bound, n_jobs))

    def _take(self, bags: Bags) -> None:
        """Hold the linear form of these bags."""
        self.bags, self.instance = bags, bags.instance
        self._grams: dict[tuple[float, float], Gram] = {}
        codes, weights = linear_form(bags.X, self.objective.measure, n_jobs=self._n_jobs)
        weights = weights.astype(np.float64, copy=False)
        self.data = Rows(codes, weights, bags.counts, bags.offsets, bags.labels.astype(np.float64), bags.weights)

    def turned(self, signs: NDArray[np.float64]) -> "InMemory":
        """Return the problem of a bi-capacity whose sources are multiplied by these signs.

        Signs change neither which instances are equal nor their weights, only codes: if the objective needs all
        instances, rows and quadratic forms are those of this problem with other codes.
        """
        if (signs == 1).all():
            return self
        other = copy(self)
        other._signs = self._signs * signs
        bags = self._merged.turned(other._signs)
        if self._keeps != "all":
            other._take(bags.deciding(self._keeps, self.lattice.zero_bound, self._n_jobs))
            return other
        codes = self.lattice.turned(signs)
        other.bags = bags
        other.data = self.data._replace(codes=codes[self.data.codes])
        other._grams = {targets: known.turned(codes) for targets, known in self._grams.items()}
        return other

    def value(self, values: Floats) -> float:
        """J at these values of the measure; O(n m)."""
        return float(_value(self.objective.term, self.data, values))

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now; O(n m)."""
        return Extremes(*_extremes(self.data, values))

    def rows(self, which: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """Codes and weights of some rows."""
        return self.data.codes[which], self.data.weights[which]

    def use_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many instances touch each element, and how many give it weight; dropped ones count, too."""
        X = self._given * self._signs.astype(self._given.dtype)
        return usage_counts(X, False, self.objective.measure), usage_counts(X, True, self.objective.measure)

    def gram(self, targets: tuple[float, float]) -> Gram:
        """The mean over each bag of squared distances to these targets, as a quadratic form; O(n m^2), in chunks."""
        if targets in self._grams:
            return self._grams[targets]
        sizes = np.diff(self.data.offsets)
        number = np.add.reduceat(self.data.counts, self.data.offsets[:-1])
        share = np.repeat(self.weights / number, sizes) * self.data.counts
        target = np.repeat(np.where(self.labels, targets[1], targets[0]), sizes)

        def rows(chunk: slice) -> RowsOfSquares:
            return RowsOfSquares(self.data.codes[chunk], self.data.weights[chunk], share[chunk], target[chunk])

        self._grams[targets] = gram(self.lattice, len(share), rows, check_n_jobs(self._n_jobs))
        return self._grams[targets]


@numba.njit(cache=True, nogil=True)
def fuse_bag(rows, values, b, fused):  # type: ignore[no-untyped-def]
    """Integrals of the instances of bag b, written to the start of `fused`, which is returned cut to length."""
    start, stop = rows.offsets[b], rows.offsets[b + 1]
    for i in range(start, stop):
        total = 0.0
        for k in range(rows.codes.shape[1]):
            total += rows.weights[i, k] * values[np.uint32(rows.codes[i, k])]
        fused[i - start] = total
    return fused[: stop - start]


@numba.njit(cache=True, nogil=True)
def longest_bag(rows):  # type: ignore[no-untyped-def]
    """The size of the largest bag."""
    return np.diff(rows.offsets).max()


@numba.njit(cache=True, nogil=True)
def _value(term, rows, values):  # type: ignore[no-untyped-def]
    scratch = np.empty(longest_bag(rows))
    total = 0.0
    for b in range(rows.labels.size):
        fused = fuse_bag(rows, values, b, scratch)
        counts = rows.counts[rows.offsets[b] : rows.offsets[b + 1]]
        total += rows.bag_weights[b] * bag_term(term, fused, counts, rows.labels[b])
    return total


@numba.njit(cache=True, nogil=True)
def _extremes(rows, values):  # type: ignore[no-untyped-def]
    n = rows.labels.size
    low, high = np.empty(n), np.empty(n)
    low_row, high_row = np.empty(n, np.int64), np.empty(n, np.int64)
    scratch = np.empty(longest_bag(rows))
    for b in range(n):
        fused = fuse_bag(rows, values, b, scratch)
        least, most = fused.argmin(), fused.argmax()
        low[b], high[b] = fused[least], fused[most]
        low_row[b], high_row[b] = rows.offsets[b] + least, rows.offsets[b] + most
    return low, high, low_row, high_row
