"""Annotation files of every registered format, read into one shape.

A format of your own is one `AnnotationFormat` and one call of `register_annotation_format`; see docs/extending.md.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.formats import AnnotationFormat, Annotations
from bimichi.imaging.formats.bbgt import BBGT
from bimichi.imaging.formats.csv_boxes import CSV
from bimichi.imaging.formats.label_mask import MASK

_formats = {known.name: known for known in (MASK, BBGT, CSV)}

ANNOTATION_FORMATS: Mapping[str, AnnotationFormat] = MappingProxyType(_formats)
"""All formats by name, in the order in which they are tried."""

START = 4096  # bytes of a file by which formats recognise it


def register_annotation_format(new: AnnotationFormat) -> AnnotationFormat:
    """Make a format known to `read_annotations`, and so to ``--boxes`` and ``--labels`` of the command line.

    Parameters
    ----------
    new : AnnotationFormat
        The format. It is tried before the present ones, so that it may recognise files more narrowly than they do.

    Returns
    -------
    AnnotationFormat
        `new` itself.

    Raises
    ------
    InvalidInputError
        If its name is taken.
    """
    if new.name in _formats:
        raise InvalidInputError(f"There is an annotation format {new.name!r} already; choose another name.")
    present = dict(_formats)
    _formats.clear()
    _formats.update({new.name: new} | present)
    return new


def read_annotations(path: str | PathLike[str]) -> Annotations:
    """Read an annotation file, whose name and content decide its format.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict of str or None to ImageAnnotations
        By image, as the file names it; under None if the file is about one image and does not name it.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or no format recognises it.
    """
    try:
        file = Path(path)
        with file.open("rb") as opened:
            start = opened.read(START)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInputError(f"Cannot read {path!s}: {getattr(error, 'strerror', None) or error}.") from error
    for known in _formats.values():
        if known.recognises(file, start):
            return known.read(file)
    raise InvalidInputError(
        f"{file} is not an annotation file of a known format. Known are: "
        f"{'; '.join(known.description for known in _formats.values())}."
    )


def read_boxes(path: str | PathLike[str], image: str | None = None, label: str | None = None) -> Floats:
    """Read the boxes of one image from an annotation file, such as CSV with the columns x, y, w, h, image and label.

    Parameters
    ----------
    path : str or path
        The file, of any format in `ANNOTATION_FORMATS` that holds boxes.
    image : str, optional
        Read only the boxes of this image, as the file names it. Needed if the file names several images.
    label : str, optional
        Read only the boxes of this class.

    Returns
    -------
    boxes : ndarray of float64, shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels, as `label_bags` takes them; empty if no box has the label.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, holds no boxes, or does not have this image or any label.
    """
    table = boxes_by_image(path, label)
    if None in table:
        if image is not None:
            raise InvalidInputError(f"{path!s} does not name images, so there is no image {image!r}; pass image=None.")
        return table[None]
    if (image is None and len(table) > 1) or (image is not None and image not in table):
        shown = first_few(sorted(map(repr, table)))
        raise InvalidInputError(f"{path!s} has boxes of the images {shown}; pass one of them as image, got {image!r}.")
    return next(iter(table.values()), np.empty((0, 4))) if image is None else table[image]


def boxes_by_image(path: str | PathLike[str], label: str | None = None) -> dict[str | None, Floats]:
    """Read the boxes of one class, or all for None, of all images in a file; see `read_annotations`."""
    found = read_annotations(path)
    if any(one.mask is not None for one in found.values()):
        raise InvalidInputError(f"{path!s} is a mask and holds no boxes; pass it as labels (--labels) instead.")
    if label is not None and {own for one in found.values() for own in one.labels} == {None}:
        raise InvalidInputError(
            f"{path!s} gives no labels, so none of its boxes is {label!r}; pass no label (--target)."
        )
    return {image: one.boxes_of(label) for image, one in found.items()}
