"""`flood`: a drawn flood as a radar and an optical satellite see it, georeferenced, with exact truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import (
    binary_closing,
    binary_dilation,
    binary_opening,
    distance_transform_edt,
    gaussian_filter,
    label,
    shift,
    uniform_filter,
)

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Floats, Ints
from bimichi.datasets.drawing import LICENCE, image_files, scene_name
from bimichi.io.write import write_geotiff
from bimichi.measures.lattice import Seed, random_generator
from bimichi.scenes.labels import INNER, label_bags, label_pixels
from bimichi.scenes.scene import Scene
from bimichi.scenes.superpixels import superpixels

PIXEL = 10.0  # metres
KINDS = ("soil", "stubble", "crop", "meadow", "orchard", "forest", "roofs", "asphalt", "water")
SOIL, STUBBLE, CROP, MEADOW, ORCHARD, FOREST, ROOFS, ASPHALT, WATER = range(len(KINDS))
ON_FIELDS = (SOIL, STUBBLE, CROP, MEADOW, ORCHARD)


def fractal(rng: np.random.Generator, shape: tuple[int, int], exponent: float, coarsest: float = 1e9) -> Floats:
    """Return noise of mean 0 and deviation 1: smooth for a large exponent, without waves above `coarsest` pixels."""
    spectrum = np.fft.rfft2(rng.standard_normal(shape))
    wave = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :])
    spectrum *= np.maximum(wave, 1 / max(shape)) ** -exponent * (wave > 1 / coarsest)
    noise = np.fft.irfft2(spectrum, shape)
    return np.asarray((noise - noise.mean()) / max(float(noise.std()), 1e-12))


@dataclass(frozen=True)
class Terrain:
    """A landscape: `height` in metres, `kind` as a number of `KINDS`, `parcel` (fields), and water.

    `kind` is what the ground is without the flood. `depth` is that of the flood in metres, 0 where it is dry.
    """

    height: Floats
    kind: Ints
    parcel: Ints
    permanent: Flags
    depth: Floats

    @property
    def flooded(self) -> Flags:
        """The pixels with water that was not there before."""
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
    """Return steep hills in one corner, in metres above the plain."""
    down, across = np.mgrid[: shape[0], : shape[1]] / max(shape)
    corner = rng.integers(0, 2, 2) * (np.array(shape) / max(shape))
    near = 1.25 - 2.1 * np.hypot(down - corner[0], across - corner[1]) + 0.12 * fractal(rng, shape, 1.6)
    ridges = 1 - np.abs(fractal(rng, shape, 2.3, coarsest=max(shape) / 2.5))
    return np.asarray(np.clip(near, 0, 1) ** 1.3 * np.maximum(90 + 260 * ridges, 0))


def _lakes(rng: np.random.Generator, shape: tuple[int, int], hills: Floats) -> Flags:
    """Return two or three lakes in the plain, of round outlines."""
    places = np.argwhere(hills == 0)
    down, across = np.mgrid[: shape[0], : shape[1]]
    rough = fractal(rng, shape, 2.0, coarsest=max(shape) / 3)
    lakes = np.zeros(shape, dtype=np.bool_)
    for _ in range(rng.integers(2, 4)):
        row, column = places[rng.integers(len(places))] if len(places) else (0, 0)
        wide, tall = rng.uniform(0.025, 0.055, 2) * max(shape)
        lakes |= np.hypot((down - row) / tall, (across - column) / wide) < 1 + 0.28 * rough
    return np.asarray(lakes & (hills < 2))


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
    """Return what covers the ground: fields, forest on hills, villages, roads and a runway."""
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


def outlines(flooded: Flags) -> Flags:
    """Outline a flood as someone does by hand: closed over dry spots, too large, and without the smallest parts."""
    outlined = binary_closing(np.pad(flooded, 8), iterations=3)[8:-8, 8:-8]
    outlined = binary_opening(outlined, iterations=2)
    return np.asarray(binary_dilation(outlined, iterations=3))


RADAR_BANDS = ("VV", "VH")
OPTICAL_BANDS = ("B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B8A", "B9", "B10", "B11", "B12")

# Backscatter in decibels, VV and VH, of each kind of ground
BACKSCATTER = np.array(
    [
        (-12.5, -20.5),
        (-11.5, -18.5),
        (-10.0, -16.5),
        (-10.5, -17.5),
        (-8.5, -14.5),
        (-7.8, -13.2),
        (-1.5, -10.5),
        (-19.5, -26.0),
        (-20.5, -27.5),
    ]
)
# Reflectance, in units of 1/10000, of each kind of ground in the thirteen bands
REFLECTANCE = np.array(
    [
        (1450, 1250, 1450, 1800, 2050, 2250, 2400, 2450, 2650, 800, 20, 3100, 2550),
        (1400, 1200, 1450, 1700, 2050, 2450, 2650, 2700, 2900, 850, 20, 3000, 2200),
        (1300, 950, 1150, 850, 1500, 3100, 3700, 3650, 3950, 1100, 15, 2000, 1000),
        (1320, 1000, 1180, 1000, 1550, 2700, 3150, 3150, 3400, 1000, 15, 2250, 1250),
        (1300, 980, 1080, 1050, 1400, 2150, 2450, 2400, 2650, 850, 15, 1900, 1150),
        (1200, 800, 820, 620, 1000, 2000, 2400, 2350, 2600, 800, 12, 1350, 650),
        (1750, 1800, 2000, 2250, 2400, 2550, 2650, 2700, 2800, 900, 30, 2850, 2500),
        (1500, 1350, 1420, 1480, 1520, 1600, 1650, 1650, 1700, 550, 20, 1650, 1400),
        (1300, 980, 900, 700, 680, 480, 470, 380, 370, 130, 10, 180, 110),
    ],
    dtype=np.float64,
)
MUDDY = np.array((1450, 1250, 1350, 1400, 1350, 950, 980, 850, 820, 220, 12, 350, 220), dtype=np.float64)
CLOUD = np.array((7600, 7300, 7200, 7300, 7400, 7600, 7700, 7700, 7800, 4200, 900, 5200, 4000), dtype=np.float64)
COARSE = {0: 6, 4: 2, 5: 2, 6: 2, 8: 2, 9: 6, 10: 6, 11: 2, 12: 2}  # pixels of 60 and of 20 metres

NOISE_FLOOR = 10 ** (np.array([-26.0, -30.0]) / 10)
LOOKS = 4.4
INCIDENCE = np.deg2rad(41)  # of the radar's beam, from the vertical
SUN = np.deg2rad(24)  # above the horizon, as in winter


def radar(terrain: Terrain, rng: np.random.Generator) -> tuple[NDArray[np.float32], Flags]:
    """Return VV and VH in decibels, with speckle; and where hills keep the beam, which comes from the left, away."""
    shape = terrain.kind.shape
    decibels = BACKSCATTER[terrain.kind] + rng.normal(0, 1.3, terrain.parcel.max() + 1)[terrain.parcel][..., None]
    decibels += 0.9 * fractal(rng, shape, 0.8)[..., None]
    town = terrain.kind == ROOFS
    decibels[town] += rng.gamma(1.2, 4.0, (int(town.sum()), 1)) - 3  # walls reflect straight back, or not at all
    # Water is dark where it is smooth; wind roughens it, and what stands in shallow water reflects twice.
    wind = np.clip(1.5 * fractal(rng, shape, 1.9) - 1.1, 0, 1) * np.array([6.5, 1.5])[:, None, None]
    smooth = BACKSCATTER[WATER] + np.moveaxis(wind, 0, -1)
    shallow = np.clip(1 - terrain.depth / 0.35, 0, 1) * ~terrain.permanent
    share = np.where(np.isin(terrain.kind, (FOREST, ROOFS)), 0.0, 1 - 0.3 * shallow)[..., None]
    decibels = np.where((terrain.depth > 0)[..., None], share * smooth + (1 - share) * decibels, decibels)
    slope = np.gradient(terrain.height, PIXEL, axis=1)  # a slope towards the beam is bright, one away from it dark
    tilt = np.clip(INCIDENCE - np.arctan(slope), np.deg2rad(4), np.deg2rad(86))
    decibels += np.clip(10 * np.log10(np.tan(INCIDENCE) / np.tan(tilt)), -9, 9)[..., None]
    reach = terrain.height + np.arange(shape[1]) * PIXEL / np.tan(INCIDENCE)
    shadow = reach < np.maximum.accumulate(reach, axis=1) - 1.0
    power = np.where(shadow[..., None], 0.0, 10 ** (decibels / 10)) + NOISE_FLOOR
    speckle = rng.gamma(LOOKS * 0.6, 1 / (LOOKS * 0.6), power.shape)
    speckle = np.stack([gaussian_filter(speckle[..., k], 0.55) for k in range(2)], axis=-1)
    return (10 * np.log10(power * speckle)).astype(np.float32), shadow


def optical(
    terrain: Terrain, cloud: Floats, offset: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.float64], Flags]:
    """Return thirteen bands of reflectance under clouds of this opacity, and where it is shaded by hills or clouds."""
    shape = terrain.kind.shape
    bright = rng.normal(1, 0.11, terrain.parcel.max() + 1)[terrain.parcel] + 0.05 * fractal(rng, shape, 0.9)
    bright[terrain.kind == ROOFS] += rng.normal(0, 0.28, int((terrain.kind == ROOFS).sum()))
    bright[terrain.kind == ASPHALT] += 0.08
    bands = REFLECTANCE[terrain.kind] * np.maximum(bright, 0.4)[..., None]
    mud = np.clip(0.6 + 0.35 * fractal(rng, shape, 1.6), 0, 1)[..., None]
    water = mud * MUDDY + (1 - mud) * REFLECTANCE[WATER]
    cover = np.clip(0.55 + terrain.depth / 0.7, 0, 1) * (terrain.depth > 0)
    cover[terrain.kind == FOREST] *= 0.4  # crowns stand above the water
    cover = np.where(terrain.permanent, 1.0, cover)[..., None]
    bands = cover * water + (1 - cover) * bands
    lit, dark = _sunlight(terrain, cloud, offset)
    bands = bands * lit[..., None] + 120.0
    bands = (
        cloud[..., None] * CLOUD * (0.8 + 0.25 * fractal(rng, shape, 1.4)[..., None].clip(-1, 1))
        + (1 - cloud[..., None]) * bands
    )
    for k, size in COARSE.items():
        bands[..., k] = uniform_filter(bands[..., k], size)
    bands = np.stack([gaussian_filter(bands[..., k], 0.5) for k in range(bands.shape[2])], axis=-1)
    return bands + rng.normal(0, 18, bands.shape), dark


def _sunlight(terrain: Terrain, cloud: Floats, offset: tuple[int, int]) -> tuple[Floats, Flags]:
    """Return how much light from the upper left reaches the ground: slopes, shadows of hills and of clouds."""
    down, across = np.gradient(terrain.height, PIXEL)
    towards = (down + across) / 2**0.5
    lit = np.clip(1 + 0.8 * towards / np.tan(SUN) * 0.35, 0.45, 1.5)
    top = terrain.height.copy()
    for step in range(1, 48):
        drop = step * PIXEL * 2**0.5 * np.tan(SUN)
        if drop > np.ptp(terrain.height):
            break
        top[step:, step:] = np.maximum(top[step:, step:], terrain.height[:-step, :-step] - drop)
    behind = gaussian_filter((top > terrain.height + 2.0).astype(np.float64), 0.7)
    below = np.clip(shift(cloud, offset, order=1, mode="nearest"), 0, 1)
    lit *= (1 - 0.62 * behind) * (1 - 0.68 * below)
    return np.asarray(lit), np.asarray((behind > 0.5) | (below > 0.5))


def clouds(rng: np.random.Generator, shape: tuple[int, int], cover: float) -> Floats:
    """Draw clouds over about this share of a scene, as opacities in [0, 1]."""
    if cover == 0:
        return np.zeros(shape)
    thick = fractal(rng, shape, 1.8, coarsest=max(shape) / 1.6)
    edge = float(np.quantile(thick, 1 - cover))
    return np.asarray(np.clip(0.5 + (thick - edge) * 1.6, 0, 1))


CRS = "EPSG:32630"
SOURCES = ("low VV", "low VH", "MNDWI", "dry before")


@dataclass(frozen=True, eq=False)
class FloodImages:
    """The images of a drawn flood, before sources are made of them; all have the same pixels.

    Attributes
    ----------
    name : str
        Of the scene.
    radar : ndarray of float32, shape (height, width, 2)
        VV and VH in decibels; NaN outside the swath.
    optical : ndarray of int16, shape (height, width, 13)
        Reflectance times 10,000 in the bands of Sentinel-2; 0 outside the granule.
    occurrence : ndarray of uint8, shape (height, width)
        In how many per cent of earlier images there was water.
    flooded, permanent, cloud, shadow : ndarray of bool, shape (height, width)
        The truth: new water, water that is always there, clouds, and ground that hills hide from the radar or hills and
        clouds from the sun.
    outlines : ndarray of bool, shape (height, width)
        The flood as drawn by hand: too large, and without its smallest parts.
    crs : str
        The reference system.
    transform : tuple of six floats
        x = a column + b row + c, y = d column + e row + f, of the upper left corner of a pixel.
    """

    name: str
    radar: NDArray[np.float32]
    optical: NDArray[np.int16]
    occurrence: NDArray[np.uint8]
    flooded: Flags
    permanent: Flags
    cloud: Flags
    shadow: Flags
    outlines: Flags
    crs: str
    transform: tuple[float, ...]

    @property
    def valid(self) -> Flags:
        """The pixels where both satellites have data."""
        return np.asarray(~np.isnan(self.radar).any(axis=2) & (self.optical != 0).all(axis=2))

    @property
    def rgb(self) -> NDArray[np.uint8]:
        """The scene in natural colours."""
        shown = np.clip(self.optical[..., [3, 2, 1]] / 3200.0, 0, 1) ** 0.8
        return np.asarray(np.round(255 * shown), dtype=np.uint8)

    @property
    def labels(self) -> NDArray[np.int16]:
        """0 for dry, 1 for flooded, 2 for permanent water, and -1 where a satellite has no data."""
        classes = np.where(self.permanent, 2, self.flooded).astype(np.int16)
        return np.where(self.valid, classes, np.int16(-1))

    def scene(self, n_segments: int = 300) -> Scene:
        """Make sources and bags: see `flood`."""
        vv, vh = (self.radar[..., k].astype(np.float64) for k in range(2))
        green, infrared = (self.optical[..., k].astype(np.float64) for k in (2, 11))
        index = (green - infrared) / np.maximum(green + infrared, 1)
        planes = [-(vv + 15) / 10, -(vh + 21) / 11, 1.3 * index, 1 - self.occurrence / 50]
        sources = np.clip(np.stack(planes, axis=-1), -1, 1).astype(np.float32)
        sources[~self.valid] = np.nan
        segments = superpixels(sources, n_segments)
        return Scene(
            sources,
            self.name,
            SOURCES,
            segments=segments,
            labels=label_bags(segments, mask=self.outlines & self.valid, require_both=False),
            truth=self.flooded & self.valid,
            ignore=~self.valid,
            pixels=label_pixels(self.flooded.shape, mask=self.outlines, ignore=~self.valid, inner=INNER),
            rgb=self.rgb,
            crs=self.crs,
            transform=self.transform,
            licence=LICENCE,
            citation="A flood drawn by bimichi.datasets.flood",
        )

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write GeoTIFFs into the folders s1, s2, occurrence, outlines and truth of a folder; returns their paths.

        Names of bands, nodata, the reference system and the transform are in the files, so that ``bimichi train`` and
        programs for maps read them as they would read those of satellites. `truth` holds `labels`.
        """
        outlined = np.where(self.valid, self.outlines.astype(np.int16), np.int16(-1))
        files: dict[str, tuple[NDArray[Any], Sequence[str] | None, float | None]] = {
            "s1": (self.radar, RADAR_BANDS, float("nan")),
            "s2": (self.optical, OPTICAL_BANDS, 0),
            "occurrence": (self.occurrence, ("occurrence",), None),
            "outlines": (outlined, None, None),
            "truth": (self.labels, None, None),
        }
        paths = image_files(folder, files, f"{self.name}.tif")
        for path, (image, names, nodata) in zip(paths, files.values(), strict=True):
            write_geotiff(path, image, crs=self.crs, transform=self.transform, names=names, nodata=nodata)
        return paths


