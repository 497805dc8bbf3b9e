"""Outlines of segments as polygons along the edges of pixels."""

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Ints

__all__ = ["outlines"]

# Sides of a pixel, clockwise on the screen: top, right, bottom, left. For each, the step (row, column) along it, the
# step out of the pixel over it, and the corner (row, column) where it starts.
ALONG = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
OUTWARD = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
START = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])


def outlines(segments: NDArray[np.integer]) -> dict[int, list[Ints]]:
    """Trace every segment: closed polygons as corners (column, row), without steps along straight lines.

    A pixel reaches from its own number to the next. Parts of a segment (neighbours by a side) are traced clockwise on
    the screen, holes counter-clockwise. O(height * width), then O(number of sides that separate segments).
    """
    ranks = np.unique(segments, return_inverse=True)[1].reshape(segments.shape)  # from 0, so that -1 means outside
    padded = np.pad(ranks, 1, constant_values=-1)
    side, row, column = _border(padded)
    following = _following(padded, side, row, column)
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


def _border(padded: Ints) -> tuple[Ints, Ints, Ints]:
    """Side, row and column of every side of a pixel behind which another segment lies, in that order."""
    inside = padded[1:-1, 1:-1]
    height, width = inside.shape
    differs = [inside != padded[1 + r : 1 + r + height, 1 + c : 1 + c + width] for r, c in OUTWARD]
    side, row, column = np.nonzero(np.stack(differs))
    return side, row + 1, column + 1


def _following(padded: Ints, side: Ints, row: Ints, column: Ints) -> Ints:
    """Index of the side that continues each side, clockwise, keeping to the same segment."""
    own = padded[row, column]
    ahead_row, ahead_column = row + ALONG[side, 0], column + ALONG[side, 1]
    ahead = padded[ahead_row, ahead_column] == own
    beyond_row, beyond_column = ahead_row + OUTWARD[side, 0], ahead_column + OUTWARD[side, 1]
    beyond = ahead & (padded[beyond_row, beyond_column] == own)
    # Turn right around the own pixel; or go straight along the pixel ahead; or turn left along the one beyond.
    next_side = np.where(beyond, side - 1, np.where(ahead, side, side + 1)) % 4
    next_row = np.where(beyond, beyond_row, np.where(ahead, ahead_row, row))
    next_column = np.where(beyond, beyond_column, np.where(ahead, ahead_column, column))
    known = np.ravel_multi_index((side, row, column), (4, *padded.shape))  # sorted, as np.nonzero gives them
    return np.searchsorted(known, np.ravel_multi_index((next_side, next_row, next_column), (4, *padded.shape)))
