"""Annotation files of every registered format, read into one shape; docs/extending.md shows how to add a format."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.bbgt import BBGT
from bimichi.io.annotations.coco import COCO
from bimichi.io.annotations.csv_boxes import CSV
from bimichi.io.annotations.cvat import CVAT
from bimichi.io.annotations.geojson import GEOJSON
from bimichi.io.annotations.label_studio import LABEL_STUDIO
from bimichi.io.annotations.labelme import LABELME
from bimichi.io.annotations.mask import MASK
from bimichi.io.annotations.vector import VECTOR
from bimichi.io.annotations.voc import VOC
from bimichi.io.annotations.yolo import YOLO
from bimichi.io.images import check_file, reading
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, ImageAnnotations
from bimichi.scenes.labels import Placement, in_pixels
from bimichi.sources.bands import first_few

__all__ = ["ANNOTATION_FORMATS", "read_annotations", "read_boxes", "register_annotation_format"]

_formats = {
    known.name: known for known in (MASK, BBGT, COCO, VOC, YOLO, LABELME, CVAT, LABEL_STUDIO, GEOJSON, VECTOR, CSV)
}

ANNOTATION_FORMATS: Mapping[str, AnnotationFormat] = MappingProxyType(_formats)
"""All formats by name, in the order in which they are tried."""

START = 4096  # bytes of a file by which formats recognise it
TOLD = 3  # sentences about files that a folder passes on


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
        raise InvalidInputError(
            f"There is an annotation format {new.name!r} already; choose another name.", code="format-taken"
        )
    present = dict(_formats)
    _formats.clear()
    _formats.update({new.name: new} | present)
    return new


def read_annotations(path: str | PathLike[str]) -> AnnotationTable:
    """Read an annotation file, whose name and content decide its format, or a folder of such files.

    Parameters
    ----------
    path : str or path
        The file or folder. In a folder, all files of one format are read; a file that does not name its image is
        about the image of its own name. Images are masks unless there are files of another format.

    Returns
    -------
    dict of str or None to ImageAnnotations
        By image, as the file names it; under None if the file is about one image and does not name it.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or no format recognises it.
    """
    with reading(path, "it is not a path to a file"):
        file = Path(path)
        is_folder = file.is_dir()
    if is_folder:
        return _read_folder(file)
    known = format_of(file)
    if known is None:
        raise InvalidInputError(
            f"{file} is not an annotation file of a known format. {_known()}", code="annotations-format"
        )
    found = known.read(file)
    return found if isinstance(found, AnnotationTable) else AnnotationTable(found)


def format_of(path: Path) -> AnnotationFormat | None:
    """Return the format that recognises a file, None if there is none."""
    with reading(path, "it cannot be opened"), check_file(path).open("rb") as opened:
        start = opened.read(START)
    return next((known for known in _formats.values() if known.recognises(path, start)), None)


def annotation_files(folder: Path) -> tuple[AnnotationFormat, list[Path]]:
    """Return the format of the annotation files in a folder, and the files."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    found: dict[str, list[Path]] = {}
    for file in files:
        known = format_of(file)
        if known is not None:
            found.setdefault(known.name, []).append(file)
    if len(found) > 1:
        found.pop("mask", None)  # the images themselves
    if not found:
        deeper = first_few(sorted(place.name for place in folder.iterdir() if place.is_dir()))
        if deeper and not files:
            raise InvalidInputError(
                f"{folder} has no annotation file, but the folders {deeper}. Name one of them, or a quoted pattern "
                "with one file per scene (--labels).",
                code="annotations-folders",
            )
        raise InvalidInputError(
            f"{folder} has no annotation file of a known format. {_known()}", code="annotations-format"
        )
    if len(found) > 1:
        shown = ", ".join(f"{name} ({some[0].name})" for name, some in found.items())
        raise InvalidInputError(
            f"{folder} has annotation files of several formats: {shown}. Name one file instead.",
            code="annotations-formats",
        )
    name, some = next(iter(found.items()))
    return _formats[name], some


def _read_folder(folder: Path) -> AnnotationTable:
    known, files = annotation_files(folder)
    table: dict[str | None, ImageAnnotations] = {}
    origin: dict[str | None, Path] = {}
    about: dict[str, None] = {}
    for file in files:
        found: Annotations = known.read(file)
        about[getattr(found, "about", "")] = None
        for image, one in found.items():
            name = file.stem if image is None else image
            if name in table:
                raise InvalidInputError(
                    f"{origin[name]} and {file} are both about the image {name!r}; keep one of them in the folder.",
                    code="annotations-twice",
                )
            table[name], origin[name] = one, file
    return AnnotationTable(table, " ".join([text for text in about if text][:TOLD]))


def _known() -> str:
    return f"Known formats: {'; '.join(known.description for known in _formats.values())}."


def read_boxes(
    path: str | PathLike[str],
    image: str | None = None,
    label: str | None = None,
    placement: Placement | None = None,
) -> Floats:
    """Read the boxes of one image from an annotation file, such as CSV with the columns x, y, w, h, image and label.

    Parameters
    ----------
    path : str or path
        The file or folder, of any format in `ANNOTATION_FORMATS` that holds boxes. Of polygons and other shapes, the
        bounding boxes are returned.
    image : str, optional
        Read only the boxes of this image, as the file names it. Needed if the file names several images.
    label : str, optional
        Read only the boxes of this class.
    placement : Placement, optional
        Size and place of the image, for formats that give fractions of it or coordinates of a map.

    Returns
    -------
    boxes : ndarray of float64, shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels, as `label_bags` takes them; empty if no box has the label.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, holds no boxes, or does not have this image or any label.
    """
    found = read_annotations(path)
    if any(one.mask is not None for one in found.values()):
        raise InvalidInputError(
            f"{path!s} is a mask and holds no boxes; pass it as labels (--labels) instead.", code="mask-without-boxes"
        )
    if label is not None and {own for one in found.values() for own in one.labels} == {None}:
        why = f"{path!s} gives no labels, so none of its boxes is {label!r}"
        raise InvalidInputError(f"{why}; pass no label (--target).", code="label-unused")
    table = {name: in_pixels(one, placement, str(path)).boxes_of(label) for name, one in found.items()}
    if None in table:
        if image is not None:
            raise InvalidInputError(
                f"{path!s} does not name images, so there is no image {image!r}; pass image=None.", code="image-unnamed"
            )
        return table[None]
    if (image is None and len(table) > 1) or (image is not None and image not in table):
        shown = first_few(sorted(map(repr, table)))
        raise InvalidInputError(
            f"{path!s} has boxes of the images {shown}; pass one of them as image, got {image!r}.",
            code="image-unnamed",
            value=image,
        )
    return next(iter(table.values()), np.empty((0, 4))) if image is None else table[image]
