"""Label Studio JSON: tasks with results in percent of the image."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

import bimichi.io.annotations.parse as load
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import Disc, Polygons, Shape, corners_of, decode_brush, ellipse, rotated, runs_of

START = re.compile(rb"\[\s*(\{|\])")
UPLOAD = re.compile(r"[0-9a-f]{8}-(?=.)")  # which Label Studio puts before the name of an uploaded file


def _recognises(path: Path, start: bytes) -> bool:
    return path.suffix.lower() == ".json" and bool(START.match(start.removeprefix(b"\xef\xbb\xbf").lstrip()))


def read_label_studio(path: Path) -> Annotations:
    """Read the objects of all tasks; of several annotations of one task, that which is marked as ground truth."""
    table: dict[str | None, list[Found]] = {}
    for k, entry in enumerate(load.listed(load.read_json(path), str(path))):
        with load.naming(f"{path}, task {k + 1}"):
            task = load.mapping(entry, "it")
            if not isinstance(task.get("data"), dict):
                raise InvalidInputError(
                    "it has no data, so this is not a full export of Label Studio. Export as JSON, not JSON-MIN; "
                    "results of COCO, a list of boxes, need the images and categories of a COCO file around them.",
                    code="label-studio-export",
                )
            image = _image(load.mapping(task.get("data"), "data"))
            if image in table:
                raise InvalidInputError(
                    f"another task has the image {image!r}, too; remove one of them.", code="annotations-twice"
                )
            table[image] = [drawn for result in _results(task) for drawn in _objects(load.mapping(result, "a result"))]
    return AnnotationTable({image: image_annotations(objects) for image, objects in table.items()})


def _image(data: Mapping[str, Any]) -> str:
    """Return the path of the image: the entry image, or the first that is text."""
    values = [data.get("image"), *data.values()]
    text = next((value for value in values if isinstance(value, str) and value), None)
    if text is None:
        raise InvalidInputError("data names no image.", code="label-studio-image")
    path = unquote(text.partition("?d=")[2] or text.partition("?")[0]).replace("\\", "/")
    folder, _, name = path.rpartition("/")
    return f"{folder}/{UPLOAD.sub('', name, count=1)}".lstrip("/")


def _results(task: Mapping[str, Any]) -> list[Any]:
    entries = load.listed(task.get("annotations", task.get("completions", [])), "annotations")
    annotations = [load.mapping(annotation, "an annotation") for annotation in entries]
    kept = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    kept = [annotation for annotation in kept if annotation.get("ground_truth")] or kept
    if len(kept) > 1:
        raise InvalidInputError(
            f"it has {len(kept)} annotations; mark one as ground truth, or export one of them.",
            code="label-studio-annotations",
        )
    return load.listed(kept[0].get("result", []), "result") if kept else []


def _objects(result: Mapping[str, Any]) -> list[Found]:
    """Return the object of a result with its first label; relations, choices and texts are none."""
    kind = str(result.get("type")).removesuffix("labels")
    if kind not in READERS:
        return []
    value = load.mapping(result.get("value"), "value")
    width, height = size = _pair(result, "original_width", "original_height")
    if not (width >= 1 and height >= 1):
        raise InvalidInputError(
            f"the image has {width:g} x {height:g} pixels (original_width, original_height).", code="label-studio-size"
        )
    labels = value.get(f"{kind}labels")
    label = load.text_or_none(labels[0]) if isinstance(labels, list) and labels else None
    return [Found(READERS[kind](value, size), label)]


def _pair(value: Mapping[str, Any], *sides: str) -> Floats:
    return np.array([load.number(value.get(side), side) for side in sides])


def _box(value: Mapping[str, Any], size: Floats) -> Floats | Shape:
    box = load.box_of(*_pair(value, "x", "y") * size / 100, *_pair(value, "width", "height") * size / 100)
    turn = load.number(value.get("rotation") or 0, "rotation")
    return Polygons(((rotated(corners_of(box), turn, (box[0], box[1])),),)) if turn else box


def _ellipse(value: Mapping[str, Any], size: Floats) -> Floats | Shape:
    x, y = _pair(value, "x", "y") * size / 100
    corners = ellipse(x, y, *_pair(value, "radiusX", "radiusY") * size / 100)
    return Polygons(((rotated(corners, load.number(value.get("rotation") or 0, "rotation"), (x, y)),),))


def _brush(value: Mapping[str, Any], size: Floats) -> Floats | Shape:
    if value.get("format", "rle") != "rle":
        raise InvalidInputError(
            f"a brush must be in the format rle, got {load.shortly(repr(value['format']))}.", code="brush-format"
        )
    width, height = (int(side) for side in size)
    return runs_of(decode_brush(load.numbers(value.get("rle"), "rle"), height, width), image=(height, width))


READERS: dict[str, Callable[[Mapping[str, Any], Floats], Floats | Shape]] = {
    "rectangle": _box,
    "polygon": lambda value, size: Polygons(((load.points(value.get("points"), "points") * size / 100,),)),
    "ellipse": _ellipse,
    "keypoint": lambda value, size: Disc(*(_pair(value, "x", "y") * size / 100)),
    "brush": _brush,
}

LABEL_STUDIO = AnnotationFormat(
    "label-studio", "Label Studio JSON (not JSON-MIN), of all images", _recognises, read_label_studio
)
