"""Elements of a measure in pictures: how they are marked, and labels that fit."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.measures.base import LatticeMeasure
from bimichi.measures.lattice import set_label
from bimichi.plotting._style import literal

__all__ = ["Elements", "element_marks", "short_names"]

KEY_WIDTH = 64


Elements = Iterable[Any] | NDArray[np.bool_] | None
"""Elements given by their sources, or as one flag per code."""


def element_marks(
    measure: LatticeMeasure, used: Elements, identified: Elements
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[str]]:
    """Return which elements are bold and which are known, by code, and the line that explains the marks, if any."""
    notes = ["bold, framed: used"] * (used is not None) + ["hatched: not identified"] * (identified is not None)
    bold, known = _mask(measure, used, "used", False), _mask(measure, identified, "identified", True)
    return bold, known, ["     ".join(notes)] if notes else []


def _mask(measure: LatticeMeasure, given: Elements, what: str, default: bool) -> NDArray[np.bool_]:
    """Return one flag per code; None is `default` for all."""
    if given is None:
        return np.full(measure.lattice.size, default)
    if isinstance(given, np.ndarray):
        if given.dtype != bool or given.shape != measure.values.shape:
            raise InvalidInputError(
                f"{what} must be elements, or a boolean array of shape {measure.values.shape} "
                f"such as usage_counts(X) > 0; got {given.dtype} of shape {given.shape}."
            )
        return given
    mask = np.zeros(measure.lattice.size, dtype=bool)
    mask[[measure.code(element) for element in given]] = True
    return mask


def short_names(names: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
    """Return names whose sets can be labels, and lines of a key to them.

    If the label of all sources together is longer than `limit`, the sources are numbered, and the key lists their
    names; otherwise the labels are made of names, and the key is empty.
    """
    if len(set_label(range(len(names)), names)) <= limit:
        return list(names), []
    numbers = [str(k + 1) for k in range(len(names))]
    lines: list[str] = []
    for number, name in zip(numbers, names, strict=True):
        entry = f"{number} = {literal(name, KEY_WIDTH - 8)}"
        if lines and len(lines[-1]) + len(entry) < KEY_WIDTH:
            lines[-1] += f",  {entry}"
        else:
            lines.append(entry)
    return numbers, lines
