"""`ImageAnnotations`: what was drawn on an image, as files of every format are read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.grid import Placement
from bimichi.scenes.shapes import TOUCH, Polygons, Shape, corners_of

Units = Literal["pixels", "fractions", "map"]


@dataclass(frozen=True, eq=False)
class ImageAnnotations:
    """What was drawn on one image.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n_objects, 4)
        Boxes (x, y, width, height): the objects, or the bounding boxes of those that `shapes` outlines.
    labels : sequence of str or None
        The class of each object; None where the file gives none.
    ignored : sequence of bool, optional
        Whether each object is neither target nor background. By default none is ignored.
    mask : ndarray of shape (height, width), optional
        The class of each pixel as a number: 0 for background, below 0 or NaN for unknown.
    shapes : sequence of Polygons, Disc, Runs or None, optional
        The outline of each object; None where it is the box. By default all are boxes.
    units : {"pixels", "fractions", "map"}, default="pixels"
        What coordinates are: pixels of the image, fractions of its width and height, or those of a map.
        `bimichi.scenes.labels.in_pixels` converts them.
    crs : str, optional
        The reference system of map coordinates, such as "EPSG:32630".
    """

    boxes: Floats
    labels: Sequence[str | None]
    ignored: Sequence[bool] = ()
    mask: NDArray[Any] | None = None
    shapes: Sequence[Shape | None] = ()
    units: Units = "pixels"
    crs: str | None = None

    def boxes_of(self, label: str | None) -> Floats:
        """Return the boxes of this class, or of all for None, without the ignored ones."""
        return self.boxes[self.selected(label)]

    def selected(self, label: str | None) -> Flags:
        """Return which objects have this class, or any for None, and are not ignored."""
        wanted = np.array([label in (None, own) for own in self.labels], dtype=np.bool_)
        return np.asarray(wanted & ~self.is_ignored)

    def taken(self, which: Flags) -> "ImageAnnotations":
        """Return some of the objects; the mask stays."""
        kept = [drawn for drawn, wanted in zip(self.objects, which, strict=True) if wanted]
        return replace(image_annotations(kept, self.units, self.crs), mask=self.mask)

    @property
    def objects(self) -> "list[Found]":
        """Its objects, each with its class."""
        rows = zip(self.boxes, self.outlines, self.labels, self.is_ignored.tolist(), strict=True)
        return [Found(box if shape is None else shape, label, out) for box, shape, label, out in rows]

    @property
    def is_ignored(self) -> Flags:
        """`ignored` as an array, one flag per object."""
        return np.array(self.ignored or np.zeros(len(self.boxes)), dtype=np.bool_)

    @property
    def outlines(self) -> list[Shape | None]:
        """`shapes` as a list, one entry per object."""
        return list(self.shapes) or [None] * len(self.boxes)

    @property
    def counts(self) -> Counter[str | None]:
        """The number of objects of each label, without the ignored ones."""
        return Counter(label for label, out in zip(self.labels, self.is_ignored, strict=True) if not out)

    @property
    def unknown(self) -> Flags | None:
        """The pixels whose class is unknown, as the mask is below 0 or NaN there; None if there is no mask."""
        return None if self.mask is None else np.asarray(~(self.mask >= 0))

    def mask_of(self, label: str | None) -> Flags | None:
        """Return where the mask has this class, a number, or any class for None; None if there is no mask."""
        if self.mask is None:
            return None
        if label is None:
            return np.asarray(self.mask > 0)
        try:
            return np.asarray(self.mask == float(label))
        except ValueError as error:
            raise InvalidInputError(
                f"target must be a value of the mask, a number, got {label!r}.",
                code="target-number",
                argument="target",
                value=label,
            ) from error


Annotations = Mapping[str | None, ImageAnnotations]
"""Annotations by image, as the file names it; under None if the file is about one image and does not name it."""


class AnnotationTable(dict[str | None, ImageAnnotations]):
    """`Annotations` with a sentence `about` what a reader had to conclude, such as the columns of a CSV file."""

    def __init__(self, annotations: Annotations, about: str = "") -> None:
        super().__init__(annotations)
        self.about = about


@dataclass(frozen=True)
class AnnotationFormat:
    """A kind of annotation file.

    Parameters
    ----------
    name : str
        A short name, such as "csv".
    description : str
        One line for the documentation and for errors, without a full stop.
    recognises : callable
        ``recognises(path, start)`` decides by the name or the first bytes of a file whether it is of this kind.
    read : callable
        ``read(path)`` returns `ImageAnnotations` by image, or raises `InvalidInputError` naming file, place, remedy.
    """

    name: str
    description: str
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Annotations]


@dataclass(frozen=True, eq=False)
class Found:
    """One object of a file, on the way to `ImageAnnotations`: a box or an outline."""

    place: Floats | Shape
    label: str | None = None
    ignored: bool = False


def image_annotations(objects: Sequence[Found], units: Units = "pixels", crs: str | None = None) -> ImageAnnotations:
    """Collect the objects of one image."""
    places = [drawn.place for drawn in objects]
    shapes = [None if isinstance(place, np.ndarray) else place for place in places]
    boxes = [place if isinstance(place, np.ndarray) else place.box for place in places]
    return ImageAnnotations(
        boxes_array(boxes),
        [drawn.label for drawn in objects],
        [drawn.ignored for drawn in objects],
        shapes=shapes if any(shape is not None for shape in shapes) else (),
        units=units,
        crs=crs,
    )


def boxes_array(boxes: Sequence[Sequence[float] | Floats]) -> Floats:
    """Return boxes as an array of shape (n_boxes, 4), also if there are none."""
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


DIGITS = 6
"""Decimals of pixels that were map coordinates, whose rounding they should not show."""

LONGITUDE_LATITUDE = ("OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:OGC::CRS84")
"""Names for EPSG:4326 in the order of GeoJSON, in which rasterio takes it anyway."""


def in_pixels(drawn: ImageAnnotations, placement: Placement | None, where: str = "annotations") -> ImageAnnotations:
    """Return annotations in pixels of an image.

    Parameters
    ----------
    drawn : ImageAnnotations
        In any units. Objects in map coordinates that lie outside the image are left out; a map shows more than it.
    placement : Placement or None
        Of the image; fractions need its shape, map coordinates its transform and CRS.
    where : str, optional
        The file, for errors.

    Returns
    -------
    ImageAnnotations
    """
    if drawn.units == "pixels":
        return drawn
    if placement is None:
        raise InvalidInputError(
            f"{where} gives {drawn.units} instead of pixels; pass the placement of the image.", code="annotations-units"
        )
    height, width = placement.shape
    if drawn.units == "fractions":
        size = np.array([width, height], dtype=np.float64)
        shapes = [None if shape is None else shape.mapped(lambda points: points * size) for shape in drawn.outlines]
        boxes = drawn.boxes * np.tile(size, 2)
        return replace(drawn, boxes=boxes, shapes=shapes if drawn.shapes else (), units="pixels")
    function = _from_map(drawn.crs, placement, where)
    kept = []
    for item in drawn.objects:
        shape = (
            Polygons(((corners_of(item.place),),), is_box=True) if isinstance(item.place, np.ndarray) else item.place
        )
        moved = shape.mapped(lambda points: np.round(function(points), DIGITS))
        low, size = np.split(moved.box, 2)
        if ((low < np.array([width, height]) - TOUCH) & (low + size > TOUCH)).all():
            is_box = isinstance(moved, Polygons) and moved.is_box and moved.upright
            kept.append(replace(item, place=moved.box if is_box else moved))
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