def flood(
    height: int = 384,
    width: int = 384,
    cloud_cover: float = 0.25,
    level: float = 0.9,
    random_state: int | np.random.Generator | None = 0,
    n_segments: int = 300,
) -> Scene:
    """Draw a flood in a plain, as a radar satellite and an optical one see it; the truth is exact.

    A river has flooded the fields around it. Water is dark for the radar (VV, VH), but speckled; wind roughens it, and
    roads, a runway and the shadows of hills are as dark. In the optical bands, clouds hide a part of the scene, and
    their shadows and those of hills look like water. The river and lakes hold water that is always there, which is no
    flood: a map of earlier years says where. Each satellite has no data along one rim of the scene.

    Parameters
    ----------
    height, width : int
        Size of the image, in pixels of 10 metres; at least 64 each.
    cloud_cover : float, default=0.25
        The share of the scene under clouds, from 0 to 0.9.
    level : float, default=0.9
        How high the water stands above the banks, in metres.
    random_state : int, numpy.random.Generator or None, default=0
        The same seed gives the same scene.
    n_segments : int, default=300
        About how many superpixels (bags); those that a hand-drawn outline of the flood touches are positive. Outlines
        are too large, and leave out the smallest parts.

    Returns
    -------
    Scene
        Its sources are high on what speaks for a flood: "low VV", "low VH", "MNDWI" (the modified normalised difference
        water index), and "dry before". They are NaN outside the data of either satellite, where `ignore` is True. It
        keeps its reference system and transform. `draw_flood` gives the images themselves, and writes GeoTIFFs.

    Examples
    --------
    >>> scene = flood(64, 80, random_state=1, n_segments=40)
    >>> scene.name, scene.sources.shape, scene.crs
    ('flood-1', (64, 80, 4), 'EPSG:32630')
    """
    return draw_flood(height, width, cloud_cover, level, random_state).scene(n_segments)


