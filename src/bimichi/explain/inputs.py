"""What explanations start from: a rule, whatever it is given as, and the sources as they enter its integral."""

from typing import Any

from bimichi.errors import InvalidInputError
from bimichi.measures.base import LatticeMeasure
from bimichi.rule import as_rule

__all__ = ["Explained", "check_elements", "lowest", "measure_of", "ready"]

Explained = Any
"""What can be explained: a measure, a rule, or a fitted model that has one."""


def measure_of(what: Explained) -> LatticeMeasure:
    """Return the measure itself, or the one that a fitted model has learned; one given by terms by its elements."""
    measure = as_rule(what).measure
    return measure if isinstance(measure, LatticeMeasure) else measure.to_bicapacity()


def ready(what: Explained, X: Any) -> tuple[LatticeMeasure, Any]:
    """Return the measure, and the sources as its integral takes them."""
    return measure_of(what), as_rule(what).enter(X)


def check_elements(what: Explained, subject: str) -> None:
    """Raise if a measure is told by terms, so that its elements are not free of each other."""
    if not isinstance(as_rule(what).measure, LatticeMeasure):
        raise InvalidInputError(
            f"{subject} is about elements that are free of each other; those of a measure with few terms are not. Look "
            "at its terms, or at indices(); or fit with additivity=None."
        )


def lowest(measure: LatticeMeasure) -> float:
    """Return the least value that a source may take: -1, or 0 for a capacity."""
    return measure.low
