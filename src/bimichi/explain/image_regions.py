"""Regions of an image, such as superpixels, as suggestions see them: their peaks and their boxes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects

from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError

BLOCKS = 300
"""About how many blocks an image is divided into."""

SMALLEST = 8
"""The least side of a block, in pixels."""

HANDFUL = 4
"""A region's peak is its fourth highest value, so that no single pixel decides; of fewer than 12 pixels, a higher."""

Box = tuple[int, int, int, int]


def blocks(shape: tuple[int, int]) -> Ints:
    """Divide an image into about `BLOCKS` squares, numbered from 0; fewer of a small image."""
    side = max(SMALLEST, round((shape[0] * shape[1] / BLOCKS) ** 0.5))
    row, column = (np.arange(length) // side for length in shape)
    return np.asarray(row[:, None] * (column[-1] + 1) + column, dtype=np.int64)


def check_regions(regions: Any, shape: tuple[int, ...], name: str) -> Ints:
    """Return numbers of regions, below 0 where there is none, checked."""
    given = np.asarray(regions)
    if given.shape != shape or given.dtype.kind not in "iu":
        raise InvalidInputError(
            f"regions of scene {name!r} must be whole numbers of the scene's shape {shape}, got {given.dtype} of shape "
            f"{given.shape}. bimichi.imaging.superpixels makes them."
        )
    return given.astype(np.int64, copy=False)


def peaks(values: NDArray[Any], regions: Ints, n_regions: int) -> tuple[Floats, Ints]:
    """Return for each region the value that a handful of its pixels reach, and one that has it.

    Pixels of value NaN, and those of no region (below 0), are left out; the peak of a region without any is NaN, and
    its pixel -1.
    """
    flat, number = np.ravel(values), regions.ravel()
    at = np.flatnonzero((number >= 0) & ~np.isnan(flat))
    at = at[np.lexsort((flat[at], number[at]))]
    counts = np.bincount(number[at], minlength=n_regions)
    place = np.cumsum(counts) - np.minimum(HANDFUL, 1 + counts // 4)
    pixel = np.full(n_regions, -1)
    some = counts > 0
    pixel[some] = at[place[some]]
    found = np.full(n_regions, np.nan)
    found[some] = flat[pixel[some]]
    return found, pixel


def boxes_of(regions: Ints) -> list[Box | None]:
    """Return the box (x, y, width, height) around each region, None for numbers without pixels."""
    return [
        found and (found[1].start, found[0].start, found[1].stop - found[1].start, found[0].stop - found[0].start)
        for found in find_objects(regions + 1)
    ]


def touch(first: Box, second: Box) -> bool:
    """Whether two boxes overlap or lie side by side."""
    return all(
        first[axis] <= second[axis] + second[axis + 2] and second[axis] <= first[axis] + first[axis + 2]
        for axis in (0, 1)
    )


def shared(first: Box, second: Box) -> bool:
    """Whether two boxes have more than half of the smaller one in common."""
    common = 1
    for axis in (0, 1):
        end = min(first[axis] + first[axis + 2], second[axis] + second[axis + 2])
        common *= max(0, end - max(first[axis], second[axis]))
    return 2 * common > min(first[2] * first[3], second[2] * second[3])
