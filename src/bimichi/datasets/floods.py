"""`flood`: a drawn flood as a radar and an optical satellite see it, georeferenced, with exact truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags
from bimichi.datasets.drawing import LICENCE, image_files, scene_name
from bimichi.datasets.terrain import OPTICAL_BANDS, PIXEL, RADAR_BANDS, clouds, draw_terrain, optical, outlines, radar
from bimichi.imaging import label_bags, label_pixels, superpixels
from bimichi.imaging.writing import write_geotiff
from bimichi.learning.scene import Scene
from bimichi.measures.sampling import Seed, random_generator

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
        """Where both satellites have data."""
        return np.asarray(~np.isnan(self.radar).any(axis=2) & (self.optical != 0).all(axis=2))

    @property
    def rgb(self) -> NDArray[np.uint8]:
        """The scene in natural colours."""
        shown = np.clip(self.optical[..., [3, 2, 1]] / 3200.0, 0, 1) ** 0.8
        return np.asarray(np.round(255 * shown), dtype=np.uint8)

    @property
    def labels(self) -> NDArray[np.int16]:
        """0 for dry, 1 for flooded, 2 for permanent water, and -1 where a satellite has no data."""
        found = np.where(self.permanent, 2, self.flooded).astype(np.int16)
        return np.where(self.valid, found, np.int16(-1))

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
            pixels=label_pixels(self.flooded.shape, mask=self.outlines, ignore=~self.valid),
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
    for what, value in (("height", height), ("width", width)):
        check_integer(value, what, minimum=64)
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
