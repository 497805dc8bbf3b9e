"""From annotations to pixels of an image: where it lies on a map, and which pixels are targets or unknown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bimichi._extras import import_optional
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import ImageAnnotations, image_annotations
from bimichi.scenes.masks import TOUCH, box_pixels, is_outside, outside_error, shown_box
from bimichi.scenes.shapes import Disc, Polygons, Shape, corners_of
from bimichi.sources.bands import check_shape

DIGITS = 6
"""Of pixels that were map coordinates, whose rounding they should not show."""

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
            raise InvalidInputError(
                f"transform must be six numbers that can be inverted, got {self.transform!r}.",
                code="transform",
                argument="transform",
                value=self.transform,
            )

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
        raise InvalidInputError(
            f"{where} gives {found.units} instead of pixels; pass the placement of the image.", code="annotations-units"
        )
    height, width = placement.shape
    if found.units == "fractions":
        size = np.array([width, height], dtype=np.float64)
        shapes = [None if shape is None else shape.mapped(lambda points: points * size) for shape in found.outlines]
        boxes = found.boxes * np.tile(size, 2)
        return replace(found, boxes=boxes, shapes=shapes if found.shapes else (), units="pixels")
    function = _from_map(found.crs, placement, where)
    kept = []
    for one in found.objects:
        shape = Polygons(((corners_of(one.place),),), is_box=True) if isinstance(one.place, np.ndarray) else one.place
        moved = shape.mapped(lambda points: np.round(function(points), DIGITS))
        low, size = np.split(moved.box, 2)
        if ((low < np.array([width, height]) - TOUCH) & (low + size > TOUCH)).all():
            is_box = isinstance(moved, Polygons) and moved.is_box and moved.upright
            kept.append(replace(one, place=moved.box if is_box else moved))
    return image_annotations(kept)


def _from_map(crs: str | None, placement: Placement, where: str) -> Callable[[Floats], Floats]:
    """Return the function from coordinates of a map to pixels."""
    if placement.transform is None or placement.crs is None:
        raise InvalidInputError(
            f"{where} gives map coordinates ({crs or 'unknown'}), but the image has no "
            f"{'coordinate reference system' if placement.transform is not None else 'georeference'}. Use a GeoTIFF "
            'that has one; for coordinates in pixels, a GeoJSON file says so by "crs": null.',
            code="annotations-units",
        )
    systems = import_optional("rasterio.crs").CRS
    errors = import_optional("rasterio.errors")
    try:
        own = systems.from_user_input(placement.crs)
        other = systems.from_user_input("EPSG:4326" if crs in LONGITUDE_LATITUDE else crs)
    except (errors.RasterioError, ValueError) as error:
        raise InvalidInputError(
            f"{where}: the coordinate reference system {crs!r} is not known ({error}).", code="crs-unknown"
        ) from error
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


class Regions(NamedTuple):
    """Masks of the targets of an image, and of what is neither target nor background."""

    targets: Flags
    ignored: Flags


def rasterise(
    found: ImageAnnotations,
    shape: tuple[int, int],
    target: str | None = None,
    point_radius: float = 0.0,
    count_ignored: bool = False,
) -> Regions:
    """Mark the pixels of targets and of ignored objects.

    Parameters
    ----------
    found : ImageAnnotations
        In pixels; `in_pixels` converts other units.
    shape : (int, int)
        Height and width of the image.
    target : str, optional
        The class of targets: a label, or a value of the mask; by default all classes.
    point_radius : float, default=0
        The radius in pixels of points that have none; 0 is the pixel that holds the point.
    count_ignored : bool, default=False
        Whether objects that a file marks to be ignored (crowds, difficult ones) count as any other.

    Returns
    -------
    Regions
        A pixel belongs to a box, polygon or disc if its square overlaps it, as in `box_mask`. Pixels of targets are
        not ignored.

    Raises
    ------
    InvalidInputError
        If an object lies outside the image, or the mask has another size.
    """
    height, width = check_shape(shape)
    if found.units != "pixels":
        raise InvalidInputError(
            f"Annotations are in {found.units}; convert them with in_pixels first.", code="annotations-units"
        )
    targets, ignored = np.zeros((height, width), np.bool_), np.zeros((height, width), np.bool_)
    out = np.zeros(len(found.boxes), np.bool_) if count_ignored else found.is_ignored
    for k, one in enumerate(found.objects):
        if out[k]:
            _paint(ignored, one.place, point_radius, k, strict=False)
        elif target in (None, one.label):
            _paint(targets, one.place, point_radius, k)
    mask, unknown = found.mask_of(target), found.unknown
    if mask is not None and unknown is not None:
        if mask.shape != targets.shape:
            raise InvalidInputError(
                f"The mask has {mask.shape[1]} x {mask.shape[0]} pixels, but the image {width} x {height}.",
                code="mask-size",
            )
        targets |= mask
        ignored |= unknown
    return Regions(targets, ignored & ~targets)


def _paint(mask: Flags, place: Floats | Shape, radius: float, k: int, strict: bool = True) -> None:
    """Mark the pixels of one object; outside the image, it is an error if `strict`."""
    if isinstance(place, Disc) and not place.radius:
        place = Disc(place.x, place.y, radius)
    box = place if isinstance(place, np.ndarray) else place.box
    if is_outside(box, mask.shape):
        if strict:
            raise outside_error(f"Object {k + 1}, in the box {shown_box(box)},", mask.shape)
    elif isinstance(place, np.ndarray):
        mask[box_pixels(box, mask.shape)] = True
    else:
        place.paint(mask)
