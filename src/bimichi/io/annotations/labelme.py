"""labelme JSON, one file per image: rectangles, polygons, circles, points and masks."""

import base64
import binascii
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bimichi.io.annotations.parse as load
from bimichi._extras import import_optional
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import LARGEST_MASK, Disc, Polygons, Shape, runs_of

KEYS = re.compile(rb'"(shapes|imagePath|imageData)"\s*:')
LINES = ("line", "linestrip")


def _recognises(path: Path, start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") and bool(KEYS.search(start))


def read_labelme(path: Path) -> Annotations:
    """Read the objects of one image; lines have no area and are left out, which `about` says."""
    data = load.mapping(load.read_json(path), str(path))
    objects, lines = [], 0
    with load.naming(str(path)):
        for k, entry in enumerate(load.listed(data.get("shapes"), "shapes")):
            with load.naming(f"shape {k + 1}"):
                shape = load.mapping(entry, "it")
                if shape.get("shape_type") in LINES:
                    lines += 1
                else:
                    objects.append(Found(_place(shape), load.text_or_none(shape.get("label"))))
    said = f"{path}: {lines} lines have no area and are left out." if lines else ""
    return AnnotationTable({load.text_or_none(data.get("imagePath")): image_annotations(objects)}, said)


def _place(shape: Mapping[str, Any]) -> Floats | Shape:
    kind, corners = shape.get("shape_type") or "polygon", shape.get("points")
    if kind in ("polygon", "oriented_rectangle"):
        return Polygons(((load.points(corners, "points"),),))
    if kind == "point":
        x, y = load.points(corners, "points", 1)[0]
        return Disc(x, y)
    if kind not in ("rectangle", "circle", "mask"):
        raise InvalidInputError(
            f"shape_type {load.shortly(repr(kind))} is not known; draw a rectangle or a polygon.", code="labelme-shape"
        )
    first, second = load.points(corners, "points", 2)[:2]
    if kind == "circle":
        return Disc(first[0], first[1], float(np.hypot(*(second - first))))
    low, high = np.minimum(first, second), np.maximum(first, second)
    if kind == "rectangle":
        return load.box_between(*low, *high)
    return runs_of(_mask(shape.get("mask")), int(low[0]), int(low[1]))


def _mask(text: Any) -> Flags:
    if not isinstance(text, str):
        raise InvalidInputError(
            f"mask must be a PNG in base64, got {load.shortly(repr(text))}.", code="labelme-mask", argument="mask"
        )
    pillow = import_optional("PIL.Image")
    try:
        with pillow.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=("PNG",)) as image:
            if image.width * image.height > LARGEST_MASK:
                raise ValueError(f"it has {image.width} x {image.height} pixels")
            mask = np.asarray(image.convert("L")) > 0
    except (binascii.Error, ValueError, OSError, SyntaxError, pillow.DecompressionBombError) as error:
        raise InvalidInputError(
            f"mask is damaged ({load.shortly(error)}).", code="labelme-mask", argument="mask"
        ) from error
    return np.asarray(mask)


LABELME = AnnotationFormat("labelme", "labelme JSON, one file per image", _recognises, read_labelme)
