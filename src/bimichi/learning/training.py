"""What an estimator asks of its training bags: here in memory, in `bimichi.learning.streaming` elsewhere."""

from os import PathLike
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bimichi.integral.linear import Usage, count_usage
from bimichi.learning.bags import Bags
from bimichi.learning.objectives import Objective
from bimichi.learning.problem import InMemory, Problem
from bimichi.learning.scaling import Scale
from bimichi.learning.scene import Scene, Scenes
from bimichi.learning.term_problem import TermProblem, TermsInMemory, TermUsage

__all__ = ["BagRanges", "InHand", "Training", "bag_ranges", "count_use", "in_memory", "is_lazy"]

Floats = NDArray[np.float64]


def is_lazy(X: Any) -> bool:
    """Whether data are for `bimichi.learning.streaming`: a Dask collection, or a list of scenes that may come later."""
    if hasattr(X, "__dask_graph__") or isinstance(X, Scenes):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    return isinstance(X[0], Scene | str | PathLike) or callable(X[0]) or hasattr(X[0], "__dask_graph__")


class BagRanges(NamedTuple):
    """Of every bag, the least and the greatest value of each source, its label and its weight."""

    low: Floats
    high: Floats
    labels: NDArray[np.bool_]
    weights: Floats


class Training(Protocol):
    """Labelled bags to learn from."""

    n_sources: int

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each source."""
        ...

    def scaled(self, scale: Scale) -> Self:
        """The same bags with sources mapped."""
        ...

    def bag_ranges(self) -> BagRanges:
        """The extremes of each source in each bag."""
        ...

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> Problem | TermProblem:
        """What a solver asks, for sources turned by these signs."""
        ...

    def usage(self, objective: Objective, signs: Floats, weighted: bool, n_jobs: int | None) -> NDArray[np.int64]:
        """How many instances use each element, or term, of the measure that the objective is for."""
        ...


class InHand:
    """Bags in memory."""

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self._merged = bags.singles_merged()
        self._problems: dict[Objective, InMemory | TermsInMemory] = {}
        self._usage: Usage | TermUsage | None = None
        self.n_sources = bags.n_sources

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each source."""
        return self._bags.X.min(axis=0).astype(np.float64), self._bags.X.max(axis=0).astype(np.float64)

    def scaled(self, scale: Scale) -> "InHand":
        """The same bags with sources mapped."""
        return InHand(scale.bags(self._bags))

    def bag_ranges(self) -> BagRanges:
        """The extremes of each source in each bag."""
        return bag_ranges(self._merged)

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> Problem | TermProblem:
        """What a solver asks, for sources turned by these signs."""
        if objective not in self._problems:
            self._problems[objective] = in_memory(self._merged, objective, n_jobs)
        return self._problems[objective].turned(signs)

    def usage(self, objective: Objective, signs: Floats, weighted: bool, n_jobs: int | None) -> NDArray[np.int64]:
        """How many instances use each element, or term."""
        if self._usage is None:
            self._usage = count_use(self._bags, objective, n_jobs)
        return self._usage.counts(signs, weighted)


def in_memory(bags: Bags, objective: Objective, n_jobs: int | None, reduce: bool = True) -> InMemory | TermsInMemory:
    """Return the problem of bags in memory, for the measure that the objective is for."""
    return (TermsInMemory if objective.additivity else InMemory)(bags, objective, n_jobs, reduce)


def count_use(bags: Bags, objective: Objective, n_jobs: int | None) -> Usage | TermUsage:
    """Count how often instances use each element, or term, with sources as they are or turned over."""
    return TermUsage.of(bags.X) if objective.additivity else count_usage(bags.X, n_jobs)


def bag_ranges(bags: Bags) -> BagRanges:
    """The extremes of each source in each bag, labels and weights."""
    low, high = (extreme.reduceat(bags.X, bags.offsets[:-1], axis=0) for extreme in (np.minimum, np.maximum))
    return BagRanges(low.astype(np.float64), high.astype(np.float64), bags.labels, bags.weights)
