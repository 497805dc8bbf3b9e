"""Losses of all instances, their derivatives and their curvature.

With f = C of h + offset, these are the log-loss, f being the log-odds, and the mean over each bag of squared distances
of f to the label, -1 or +1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bimichi._jit import jit
from bimichi._types import Flags, Floats, Ints
from bimichi.integral.planes import SMALL_CHUNK, run_chunks
from bimichi.learning.bags import Bags
from bimichi.learning.spaces.gram import Gram
from bimichi.link import count_outputs

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
        fused, found = self._fuser(values), []
        for side in (~positive, positive):
            step = max(1, int(np.count_nonzero(side)) // COUNTED)
            which = np.flatnonzero(side)[::step]
            found.append(count_outputs(fused(which), share[which]))
        return np.array(found)

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
