"""What a measure is made of, as explanations see it: elements of a lattice, or terms.

This is the one place that knows the two families apart. All other modules of the package ask for the parts of a
measure and go by their methods.
"""

from typing import Any, NamedTuple

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

Parts = ElementParts | TermParts
"""The parts of a measure: both have the same attributes and methods, whose arrays have one entry per part."""

FAMILIES: dict[str, type[Parts]] = {"elements": ElementParts, "terms": TermParts}


class Use(NamedTuple):
    """For every part: how many instances touch it, how many give it weight, and how much weight in all."""

    touched: Counts
    weighted: Counts
    weight: Floats
    n_instances: int


def parts_of(measure: Measure) -> Parts:
    """Return the parts of a measure."""
    return FAMILIES[measure.parts](measure.space, measure.values, measure.source_names)


def enter(rule: FusionRule, X: Any) -> Planes:
    """Return sources as they enter the integral of a rule, checked."""
    return Planes(rule.enter(X), rule.n_sources, rule.source_names)


def count_use(parts: Parts, planes: Planes, n_jobs: int | None = None) -> Use:
    """Count how the instances without NaN use each part; O(n m^2)."""
    size = len(parts.values)

    def run(chunk: slice) -> tuple[int, tuple[NDArray[np.int64], Counts, Counts, Floats]]:
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
