"""Measures in pictures: the kind that a picture shows, how elements are marked, and labels that fit."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.measures.base import Measure
from bimichi.measures.lattice import short_names
from bimichi.measures.on_lattice import LatticeMeasure
from bimichi.plotting._style import literal

KEY_WIDTH = 64
Kind = TypeVar("Kind", bound=LatticeMeasure)

Elements = Iterable[Any] | Flags | None
"""Elements given by their sources, or as one flag per code."""


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
        got = f"got {type(measure).__name__}; use {other} for it"
        raise InvalidInputError(f"This picture shows a {kind.__name__}, {got}.")
    if measure.n_sources > limit:
        given = f"The {measure.lattice.size:,} elements of {measure.n_sources} sources"
        raise InvalidInputError(f"{given} do not fit this picture, which is drawn up to {limit} sources. {remedy}")
    return measure


def element_marks(measure: LatticeMeasure, used: Elements, identified: Elements) -> tuple[Flags, Flags, list[str]]:
    """Return which elements are bold and which are known, by code, and the line that explains the marks, if any."""
    notes = ["bold, framed: used"] * (used is not None) + ["hatched: not identified"] * (identified is not None)
    bold, known = _mask(measure, used, "used", False), _mask(measure, identified, "identified", True)
    return bold, known, ["     ".join(notes)] if notes else []


def _mask(measure: LatticeMeasure, given: Elements, what: str, default: bool) -> Flags:
    """Return one flag per code; None is `default` for all."""
    if given is None:
        return np.full(measure.lattice.size, default)
    if isinstance(given, np.ndarray):
        if given.dtype != bool or given.shape != measure.values.shape:
            rule = f"elements, or bool of shape {measure.values.shape} such as usage_counts(X) > 0"
            raise InvalidInputError(f"{what} must be {rule}; got {given.dtype} of shape {given.shape}.")
        return given
    mask = np.zeros(measure.lattice.size, dtype=bool)
    mask[[measure.code(element) for element in given]] = True
    return mask


def names_and_key(names: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
    """Return the names for labels of sets, and the lines of a key.

    If the label of all sources together is longer than `limit`, numbers stand for the names, and the key explains them.
    """
    short, numbered = short_names(names, limit)
    if not numbered:
        return short, []
    lines: list[str] = []
    for number, name in enumerate(names, 1):
        entry = f"{number} = {literal(name, KEY_WIDTH - 8)}"
        if lines and len(lines[-1]) + len(entry) < KEY_WIDTH:
            lines[-1] += f",  {entry}"
        else:
            lines.append(entry)
    return short, lines
