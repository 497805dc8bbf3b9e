"""Annotation formats, one per module, and the one shape that files of every format are read into."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.shapes import Shape

__all__ = ["AnnotationFormat", "AnnotationTable", "Annotations", "ImageAnnotations", "boxes_array", "image_annotations"]

Units = Literal["pixels", "fractions", "map"]


@dataclass(frozen=True, eq=False)
class ImageAnnotations:
    """Where the targets of one image are.

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
        kept = [one for one, wanted in zip(self.objects, which, strict=True) if wanted]
        return replace(image_annotations(kept, self.units, self.crs), mask=self.mask)

    @property
    def objects(self) -> "list[Found]":
        """Its objects, one by one."""
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
        """How many objects that are not ignored have each label."""
        return Counter(label for label, out in zip(self.labels, self.is_ignored, strict=True) if not out)

    @property
    def unknown(self) -> Flags | None:
        """Where the mask is below 0 or NaN, so that the class is unknown; None if there is no mask."""
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

    def __init__(self, found: Annotations, about: str = "") -> None:
        super().__init__(found)
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
    shapes = [None if isinstance(one.place, np.ndarray) else one.place for one in objects]
    boxes = [one.place if isinstance(one.place, np.ndarray) else one.place.box for one in objects]
    return ImageAnnotations(
        boxes_array(boxes),
        [one.label for one in objects],
        [one.ignored for one in objects],
        shapes=shapes if any(shape is not None for shape in shapes) else (),
        units=units,
        crs=crs,
    )


def boxes_array(boxes: Sequence[Sequence[float] | Floats]) -> Floats:
    """Return boxes as an array of shape (n_boxes, 4), also if there are none."""
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)
