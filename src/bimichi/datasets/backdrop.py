"""What a drawn street stands in: sky, skyline, road and pavements, and houses with lit windows."""

import numpy as np
from numpy.typing import NDArray

from bimichi.datasets.drawing import Canvas, planes
from bimichi.datasets.figures import AIR

__all__ = ["PAVEMENT", "ROAD", "draw_backdrop"]

ROAD, PAVEMENT = 4.0, 7.5
"""Distance from the middle of the street to the kerb, and to the houses, in metres."""

FAR = 75.0
"""Where the houses along the street end, in metres; the skyline stands behind."""


def draw_backdrop(canvas: Canvas, rng: np.random.Generator) -> None:
    """Fill the whole canvas, from far to near."""
    _sky(canvas)
    _skyline(canvas, rng)
    _ground(canvas)
    for side in (-1, 1):
        _houses(canvas, side, rng)


def _sky(canvas: Canvas) -> None:
    _, up = canvas.view.rays()
    glow = 0.35 + np.exp(-np.maximum(up, 0) / 0.12)  # the light of the town
    heat = AIR - 26 + 18 * np.exp(-np.maximum(up, 0) / 0.2)
    canvas.put(True, (0.0, 1e4, 1e4), 0.0, heat, glow * planes((0.003, 0.0034, 0.0046)))


def _skyline(canvas: Canvas, rng: np.random.Generator) -> None:
    z = 1.6 * FAR
    across, up = canvas.view.rays()
    x, y = across * z, canvas.view.eye + up * z
    block = np.searchsorted(np.cumsum(rng.uniform(6, 18, 60)) - 350, x)
    top = rng.choice([8.0, 14.0, 20.0, 34.0], 61, p=[0.4, 0.3, 0.2, 0.1])[block] + rng.uniform(0, 4, 61)[block]
    column, floor = np.floor(x / 2.5).astype(int), np.floor(y / 3.0).astype(int)
    window = (np.abs(x / 2.5 - column - 0.5) < 0.28) & (np.abs(y / 3.0 - floor - 0.5) < 0.25)
    lit = window & (rng.random((64, 16)) < 0.18)[column % 64, floor % 16]
    heat = AIR + rng.uniform(-1, 3, 61)[block] + lit
    canvas.put(y < top, (x, y, z), 0.08, heat, lit * planes((0.16, 0.13, 0.08)))


def _ground(canvas: Canvas) -> None:
    across, up = canvas.view.rays()
    z = canvas.view.eye / np.maximum(-up, 1e-6)
    x = across * z
    side = np.abs(x)
    stripe = ((np.abs(side - 3.7) < 0.06) | ((side < 0.07) & (z % 7 < 3))) & (side < ROAD)
    joint = ((x % 0.6 < 0.03) | (z % 0.6 < 0.05)) & (z < 25)
    albedo = np.where(side < ROAD, 0.085, np.where(joint, 0.1, 0.16))
    albedo = np.where(stripe, 0.45, np.where(np.abs(side - ROAD - 0.08) < 0.08, 0.3, albedo))
    heat = AIR + np.where(side < ROAD, 1.8 + 0.4 * np.cos(2 * side), 0.6) - 0.4 * stripe
    canvas.put(up < 0, (x, 0.0, z), albedo * planes((1.0, 1.0, 0.92)), heat)


def _houses(canvas: Canvas, side: int, rng: np.random.Generator) -> None:
    across, up = canvas.view.rays()
    z = np.minimum(PAVEMENT / np.maximum(side * across, 1e-6), 2 * FAR)
    y = canvas.view.eye + up * z
    ends = 3.0 * np.cumsum(rng.integers(3, 7, 13))  # whole windows
    tops = np.where(rng.random(13) < 0.2, 0.0, rng.choice([6.8, 10.0, 13.2], 13))  # 0: a gap between houses
    colours = rng.uniform(0.1, 0.28, 13) * rng.uniform(0.8, 1.0, (3, 13))
    warmth = AIR + rng.uniform(0.5, 5.0, 13)  # from the day's sun, and heating
    for k in range(11, -1, -1):
        if tops[k + 1] > tops[k] and ends[k] < FAR:
            _gable(canvas, side, ends[k], tops[k + 1], colours[:, k + 1], warmth[k + 1])
    block = np.minimum(np.searchsorted(ends, z), 12)
    column, floor = np.floor(z / 3.0).astype(int), np.floor(y / 3.2).astype(int)
    cell = (column % 32, floor % 8)
    beside, above = np.abs(z / 3.0 - column - 0.5), np.abs(y / 3.2 - floor - 0.55)  # of the middle of a pane
    shop = (rng.random(13) < 0.3)[block] & (y < 2.7) & (y > 0.4) & (beside < 0.42)
    window = (beside < 0.24) & (above < 0.26) & (y < tops[block] - 0.5) & ~shop
    lit = window & (rng.random((32, 8)) < 0.25)[cell]
    frame = (beside < 0.015) | (np.abs(above - 0.12) < 0.012)
    shine = lit * rng.uniform(0.06, 0.35, (32, 8))[cell] + shop * rng.uniform(0.08, 0.3, 32)[cell[0]]
    shine *= np.where(frame, 0.15, 0.7 + 0.6 * np.clip(y / 3.2 - floor, 0, 1))  # lamps hang from ceilings
    tint = np.where(rng.random(32) < 0.65, np.array([[1.0], [0.72], [0.38]]), np.array([[0.85], [1.0], [0.88]]))
    leak = rng.uniform(2.0, 10.0, (32, 8))[cell]  # through single panes of heated rooms
    heat = warmth[block] + 1.2 * np.exp(-np.maximum(y, 0) / 2) + 6.0 * shop
    heat += np.where(window, np.where(lit, leak, -1.5), 0.0)
    wall = (y >= 0) & (y < tops[block]) & (z < FAR)
    albedo = np.where(window | shop, 0.04, colours[:, block])
    canvas.put(wall, (side * PAVEMENT, y, z), albedo, heat, shine * tint[:, cell[0]])


def _gable(canvas: Canvas, side: int, z: float, top: float, colour: NDArray[np.float64], heat: float) -> None:
    """The wall of a house that faces the camera, where the one before it is lower."""
    across, up = canvas.view.rays()
    x, y = across * z, canvas.view.eye + up * z
    wall = (side * x >= PAVEMENT) & (side * x < PAVEMENT + 11) & (y >= 0) & (y < top)
    canvas.put(wall, (x, y, z), colour[:, None, None], heat)
