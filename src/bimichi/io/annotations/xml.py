"""Boxes and outlines in XML: Pascal VOC, one file per image, as LabelImg writes it, and CVAT for images 1.1."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import box_between, naming, number, points, read_xml, text_or_none
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import (
    Disc,
    Polygons,
    Shape,
    corners_of,
    ellipse,
    listed_counts,
    mask_by_rows,
    rotated,
    runs_of,
)

VOC_ROOT = re.compile(rb"<annotation[\s>]")


def read_voc(path: Path) -> Annotations:
    """Read the boxes of one image; objects that are difficult are ignored.

    Corners are taken as edges of the box, as current tools write them, so that a box is xmax - xmin wide. The files
    of the challenge itself count pixels from 1, which differs by at most one pixel on each side.
    """
    root = read_xml(path)
    if root.tag != "annotation":
        raise InvalidInputError(f"{path} must have the root <annotation>, got <{root.tag}>.", code="voc-root")
    objects = []
    for k, element in enumerate(root.findall("object")):
        with naming(f"{path}, object {k + 1}"):
            box = element.find("bndbox")
            if box is None:
                raise InvalidInputError("it has no <bndbox>.", code="voc-box")
            corners = [number(_text(box, side), side) for side in ("xmin", "ymin", "xmax", "ymax")]
            difficult = _text(element, "difficult") not in (None, "0", "false", "False")
            objects.append(Found(box_between(*corners), _text(element, "name"), difficult))
    return AnnotationTable({_text(root, "filename"): image_annotations(objects)})


def _text(element: Element, tag: str) -> str | None:
    return text_or_none(element.findtext(tag))


VOC = AnnotationFormat(
    "voc",
    "Pascal VOC XML, one file per image; difficult objects are ignored",
    lambda path, start: bool(VOC_ROOT.search(start)),
    read_voc,
)


CVAT_ROOT = re.compile(rb"<annotations[\s>]")
WITHOUT_AREA = ("polyline", "cuboid", "skeleton")


def read_cvat(path: Path) -> Annotations:
    """Read all images; tags are no objects, and lines and cuboids are left out, which `about` says."""
    root = read_xml(path)
    if root.tag != "annotations" or root.find("track") is not None:
        raise InvalidInputError(
            f"{path} must be CVAT for images 1.1; export the task in that format, not as a video.", code="cvat-format"
        )
    table, left_out = {}, 0
    for image in root.findall("image"):
        name, objects = text_or_none(image.get("name")), []
        for k, element in enumerate(image):
            left_out += element.tag in WITHOUT_AREA
            if element.tag in READERS:
                with naming(f"{path}, image {name}, <{element.tag}> {k + 1}"):
                    objects += [
                        Found(place, text_or_none(element.get("label"))) for place in READERS[element.tag](element)
                    ]
        if name in table:
            raise InvalidInputError(
                f"{path} has the image {name!r} twice; remove one of them.", code="annotations-twice"
            )
        table[name] = image_annotations(objects)
    said = f"{path}: {left_out} lines, cuboids or skeletons have no area and are left out." if left_out else ""
    return AnnotationTable(table, said)


def _values(element: Element, *names: str) -> list[float]:
    return [number(element.get(name), name) for name in names]


def _turned(corners: Floats, element: Element, centre: tuple[float, float]) -> Polygons:
    return Polygons(((rotated(corners, number(element.get("rotation"), "rotation"), centre),),))


def _box(element: Element) -> list[Floats | Shape]:
    box = box_between(*_values(element, "xtl", "ytl", "xbr", "ybr"))
    if element.get("rotation") is None:
        return [box]
    return [_turned(corners_of(box), element, (box[0] + box[2] / 2, box[1] + box[3] / 2))]


def _points(element: Element, least: int) -> Floats:
    return points([pair.split(",") for pair in (element.get("points") or "").split(";")], "points", least)


def _ellipse(element: Element) -> list[Floats | Shape]:
    x, y, width, height = _values(element, "cx", "cy", "rx", "ry")
    corners = ellipse(x, y, width, height)
    return [Polygons(((corners,),)) if element.get("rotation") is None else _turned(corners, element, (x, y))]


def _mask(element: Element) -> list[Floats | Shape]:
    left, top, width, height = (int(side) for side in _values(element, "left", "top", "width", "height"))
    counts = listed_counts(number(part, "rle") for part in (element.get("rle") or "").split(","))
    return [runs_of(np.asarray(mask_by_rows(counts, height, width)), left, top)]


READERS: dict[str, Callable[[Element], list[Floats | Shape]]] = {
    "box": _box,
    "polygon": lambda one: [Polygons(((_points(one, 3),),))],
    "points": lambda one: [Disc(x, y) for x, y in _points(one, 1)],
    "ellipse": _ellipse,
    "mask": _mask,
}

CVAT = AnnotationFormat(
    "cvat", "CVAT XML for images 1.1, of all images", lambda path, start: bool(CVAT_ROOT.search(start)), read_cvat
)
