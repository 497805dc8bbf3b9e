"""Annotation files of every registered format, read into one shape; docs/extending.md shows how to add a format."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.images import check_file, is_image, reading
from bimichi.registry import Registry
from bimichi.scenes.annotations import (
    AnnotationFormat,
    Annotations,
    AnnotationTable,
    ImageAnnotations,
    boxes_array,
    in_pixels,
)
from bimichi.scenes.grid import Placement
from bimichi.sources.bands import first_few

__all__ = ["ANNOTATION_FORMATS", "read_annotations", "read_boxes", "register_annotation_format"]


def _check(name: str, loaded: Any) -> AnnotationFormat:
    if not isinstance(loaded, AnnotationFormat) or loaded.name != name:
        raise InvalidInputError(
            f"{name} must be an AnnotationFormat of this name, got {loaded!r}.",
            code="format-kind",
            argument=name,
            value=loaded,
        )
    return loaded


HERE = "bimichi.io.annotations"
ANNOTATION_FORMATS = Registry(
    "bimichi.annotation_formats",
    {
        "mask": f"{HERE}:MASK",
        "bbgt": f"{HERE}.text:BBGT",
        "coco": f"{HERE}.json:COCO",
        "voc": f"{HERE}.xml:VOC",
        "yolo": f"{HERE}.text:YOLO",
        "labelme": f"{HERE}.json:LABELME",
        "cvat": f"{HERE}.xml:CVAT",
        "label-studio": f"{HERE}.json:LABEL_STUDIO",
        "geojson": f"{HERE}.vector:GEOJSON",
        "vector": f"{HERE}.vector:VECTOR",
        "csv": f"{HERE}.text:CSV",
    },
    _check,
    newest_first=True,
)
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
    if new.name in ANNOTATION_FORMATS:
        raise InvalidInputError(
            f"There is an annotation format {new.name!r} already; choose another name.", code="format-taken"
        )
    return ANNOTATION_FORMATS.register(new.name, new)


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
    file_format = format_of(file)
    if file_format is None:
        raise InvalidInputError(
            f"{file} is not an annotation file of a known format. {_known_formats()}", code="annotations-format"
        )
    table = file_format.read(file)
    return table if isinstance(table, AnnotationTable) else AnnotationTable(table)


def format_of(path: Path) -> AnnotationFormat | None:
    """Return the format that recognises a file, None if there is none."""
    with reading(path, "it cannot be opened"), check_file(path).open("rb") as opened:
        start = opened.read(START)
    return next((entry for entry in ANNOTATION_FORMATS.values() if entry.recognises(path, start)), None)


def annotation_files(folder: Path) -> tuple[AnnotationFormat, list[Path]]:
    """Return the format of the annotation files in a folder, and the files."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    by_format: dict[str, list[Path]] = {}
    for file in files:
        file_format = format_of(file)
        if file_format is not None:
            by_format.setdefault(file_format.name, []).append(file)
    if len(by_format) > 1:
        by_format.pop("mask", None)  # the images themselves
    if not by_format:
        deeper = first_few(sorted(place.name for place in folder.iterdir() if place.is_dir()))
        if deeper and not files:
            raise InvalidInputError(
                f"{folder} has no annotation file, but the folders {deeper}. Name one of them, or a quoted pattern "
                "with one file per scene (--labels).",
                code="annotations-folders",
            )
        raise InvalidInputError(
            f"{folder} has no annotation file of a known format. {_known_formats()}", code="annotations-format"
        )
    if len(by_format) > 1:
        shown = ", ".join(f"{name} ({same[0].name})" for name, same in by_format.items())
        raise InvalidInputError(
            f"{folder} has annotation files of several formats: {shown}. Name one file instead.",
            code="annotations-formats",
        )
    name, same = next(iter(by_format.items()))
    return ANNOTATION_FORMATS[name], same


def _read_folder(folder: Path) -> AnnotationTable:
    file_format, files = annotation_files(folder)
    table: dict[str | None, ImageAnnotations] = {}
    origin: dict[str | None, Path] = {}
    about: dict[str, None] = {}
    for file in files:
        images: Annotations = file_format.read(file)
        about[getattr(images, "about", "")] = None
        for image, annotations in images.items():
            name = file.stem if image is None else image
            if name in table:
                raise InvalidInputError(
                    f"{origin[name]} and {file} are both about the image {name!r}; keep one of them in the folder.",
                    code="annotations-twice",
                )
            table[name], origin[name] = annotations, file
    return AnnotationTable(table, " ".join([text for text in about if text][:TOLD]))


def _known_formats() -> str:
    return f"Known formats: {'; '.join(entry.description for entry in ANNOTATION_FORMATS.values())}."


def read_mask(path: Path) -> Annotations:
    """Read the mask of one image, under None: the class of each pixel, 0 for background; -1 where it has no data."""
    from bimichi.io.open import read_band

    return {None: ImageAnnotations(boxes_array([]), [], mask=read_band(path))}


MASK = AnnotationFormat(
    "mask",
    "an image of one band, 0 for background, above 0 for targets and below 0 for unknown; one file per image",
    lambda path, start: is_image(start),
    read_mask,
)


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
    images = read_annotations(path)
    if any(annotations.mask is not None for annotations in images.values()):
        raise InvalidInputError(
            f"{path!s} is a mask and holds no boxes; pass it as labels (--labels) instead.", code="mask-without-boxes"
        )
    if label is not None and {own for annotations in images.values() for own in annotations.labels} == {None}:
        why = f"{path!s} gives no labels, so none of its boxes is {label!r}"
        raise InvalidInputError(f"{why}; pass no label (--target).", code="label-unused")
    table = {name: in_pixels(shapes, placement, str(path)).boxes_of(label) for name, shapes in images.items()}
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
