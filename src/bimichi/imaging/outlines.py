"""Outlines of regions along the edges of their pixels, as polygons that vector formats take.

Corners are (x, y) in pixels. The rings of a polygon are closed (the last corner is the first); the outer one runs
counterclockwise where y points up, as GeoJSON asks (RFC 7946), and holes run the other way round.
"""

from itertools import pairwise

import numpy as np

from bimichi._types import Flags, Floats

Polygon = list[Floats]
"""The outer ring, then those of holes."""

RIGHT, DOWN, LEFT, UP = range(4)
STEPS = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])


def outline(region: Flags, x: int = 0, y: int = 0) -> list[Polygon]:
    """Return the polygons of a region, one for each of its 4-connected parts.

    Parameters
    ----------
    region : ndarray of bool, shape (height, width)
        Which pixels belong to it.
    x, y : int
        The position of its upper left corner in the image.
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    parts, _ = ndimage.label(region)
    polygons = []
    for k, found in enumerate(ndimage.find_objects(parts)):
        rings = _rings(parts[found] == k + 1)
        corner = np.array([x + found[1].start, y + found[0].start])
        rings.sort(key=lambda ring: not _is_outer(ring))
        polygons.append([(ring + corner).astype(np.float64) for ring in rings])
    return polygons


def _rings(region: Flags) -> list[Floats]:
    """Trace all rings, pixels of the region on the left of each step (y up), and keep corners where they turn."""
    padded = np.pad(region, 1)
    inside = padded[1:-1, 1:-1]
    edges: dict[tuple[int, int], list[int]] = {}
    beyond = {
        RIGHT: (~padded[2:, 1:-1], (0, 1)),  # along the lower side, from its left end
        UP: (~padded[1:-1, 2:], (1, 1)),
        LEFT: (~padded[:-2, 1:-1], (1, 0)),
        DOWN: (~padded[1:-1, :-2], (0, 0)),
    }
    for direction, (open_side, (right, below)) in beyond.items():
        rows, columns = np.nonzero(inside & open_side)
        for start in zip((columns + right).tolist(), (rows + below).tolist(), strict=True):
            edges.setdefault(start, []).append(direction)
    rings = []
    while edges:
        rings.append(_trace(edges))
    return rings


def _trace(edges: dict[tuple[int, int], list[int]]) -> Floats:
    """Follow edges from one start until the ring closes, and remove them."""
    start = next(iter(edges))
    place, corners, before = start, [], None
    while True:
        choices = edges[place]
        # Where two pixels meet at a corner alone, the ring goes on to the other, so that what they enclose is a hole.
        turn = (before + 1) % 4 if before is not None and len(choices) > 1 else choices[0]
        direction = turn if turn in choices else choices[0]
        choices.remove(direction)
        if not choices:
            del edges[place]
        if direction != before:
            corners.append(place)
        place = (place[0] + int(STEPS[direction][0]), place[1] + int(STEPS[direction][1]))
        before = direction
        if place == start:
            break
    if len(corners) > 1 and _straight(corners[-1], corners[0], corners[1]):
        corners = corners[1:]
    return np.array([*corners, corners[0]])


def _straight(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (a[0] == b[0] == c[0]) or (a[1] == b[1] == c[1])


def _is_outer(ring: Floats) -> bool:
    return sum(int(a[0] * b[1] - b[0] * a[1]) for a, b in pairwise(ring)) < 0  # y points down
