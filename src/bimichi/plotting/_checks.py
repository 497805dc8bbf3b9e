"""Checks shared by several pictures."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.measures.base import LatticeMeasure

__all__ = ["check_labels", "check_measure", "measure_of"]

Kind = TypeVar("Kind", bound=LatticeMeasure)


def check_labels(labels: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return which labels are those of targets."""
    found = set(np.unique(labels).tolist()) if labels.dtype.kind in "biuf" else {object}
    if not (found <= {0, 1} or found <= {-1, 1}):
        shown = ", ".join(map(str, np.unique(labels.astype(str))[:5]))
        raise InvalidInputError(f"{what} must be 0 and 1, -1 and +1, or bool; found {shown}.")
    return np.asarray(labels > 0)


def measure_of(given: Any) -> Any:
    """Return the measure of a fitted model (its rule) or of a rule; a measure is returned as it is."""
    for attribute in ("rule_", "measure"):
        given = getattr(given, attribute, given)
    return given


def check_measure(given: object, kind: type[Kind], limit: int, remedy: str) -> Kind:
    """Return the measure of a model, a rule or a measure if it is of this `kind` and has at most `limit` sources."""
    measure = measure_of(given)
    if not isinstance(measure, kind):
        raise InvalidInputError(
            f"This picture shows a {kind.__name__}, got {type(measure).__name__}; "
            "of a fitted model, pass its bicapacity_ or capacity_."
        )
    if measure.n_sources > limit:
        raise InvalidInputError(
            f"The {measure.lattice.size:,} elements of {measure.n_sources} sources do not fit this picture, "
            f"which is drawn up to {limit} sources. {remedy}"
        )
    return measure
