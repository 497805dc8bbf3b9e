"""Outlines of regions along the edges of their pixels, as polygons that pictures and vector formats take."""

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats, Ints

Polygon = list[Floats]
"""The outer ring, then those of holes."""

# Sides of a pixel, clockwise on the screen: top, right, bottom, left. For each, the step (row, column) along it, the
# step out of the pixel over it, and the corner (row, column) where it starts.
ALONG = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
OUTWARD = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
START = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])


def outline(region: Flags, x: int = 0, y: int = 0) -> list[Polygon]:
    """Return the polygons of a region, one for each of its 4-connected parts.

    Corners are (x, y) in pixels. The rings of a polygon are closed (the last corner is the first); the outer one runs
    counterclockwise where y points up, as GeoJSON asks (RFC 7946), and holes run the other way round.

    Parameters
    ----------
    region : ndarray of bool, shape (height, width)
        Which pixels belong to it.
    x, y : int
        The position of its upper left corner in the image.
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    parts, n = ndimage.label(region)
    loops = outlines(parts, diagonal=True)
    polygons = []
    for k in range(1, n + 1):
        rings = [np.concatenate([loop, loop[:1]])[::-1] + np.array([x, y], np.float64) for loop in loops[k]]
        polygons.append(sorted(rings, key=lambda ring: ring[:, 0].min()))  # the outer one reaches furthest
    return polygons


def outlines(segments: NDArray[np.integer], diagonal: bool = False) -> dict[int, list[Ints]]:
    """Trace every segment: closed polygons as corners (column, row), without steps along straight lines.

    A pixel reaches from its own number to the next. Parts of a segment (neighbours by a side) are traced clockwise on
    the screen, holes counter-clockwise. Where two pixels meet at a corner alone, a polygon keeps to the one that it
    came along or, with `diagonal`, goes on to the other, so that what they enclose is a hole. O(height * width), then
    O(number of sides that separate segments).
    """
    ranks = np.unique(segments, return_inverse=True)[1].reshape(segments.shape)  # from 0, so that -1 means outside
    padded = np.pad(ranks, 1, constant_values=-1)
    inside = padded[1:-1, 1:-1]
    height, width = inside.shape
    differs = [inside != padded[1 + r : 1 + r + height, 1 + c : 1 + c + width] for r, c in OUTWARD]
    side, row, column = np.nonzero(np.stack(differs))
    row, column = row + 1, column + 1
    following = _following(padded, side, row, column, diagonal)
    corner = np.stack([column + START[side, 1], row + START[side, 0]], axis=1) - 1
    loops: dict[int, list[Ints]] = {}
    turns = side[following] != side
    left = np.ones(len(side), dtype=bool)
    steps, turning = following.tolist(), turns.tolist()
    for first in range(len(side)):
        if not left[first]:
            continue
        loop, edge = [], first
        while left[edge]:
            left[edge] = False
            if turning[edge]:
                loop.append(steps[edge])
            edge = steps[edge]
        owner = int(segments[row[first] - 1, column[first] - 1])
        loops.setdefault(owner, []).append(corner[loop])
    return loops


def _following(padded: Ints, side: Ints, row: Ints, column: Ints, diagonal: bool) -> Ints:
    """Index of the side that continues each side, clockwise, keeping to the same segment."""
    own = padded[row, column]
    ahead_row, ahead_column = row + ALONG[side, 0], column + ALONG[side, 1]
    ahead = padded[ahead_row, ahead_column] == own
    beyond_row, beyond_column = ahead_row + OUTWARD[side, 0], ahead_column + OUTWARD[side, 1]
    beyond = (ahead | diagonal) & (padded[beyond_row, beyond_column] == own)
    # Turn right around the own pixel; or go straight along the pixel ahead; or turn left along the one beyond.
    next_side = np.where(beyond, side - 1, np.where(ahead, side, side + 1)) % 4
    next_row = np.where(beyond, beyond_row, np.where(ahead, ahead_row, row))
    next_column = np.where(beyond, beyond_column, np.where(ahead, ahead_column, column))
    known = np.ravel_multi_index((side, row, column), (4, *padded.shape))  # sorted, as np.nonzero gives them
    return np.searchsorted(known, np.ravel_multi_index((next_side, next_row, next_column), (4, *padded.shape)))
