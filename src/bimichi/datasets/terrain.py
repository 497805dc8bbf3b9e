"""A drawn plain between hills, with a river, fields, roads and villages, and what a flood covers of it."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_closing, binary_dilation, binary_opening, distance_transform_edt, label

from bimichi._types import Flags, Floats, Ints

PIXEL = 10.0  # metres
KINDS = ("soil", "stubble", "crop", "meadow", "orchard", "forest", "roofs", "asphalt", "water")
SOIL, STUBBLE, CROP, MEADOW, ORCHARD, FOREST, ROOFS, ASPHALT, WATER = range(len(KINDS))
ON_FIELDS = (SOIL, STUBBLE, CROP, MEADOW, ORCHARD)


def fractal(rng: np.random.Generator, shape: tuple[int, int], exponent: float, coarsest: float = 1e9) -> Floats:
    """Return noise of mean 0 and deviation 1: smooth for a large exponent, without waves above `coarsest` pixels."""
    spectrum = np.fft.rfft2(rng.standard_normal(shape))
    wave = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :])
    spectrum *= np.maximum(wave, 1 / max(shape)) ** -exponent * (wave > 1 / coarsest)
    found = np.fft.irfft2(spectrum, shape)
    return np.asarray((found - found.mean()) / max(float(found.std()), 1e-12))


@dataclass(frozen=True)
class Terrain:
    """What lies where: `height` in metres, `kind` as a number of `KINDS`, `parcel` (fields), and where water is.

    `kind` is what the ground is without the flood. `depth` is that of the flood in metres, 0 where it is dry.
    """

    height: Floats
    kind: Ints
    parcel: Ints
    permanent: Flags
    depth: Floats

    @property
    def flooded(self) -> Flags:
        """Where there is water that was not there before."""
        return np.asarray((self.depth > 0) & ~self.permanent)


def draw_terrain(rng: np.random.Generator, shape: tuple[int, int], level: float) -> Terrain:
    """Draw a plain with a river, and flood it to `level` metres above the banks."""
    y, x = np.mgrid[: shape[0], : shape[1]] * PIXEL
    size = x.max() + PIXEL
    middle = (0.35 + 0.3 * rng.random()) * (y.max() + PIXEL)
    waves = [(size * rng.uniform(0.02, 0.09) / k, k * rng.uniform(1.2, 2.2), rng.uniform(0, 6.3)) for k in (1, 2, 4)]
    river = middle + sum(depth * np.sin(2 * np.pi * turns * x / size + phase) for depth, turns, phase in waves)
    river = river + rng.uniform(-0.25, 0.25) * (x - size / 2)
    away = np.asarray(distance_transform_edt(np.abs(y - river) > 0.8 * PIXEL)) * PIXEL
    hills = _hills(rng, shape)
    parcel, edge = _fields(rng, x, y)
    plain = 0.0022 * away + 0.35 * fractal(rng, shape, 1.8) + 0.25 * rng.normal(size=parcel.max() + 1)[parcel]
    height = plain + 0.7 * edge + hills
    permanent = (away < 25 + 12 * rng.random()) | _lakes(rng, shape, hills)
    kind = _kinds(rng, shape, parcel, edge, hills)
    depth = np.where(permanent, level + 1, level - height)
    wet, _ = label(depth > 0)
    reached = np.isin(wet, np.unique(wet[permanent & (wet > 0)]))
    depth = np.where(reached & (kind != ROOFS), np.maximum(depth, 0), 0.0)
    depth[~permanent & ~binary_opening(depth > 0, iterations=1)] = 0  # puddles of single pixels show in no sensor
    return Terrain(height, np.where(permanent, WATER, kind), parcel, permanent, depth)


def _hills(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Steep hills in one corner, in metres above the plain."""
    down, across = np.mgrid[: shape[0], : shape[1]] / max(shape)
    corner = rng.integers(0, 2, 2) * (np.array(shape) / max(shape))
    near = 1.25 - 2.1 * np.hypot(down - corner[0], across - corner[1]) + 0.12 * fractal(rng, shape, 1.6)
    ridges = 1 - np.abs(fractal(rng, shape, 2.3, coarsest=max(shape) / 2.5))
    return np.asarray(np.clip(near, 0, 1) ** 1.3 * np.maximum(90 + 260 * ridges, 0))


