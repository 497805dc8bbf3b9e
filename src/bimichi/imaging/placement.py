"""Where an image lies on a map, and coordinates of annotations turned into its pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bimichi._extras import import_optional
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import check_shape
from bimichi.imaging.formats import ImageAnnotations
from bimichi.imaging.regions import TOUCH

LONGITUDE_LATITUDE = ("OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:OGC::CRS84")
"""Names for EPSG:4326 in the order of GeoJSON, in which rasterio takes it anyway."""


@dataclass(frozen=True)
class Placement:
    """The size of an image and, if it is georeferenced, its place on a map.

    Parameters
    ----------
    shape : (int, int)
        Height and width in pixels.
    transform : sequence of at least six numbers, optional
        (a, b, c, d, e, f), such as rasterio's: the map has x = a column + b row + c, y = d column + e row + f, where
        (0, 0) is the upper left corner of the upper left pixel.
    crs : optional
        The reference system of the map: anything that rasterio takes, such as "EPSG:32630".
    """

    shape: tuple[int, int]
    transform: Sequence[float] | None = None
    crs: Any = None

    def __post_init__(self) -> None:
        check_shape(self.shape)
        if self.transform is not None and (len(self.transform) < 6 or abs(self._determinant) == 0):
            raise InvalidInputError(f"transform must be six numbers that can be inverted, got {self.transform!r}.")

    @property
    def _determinant(self) -> float:
        a, b, _, d, e, _ = list(self.transform or ())[:6]
        return float(a * e - b * d)

    def to_pixels(self, points: Floats) -> Floats:
        """Return points (x, y) of the map as pixels (column, row)."""
        a, b, c, d, e, f = map(float, list(self.transform or ())[:6])
        x, y = points[:, 0] - c, points[:, 1] - f
        return np.stack([e * x - b * y, a * y - d * x], axis=1) / self._determinant

    def to_map(self, points: Floats) -> Floats:
        """Return pixels (column, row) as points (x, y) of the map."""
        a, b, c, d, e, f = map(float, list(self.transform or ())[:6])
        x, y = points.T
        return np.stack([a * x + b * y + c, d * x + e * y + f], axis=1)


def in_pixels(found: ImageAnnotations, placement: Placement | None, where: str = "annotations") -> ImageAnnotations:
    """Return annotations in pixels of an image.

    Parameters
    ----------
    found : ImageAnnotations
        In any units. Objects in map coordinates that lie outside the image are left out; a map shows more than it.
    placement : Placement or None
        Of the image; fractions need its shape, map coordinates its transform and CRS.
    where : str, optional
        The file, for errors.

    Returns
    -------
    ImageAnnotations
    """
    if found.units == "pixels":
        return found
    if placement is None:
        raise InvalidInputError(f"{where} gives {found.units} instead of pixels; pass the placement of the image.")
    height, width = placement.shape
    function: Callable[[Floats], Floats]
    if found.units == "fractions":
        size = np.array([width, height], dtype=np.float64)
        shapes = [None if shape is None else shape.mapped(lambda points: points * size) for shape in found.outlines]
        boxes = found.boxes * np.tile(size, 2)
        return replace(found, boxes=boxes, shapes=shapes if found.shapes else (), units="pixels")
    function = _from_map(found.crs, placement, where)
    moved = [shape.mapped(function) for shape in found.outlines if shape is not None]
    boxes = np.array([shape.box for shape in moved]).reshape(-1, 4)
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    inside = ((low < np.array([width, height]) - TOUCH) & (high > TOUCH)).all(axis=1)
    kept = np.flatnonzero(inside).tolist()
    return ImageAnnotations(
        boxes[inside],
        [found.labels[k] for k in kept],
        [bool(found.is_ignored[k]) for k in kept],
        shapes=[moved[k] for k in kept],
    )


def _from_map(crs: str | None, placement: Placement, where: str) -> Callable[[Floats], Floats]:
    """Return the function from coordinates of a map to pixels."""
    if placement.transform is None or placement.crs is None:
        raise InvalidInputError(
            f"{where} gives coordinates of a map ({crs or 'unknown'}), but the image has no "
            f"{'coordinate reference system' if placement.transform is not None else 'georeference'}. Use a GeoTIFF "
            'that has one; for coordinates in pixels, a GeoJSON file says so by "crs": null.'
        )
    systems = import_optional("rasterio.crs").CRS
    errors = import_optional("rasterio.errors")
    try:
        own = systems.from_user_input(placement.crs)
        other = systems.from_user_input("EPSG:4326" if crs in LONGITUDE_LATITUDE else crs)
    except (errors.RasterioError, ValueError) as error:
        raise InvalidInputError(f"{where}: the coordinate reference system {crs!r} is not known ({error}).") from error
    if own == other:
        return placement.to_pixels
    warp = import_optional("rasterio.warp")

    def moved(points: Floats) -> Floats:
        try:
            x, y = warp.transform(other, own, points[:, 0], points[:, 1])
        except Exception:  # PROJ's errors have no public base; what has no place in this system is not in the image
            return np.full_like(points, np.nan)
        pixels = placement.to_pixels(np.stack([x, y], axis=1))
        return np.where(np.isfinite(pixels), pixels, np.nan)

    return moved
