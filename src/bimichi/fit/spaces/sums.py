"""Sums over instances: squared distances to targets as a quadratic form, and logistic losses."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.integral.planes import SMALL_CHUNK, in_threads, run_chunks
from bimichi.link import count_outputs
from bimichi.measures.lattice import Lattice, pair_lattice
from bimichi.scenes.bags import Bags

CHUNK = 1 << 17

DENSE_LIMIT = 3**7  # up to so many elements, sums are taken in a full matrix (38 MB at most)
MAX_USED = 3**8  # how many elements least squares may use: all are variables of one QP, which takes minutes even then


class Gram(NamedTuple):
    """A weighted sum of squared distances to targets, as ``v @ matrix @ v - 2 * linear @ v + constant``."""

    matrix: sp.csc_array
    linear: Floats
    constant: float

    @property
    def offers(self) -> frozenset[str]:
        """Return what a problem that holds it alone can answer."""
        return frozenset()

    def gram(self, targets: tuple[float, float]) -> "Gram":
        """Return itself, as instances do when they are asked for it."""
        return self

    def __add__(self, other: "Gram") -> "Gram":  # type: ignore[override]  # no tuples are joined here
        """Return the sum over the instances of both."""
        return Gram(self.matrix + other.matrix, self.linear + other.linear, self.constant + other.constant)

    def at(self, values: Floats) -> float:
        """Return the sum at these values."""
        return float(values @ (self.matrix @ values) - 2 * self.linear @ values + self.constant)

    def with_signs(self, signs: Floats) -> "Gram":
        """Return the same sum of a bi-capacity whose sources are multiplied by these signs."""
        codes = pair_lattice(len(signs)).with_signs(signs)  # an exchange of elements in pairs
        return Gram(self.matrix[codes][:, codes], self.linear[codes], self.constant)


class RowsOfSquares(NamedTuple):
    """Some instances: their linear form, how much each counts, and its target."""

    codes: Codes
    weights: NDArray[Any]
    share: Floats
    target: Floats


def gram(lattice: Lattice, n: int, rows: Callable[[slice], RowsOfSquares], n_jobs: int) -> Gram:
    """Add up ``share * (C - target)^2`` over n instances, which `rows` gives slice by slice, in order; O(n m^2).

    More than `MAX_USED` elements in use are an error as soon as they are found.
    """
    size = lattice.size
    matrix: Any = np.zeros((size, size)) if size <= DENSE_LIMIT else sp.csr_array((size, size))
    linear, constant = np.zeros(size), 0.0
    chunks = [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
    for part in in_threads(lambda chunk: _part(size, rows(chunk)), chunks, n_jobs):
        matrix = matrix + part[0]
        linear += part[1]
        constant += part[2]
        if size > MAX_USED:
            check_used(lattice, matrix.diagonal())
    return Gram(sp.csc_array(matrix), linear, float(constant))


def check_used(lattice: Lattice, use: Floats) -> None:
    """Refuse a quadratic form, of which `use` is the diagonal, that is too large to be minimised."""
    used = int(np.count_nonzero(use))
    if used > MAX_USED:
        raise InvalidInputError(
            f"The instances use {used:,} elements or more of {lattice.n_sources} sources, which least squares would "
            f"all fit at once; at most {MAX_USED:,} are supported. Use fewer sources, or BiMIChI with "
            "additivity=2, or with objective='bipolar' or 'magnitude'.",
            code="elements-many",
        )


def squares_of_rows(size: int, rows: RowsOfSquares) -> Gram:
    """Return the sum of some instances; O(n m^2) for rows of m codes."""
    matrix, linear, constant = _part(size, rows)
    return Gram(sp.csc_array(matrix), linear, constant)


def _part(size: int, rows: RowsOfSquares) -> tuple[Any, Floats, float]:
    constant = float((rows.share * rows.target**2).sum())
    if size <= DENSE_LIMIT:
        matrix, linear = np.zeros((size, size)), np.zeros(size)
        _add_squares(rows, matrix, linear)
        matrix += np.tril(matrix, -1).T + np.triu(matrix, 1).T  # pairs of codes were added once, in either order
        return matrix, linear, constant
    pull = (rows.weights * (rows.share * rows.target)[:, None]).ravel()
    linear = np.bincount(rows.codes.ravel(), pull, size).astype(np.float64)
    pointers = np.arange(0, rows.codes.size + 1, rows.codes.shape[1])
    table = sp.csr_array((rows.weights.ravel(), rows.codes.ravel(), pointers), shape=(len(rows.codes), size))
    return table.T @ (sp.diags_array(rows.share) @ table), linear, constant


@jit
def _add_squares(rows, matrix, linear):
    n, m = rows.codes.shape
    for i in range(n):
        target = rows.target[i]
        for j in range(m):
            weight = rows.share[i] * rows.weights[i, j]
            if weight != 0:
                a = np.uint32(rows.codes[i, j])
                linear[a] += weight * target
                for k in range(j + 1):
                    b = np.uint32(rows.codes[i, k])
                    matrix[a, b] += weight * rows.weights[i, k]


COUNTED = 1 << 17  # instances of each class whose outputs are counted
CHUNKS = 32  # at most so many, as each has a gradient of its own


class LossSums(NamedTuple):
    """A loss, added up over instances, and its derivatives by h and by the offset."""

    value: float
    gradient: Floats
    offset: float

    def __add__(self, other: "LossSums") -> "LossSums":  # type: ignore[override]  # no tuples are joined here
        """Return the sums over the instances of both."""
        return LossSums(self.value + other.value, self.gradient + other.gradient, self.offset + other.offset)


class Outcomes(NamedTuple):
    """For each instance, how much it counts, and whether its bag is positive."""

    share: Floats
    positive: Flags

    @classmethod
    def of(cls, bags: Bags) -> "Outcomes":
        """Let every instance count as often as it was given, times the weight of its bag."""
        sizes = np.diff(bags.offsets)
        return cls(np.repeat(bags.weights, sizes) * bags.counts, np.repeat(bags.labels > 0, sizes))


class LossInstances(ABC):
    """Instances that add up their log-loss; with `step`, every step-th one stands for so many."""

    _bags: Bags
    _n_jobs: int

    @abstractmethod
    def fuse(self, values: Floats) -> Floats:
        """Return the integral of every instance."""

    @abstractmethod
    def _fuser(self, values: Floats) -> Callable[[slice | Ints], Floats]:
        """Return what gives the integrals of some instances, in an array of its own."""

    @abstractmethod
    def _add_part(self, factor: Floats, part: slice) -> Floats:
        """Return the rows of some instances, times a factor each, added up."""

    @abstractmethod
    def _squares_of(self, share: Floats, part: slice) -> Gram:
        """Return the sum of share * (C - 1)^2 over some instances as a quadratic form."""

    @cached_property
    def _outcomes(self) -> Outcomes:
        return Outcomes.of(self._bags)

    def n_rows(self) -> int:
        """Return how many instances there are, equal ones merged."""
        return len(self._bags.X)

    def mass(self) -> Floats:
        """Return how much all instances count, and how much those of positive bags."""
        share, positive = self._outcomes
        return np.array([share.sum(), share[positive].sum()])

    def use(self) -> Floats:
        """Return how much weight instances give each code."""
        share = self._outcomes.share
        parts = run_chunks(lambda part: self._add_part(share[part], part), self._loss_chunks(1), self._n_jobs)
        return np.asarray(np.sum(parts, axis=0))

    def count_outputs(self, values: Floats) -> Floats:
        """Return how much instances count whose integral is in each bin of a link, of negative and positive bags.

        Of many instances, some of each class stand for all.
        """
        share, positive = self._outcomes
        fused, counts = self._fuser(values), []
        for side in (~positive, positive):
            step = max(1, int(np.count_nonzero(side)) // COUNTED)
            which = np.flatnonzero(side)[::step]
            counts.append(count_outputs(fused(which), share[which]))
        return np.array(counts)

    def log_loss(self, values: Floats, offset: float, step: int = 1) -> LossSums:
        """Return the sum of share * (log(1 + e^f) - y f), and its derivatives; one pass over the instances."""
        share, positive = self._outcomes
        fused = self._fuser(values)

        def run(part: slice) -> LossSums:
            odds = fused(part)
            odds += offset
            pull = np.exp(-np.abs(odds))
            value = _log_loss(odds, share[part], positive[part], pull)
            return LossSums(step * value, step * self._add_part(pull, part), step * float(pull.sum()))

        return _added(run_chunks(run, self._loss_chunks(step), self._n_jobs))

    def loss_curvature(self, values: Floats, offset: float, step: int = 1) -> Gram:
        """Return the second derivatives of `log_loss`: by h, by h and the offset, and by the offset."""
        part = slice(0, None, step)
        small = np.exp(-np.abs(self._fuser(values)(part) + offset))
        return self._squares_of(step * self._outcomes.share[part] * small / (1 + small) ** 2, part)

    def squared_loss(self, values: Floats, offset: float, targets: tuple[float, float]) -> LossSums:
        """Return the mean over each bag of squared distances of f to its target, and its derivatives."""
        share, target = self._bags.shares(), np.where(self._outcomes.positive, targets[1], targets[0])
        fused = self._fuser(values)

        def run(part: slice) -> LossSums:
            distance = fused(part) + offset - target[part]
            pull = 2 * share[part] * distance
            return LossSums(float(pull @ distance) / 2, self._add_part(pull, part), float(pull.sum()))

        return _added(run_chunks(run, self._loss_chunks(1), self._n_jobs))

    def square_curvature(self) -> Gram:
        """Return the second derivatives of `squared_loss`, which are the same everywhere."""
        return self._squares_of(2 * self._bags.shares(), slice(0, None))

    def _loss_chunks(self, step: int) -> list[slice]:
        n = len(self._bags.X)
        length = step * max(SMALL_CHUNK, -(-n // (step * CHUNKS)))
        return [slice(start, min(start + length, n), step) for start in range(0, n, length)]


def _added(parts: list[LossSums]) -> LossSums:
    first, *others = parts
    for other in others:
        first += other
    return first


@jit
def _log_loss(odds, share, positive, pull):
    """Return the sum of the loss; pull, given as e^-|odds|, becomes its derivatives by the odds, share * (p - y).

    Neighbours of the same share have one logarithm together, that of their product.
    """
    total, product, common = 0.0, 1.0, 0.0
    for i in range(odds.size):
        f, small = odds[i], pull[i]
        if share[i] != common or product > 1e300:
            total += common * np.log1p(product - 1)
            product, common = 1.0, share[i]
        product *= 1 + small
        total += share[i] * (max(f, 0.0) - (f if positive[i] else 0.0))
        pull[i] = share[i] * ((1.0 if f >= 0 else small) / (1 + small) - positive[i])
    return total + common * np.log1p(product - 1)
