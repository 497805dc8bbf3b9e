"""Checks shared by several pictures."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.measures.base import LatticeMeasure, Measure

__all__ = ["check_labels", "check_measure", "measure_of"]

Kind = TypeVar("Kind", bound=LatticeMeasure)


def check_labels(labels: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return which labels are those of targets."""
    found = set(np.unique(labels).tolist()) if labels.dtype.kind in "biuf" else {object}
    if not (found <= {0, 1} or found <= {-1, 1}):
        shown = ", ".join(map(str, np.unique(labels.astype(str))[:5]))
        raise InvalidInputError(f"{what} must be 0 and 1, -1 and +1, or bool; found {shown}.")
    return np.asarray(labels > 0)


def measure_of(given: Any) -> Measure:
    """Return the measure of a rule or of a fitted model; a measure is returned as it is."""
    if isinstance(given, Measure):
        return given
    from bimichi.rule import as_rule  # here, because numba takes long to import

    return as_rule(given).measure


def check_measure(given: object, kind: type[Kind], limit: int, remedy: str) -> Kind:
    """Return the measure of a rule, a model or a measure if it is of this `kind` and has at most `limit` sources."""
    measure = measure_of(given)
    if not isinstance(measure, kind):
        others = {"Capacity": "plot_capacity", "AdditiveBiCapacity": "plot_terms"}
        other = others.get(type(measure).__name__, "plot_matrix or plot_lattice")
        raise InvalidInputError(
            f"This picture shows a {kind.__name__}, got {type(measure).__name__}; use {other} for it."
        )
    if measure.n_sources > limit:
        raise InvalidInputError(
            f"The {measure.lattice.size:,} elements of {measure.n_sources} sources do not fit this picture, "
            f"which is drawn up to {limit} sources. {remedy}"
        )
    return measure