def _lakes(rng: np.random.Generator, shape: tuple[int, int], hills: Floats) -> Flags:
    """Two or three lakes in the plain, of round outlines."""
    places = np.argwhere(hills == 0)
    down, across = np.mgrid[: shape[0], : shape[1]]
    rough = fractal(rng, shape, 2.0, coarsest=max(shape) / 3)
    found = np.zeros(shape, dtype=np.bool_)
    for _ in range(rng.integers(2, 4)):
        row, column = places[rng.integers(len(places))] if len(places) else (0, 0)
        wide, tall = rng.uniform(0.025, 0.055, 2) * max(shape)
        found |= np.hypot((down - row) / tall, (across - column) / wide) < 1 + 0.28 * rough
    return np.asarray(found & (hills < 2))


def _fields(rng: np.random.Generator, x: Floats, y: Floats) -> tuple[Ints, Flags]:
    """Number the fields, long rectangles in two directions, and return the tracks between them, which are higher."""
    shape, parcel, track = x.shape, np.zeros(x.shape, dtype=np.int64), np.zeros(x.shape, dtype=np.bool_)
    district = fractal(rng, (shape[0], shape[1]), 2.2)
    for part, where in enumerate((district < 0, district >= 0)):
        turn = rng.uniform(0, np.pi)
        along, off = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
        block, near = _strips(rng, off, 160.0, 380.0)
        cell, close = _strips(rng, along + 97.0 * (block % 7), 60.0, 260.0)
        number = 1 + (block * 1009 + cell * 13 + part * 5) % 4093
        parcel[where] = number[where]
        track[where] = (near | (close & (cell % 3 == 0)))[where]
    return parcel, track


def _strips(rng: np.random.Generator, along: Floats, least: float, most: float) -> tuple[Ints, Flags]:
    """Cut a line into strips of random widths in metres; returns the strip, and whether its edge is near."""
    low, length = float(along.min()), float(np.ptp(along)) + 1
    edges = low - least + np.cumsum(rng.uniform(least, most, int(length / least) + 4))
    strip = np.searchsorted(edges, along)
    return strip, np.asarray(np.abs(along - edges[np.clip(strip, 0, len(edges) - 1)]) < 0.7 * PIXEL)


def _kinds(rng: np.random.Generator, shape: tuple[int, int], parcel: Ints, track: Flags, hills: Floats) -> Ints:
    """What grows or stands where: fields, forest on hills, villages, roads and a runway."""
    kind = np.array(rng.choice(ON_FIELDS, parcel.max() + 1, p=[0.3, 0.15, 0.25, 0.2, 0.1]))[parcel]
    kind[hills > 12 + 10 * fractal(rng, shape, 1.5)] = FOREST
    kind[track & (hills == 0) & (parcel % 4 < 2)] = ASPHALT
    down, across = np.mgrid[: shape[0], : shape[1]]
    size = max(shape)
    houses = rng.random((shape[0] // 2 + 1, shape[1] // 2 + 1)).repeat(2, 0).repeat(2, 1)[: shape[0], : shape[1]]
    rough = fractal(rng, shape, 1.6, coarsest=size / 3)
    for _ in range(4):
        row, column = rng.uniform(0, shape[0]), rng.uniform(0, shape[1])
        inside = np.hypot(down - row, across - column) < size * rng.uniform(0.02, 0.05) * (1 + 0.3 * rough)
        kind[inside & (hills == 0) & (houses < 0.62)] = ROOFS
        kind[inside & (hills == 0) & (houses >= 0.62)] = MEADOW
    turn, row, column = rng.uniform(0, np.pi), *(size * rng.uniform(0.2, 0.8, 2))
    along = (across - column) * np.cos(turn) + (down - row) * np.sin(turn)
    off = (down - row) * np.cos(turn) - (across - column) * np.sin(turn)
    runway = (np.abs(along) < 0.09 * size) & (np.abs(off) < max(1.5, 0.006 * size))  # as dark as water for a radar
    kind[runway & (hills == 0)] = ASPHALT
    return np.asarray(kind, dtype=np.int64)


def outlines(flooded: Flags, generosity: int = 3) -> Flags:
    """Outline a flood as someone does by hand: closed over dry spots, too large, and without the smallest parts."""
    found = binary_closing(np.pad(flooded, 8), iterations=generosity)[8:-8, 8:-8]
    found = binary_opening(found, iterations=2)
    return np.asarray(binary_dilation(found, iterations=generosity))
