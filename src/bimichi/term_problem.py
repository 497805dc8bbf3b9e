"""A problem whose measure is 2-additive: asked as any other, but with terms in the place of elements.

An instance uses m (m + 1) / 2 of the 2 m^2 terms, so the rows of all instances would take far more memory than the
instances. They are made when asked for; integrals come from the instances themselves.
"""

from copy import copy
from typing import Any, Protocol, runtime_checkable

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.bags import Bags
from bimichi.gram import Gram
from bimichi.objectives import Objective, bag_term
from bimichi.planes import SMALL_CHUNK, check_n_jobs, run_chunks
from bimichi.problem import Extremes
from bimichi.term_kernels import count_terms, integrate_terms, sign_table, term_features, term_rows
from bimichi.terms import Terms

__all__ = ["TermProblem", "TermsInMemory", "term_usage"]

Floats = NDArray[np.float64]

FEATURES = 1 << 22
"""How many features are held at a time when quadratic forms are summed up: 32 MB."""


@runtime_checkable
class TermProblem(Protocol):
    """What a solver may ask; see `bimichi.problem.Problem`. Values are those of terms."""

    terms: Terms
    objective: Objective
    labels: NDArray[Any]
    weights: Floats

    def value(self, values: Floats) -> float:
        """J at these terms."""
        ...

    def gram(self, targets: tuple[float, float]) -> Gram:
        """The mean over each bag of squared distances to these targets of the two classes, as a quadratic form."""
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
    """

    def __init__(self, bags: Bags, objective: Objective, n_jobs: int | None = None) -> None:
        self.terms = Terms(bags.n_sources, objective.additivity == 2)
        self.objective = objective
        self.labels = bags.labels
        self.weights = bags.weights
        self._signs = np.ones(bags.n_sources)
        self._n_jobs = check_n_jobs(n_jobs)
        self._merged = bags.merged(n_jobs)
        self._take(self._merged.deciding(objective.keeps, True, n_jobs))

    def _take(self, bags: Bags) -> None:
        self.bags, self.instance = bags, bags.instance
        self._X = np.ascontiguousarray(bags.X)
        self._grams: dict[tuple[float, float], Gram] = {}

    def turned(self, signs: Floats) -> "TermsInMemory":
        """Return the problem whose sources are multiplied by these signs; as `InMemory.turned`."""
        if (signs == 1).all():
            return self
        other = copy(self)
        other._signs = self._signs * signs
        other._take(self._merged.turned(other._signs).deciding(self.objective.keeps, True, self._n_jobs))
        if self.objective.keeps == "all":
            moved = self.terms.turned(signs)
            other._grams = {
                targets: Gram(known.matrix[moved][:, moved], known.linear[moved], known.constant)
                for targets, known in self._grams.items()
            }
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

    def gram(self, targets: tuple[float, float]) -> Gram:
        """The quadratic form, summed up chunk by chunk: O(n m^4), or O(n m^2) without pairs, by matrix products."""
        if targets not in self._grams:
            self._grams[targets] = self._sum_squares(targets)
        return self._grams[targets]

    def _sum_squares(self, targets: tuple[float, float]) -> Gram:
        bags, size = self.bags, self.terms.size
        sizes = np.diff(bags.offsets)
        number = np.add.reduceat(bags.counts, bags.offsets[:-1])
        root = np.sqrt(np.repeat(self.weights / number, sizes) * bags.counts)
        target = root * np.repeat(np.where(self.labels, targets[1], targets[0]), sizes)
        used = size if self.terms.pairs else 2 * self.terms.n_sources
        matrix, linear = np.zeros((size, size)), np.zeros(size)
        step = max(256, FEATURES // used)
        for start in range(0, len(self._X), step):
            chunk = slice(start, start + step)
            features = root[chunk, None] * self._features(self._X[chunk])
            matrix[:used, :used] += features.T @ features
            linear[:used] += features.T @ target[chunk]
        return Gram(sp.csc_array(matrix), linear, float(target @ target))

    def _features(self, X: NDArray[Any]) -> Floats:
        """What rows multiply terms with: all of them, or those of sides, if pairs are left out."""
        if not self.terms.pairs:
            return np.maximum(np.hstack([X, -X]), 0.0).astype(np.float64)
        features = np.zeros((len(X), self.terms.size))
        term_features(X, self.terms.index, features)
        return features

    def _fused(self, values: Floats) -> Floats:
        """The integral of every instance."""
        table = sign_table(self.terms, values)
        fused = np.empty(len(self._X))

        def run(chunk: slice) -> None:
            integrate_terms(self._X[chunk].T, table, fused[chunk])

        run_chunks(run, [slice(k, k + SMALL_CHUNK) for k in range(0, len(fused), SMALL_CHUNK)], self._n_jobs)
        return fused


def term_usage(X: NDArray[Any], signs: Floats, weighted: bool) -> NDArray[np.int64]:
    """Count the instances that use each term, sources turned by signs: touch it, or give it weight; O(n m^2)."""
    space = Terms(X.shape[1])
    counts = np.zeros(space.size, np.int64)
    count_terms(X, signs, space.index, weighted, counts)
    return counts


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
