"""Planes and measures as compressed text, for the page to unpack.

A plane becomes whole numbers of 16 bits and a list of what they mean. Up to 4,096 distinct values are listed, and the
plane is exact; more are rounded to 65,535 equal steps over its range. Each number is stored as its difference from
the one to its left (zigzag: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...), low bytes first, then high bytes, and deflated.
"""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.rule import FusionRule

LISTED = 4096
MISSING = 2**16 - 1
STEPS = 2**16 - 2


def embed_plane(plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)) -> dict[str, Any]:
    """Return a plane as a part of the page's data; values beyond `limits` may be set to them."""
    indices, meaning = index_plane(plane, limits)
    return meaning | {"data": embed_indices(indices)}


def index_plane(
    plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[NDArray[np.uint16], dict[str, Any]]:
    """Return a plane as whole numbers of 16 bits, `MISSING` for NaN, and what they mean."""
    missing = np.isnan(plane)
    values = plane.astype(np.float64)
    known = values[~missing]
    few = (
        len(np.unique(known[:: max(1, len(known) // (4 * LISTED))])) <= LISTED
    )  # of a part: else there are more of all
    levels = np.unique(known) if few else known
    if len(levels) > LISTED:
        low, high = np.clip([levels.min(), levels.max()], *limits)
        step = (high - low) / STEPS or 1.0
        indices = np.rint((np.clip(np.where(missing, low, values), low, high) - low) / step)
        meaning: dict[str, Any] = {"low": float(low), "step": float(step)}
    else:
        indices = np.searchsorted(levels, values)
        meaning = {"levels": levels.tolist()}
    return np.where(missing, MISSING, indices).astype(np.uint16), meaning


def embed_indices(indices: NDArray[Any]) -> str:
    """Return whole numbers below 2^16 of an image as text."""
    numbers = indices.astype(np.uint16)
    steps = np.diff(numbers, axis=1, prepend=np.uint16(0)).astype(np.int16)
    folded = ((steps << 1) ^ (steps >> 15)).astype("<u2")
    return _packed(folded.reshape(-1, 1).view(np.uint8).T)


def embed_numbers(values: NDArray[np.float64]) -> str:
    """Return numbers, such as the values of a measure, as text."""
    return _packed(values.astype("<f8"))


def learned_range(rule: FusionRule, k: int) -> tuple[float, float]:
    """Return the values of source k between which the rule's scale is not flat."""
    centre, factor = float(rule.centre[k]), float(rule.factor[k])
    if (centre, factor) == (0.0, 1.0) or factor == 0:
        return (-np.inf, np.inf)
    return (centre + rule.low / factor, centre + 1 / factor)


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
