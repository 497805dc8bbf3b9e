"""What a radar satellite and an optical one make of a flooded plain: bands like those of Sentinel-1 and Sentinel-2."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, shift, uniform_filter

from bimichi._types import Flags, Floats
from bimichi.datasets.terrain import ASPHALT, FOREST, PIXEL, ROOFS, WATER, Terrain, fractal

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
    """How much light reaches the ground, from the upper left: slopes, shadows of hills, and shadows of clouds."""
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