def draw_flood(
    height: int = 384, width: int = 384, cloud_cover: float = 0.25, level: float = 0.9, random_state: Seed = 0
) -> FloodImages:
    """Draw the images of a flood; see `flood`, whose scene is made of them.

    Examples
    --------
    >>> images = draw_flood(64, 80, random_state=1)
    >>> images.radar.shape, images.optical.shape, images.transform[:3]
    ((64, 80, 2), (64, 80, 13), (10.0, 0.0, 609990.0))
    """
    for name, value in (("height", height), ("width", width)):
        check_integer(value, name, minimum=64)
    check_number(cloud_cover, "cloud_cover", 0, 0.9)
    check_number(level, "level", 0, 5)
    rng, shape = random_generator(random_state), (height, width)
    terrain = draw_terrain(rng, shape, level)
    cloud = clouds(rng, shape, cloud_cover)
    backscatter, hidden = radar(terrain, rng)
    bands, shaded = optical(terrain, cloud, (max(2, height // 24), max(3, width // 18)), rng)
    occurrence = np.where(terrain.permanent, rng.uniform(88, 100, shape), rng.exponential(1.5, shape) - 1)
    down, across = np.mgrid[:height, :width] / np.array(shape)[:, None, None]
    first, second = rng.uniform(0.015, 0.035, 2)  # of the slanted rims without data, on opposite sides
    swath, granule = across > first + 0.06 * (1 - down), across < 1 - second - 0.05 * down
    backscatter[~swath] = np.nan
    counts = np.where(granule[..., None], np.clip(bands, 1, 20000), 0)
    return FloodImages(
        scene_name("flood", random_state),
        backscatter,
        np.asarray(np.round(counts), dtype=np.int16),
        np.asarray(np.clip(occurrence, 0, 100), dtype=np.uint8),
        terrain.flooded,
        terrain.permanent,
        cloud > 0.5,
        hidden | shaded,
        outlines(terrain.flooded),
        CRS,
        (PIXEL, 0.0, 600_000.0 + 9_990.0, 0.0, -PIXEL, 4_200_000.0),
    )
