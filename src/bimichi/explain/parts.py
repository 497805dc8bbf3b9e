"""What a measure is made of, as explanations see it: elements of a lattice, or terms.

This is the one place that knows the two families apart. All other modules of the package ask for the parts of a
measure and go by their methods.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bimichi.explain.elements import ElementParts
from bimichi.explain.terms import TermParts
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.base import Measure
from bimichi.rule import FusionRule

__all__ = ["Parts", "Use", "count_use", "enter", "parts_of"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

FAMILIES: dict[str, Any] = {"elements": ElementParts, "terms": TermParts}


class Parts(Protocol):
    """The parts of a measure; arrays have one entry per part, in the order of the values of the measure."""

    @property
    def values(self) -> Floats:
        """The value of each part."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sources."""
        ...

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """What tables call a part, its weight in an instance, its value, and the product of both."""
        ...

    @property
    def listed(self) -> NDArray[np.int64]:
        """The parts that tables list."""
        ...

    @property
    def n_free(self) -> int:
        """The number of parts that training can choose."""
        ...

    def label(self, k: int) -> str:
        """Return the name of a part."""
        ...

    def with_values(self, values: Floats) -> "Parts":
        """Return the same parts with other values."""
        ...

    def steps(self, x: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
        """Return the parts that one instance uses and their weights: the integral is the sum of weight times value."""
        ...

    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return what writes the contributions of sources (m, n) to an array (n, m); NaN where a source is."""
        ...

    def use(self, rows: NDArray[Any]) -> tuple[NDArray[np.int64], Counts, Counts, Floats]:
        """Return the parts that rows touch; how many touch each, how many give it weight, and how much in all."""
        ...

    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return importance up and down, and interaction up, down and mixed, averaged over the whole measure."""
        ...

    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions up, down and mixed, given the mean weight of each part."""
        ...

    def intervals(self, used: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the least and the greatest value of each part that change no fused value, given those in use."""
        ...


class Use(NamedTuple):
    """For every part: how many instances touch it, how many give it weight, and how much weight in all."""

    touched: Counts
    weighted: Counts
    weight: Floats
    n_instances: int


def parts_of(measure: Measure) -> Parts:
    """Return the parts of a measure."""
    made: Parts = FAMILIES[measure.parts](measure.space, measure.values, measure.source_names)
    return made


def enter(rule: FusionRule, X: Any) -> Planes:
    """Return sources as they enter the integral of a rule, checked."""
    return Planes(rule.enter(X), rule.n_sources, rule.source_names)


def count_use(parts: Parts, planes: Planes, n_jobs: int | None = None) -> Use:
    """Count how the instances without NaN use each part; O(n m^2)."""
    size = len(parts.values)

    def run(chunk: slice) -> tuple[int, Sequence[NDArray[Any]]]:
        rows = planes.stacked(chunk).T
        rows = rows[~np.isnan(rows).any(axis=1)]
        return len(rows), parts.use(rows)

    total = Use(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size), 0)
    n_instances = 0
    for n, (met, touched, weighted, weight) in run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs)):
        total.touched[met] += touched
        total.weighted[met] += weighted
        total.weight[met] += weight
        n_instances += n
    return total._replace(n_instances=n_instances)
