"""Boxes, outlines and masks in JSON: COCO, labelme, which has one file per image, and tasks of Label Studio."""

import base64
import binascii
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

import bimichi.io.annotations.parse as load
from bimichi._extras import import_optional
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import (
    LARGEST_MASK,
    Disc,
    Polygons,
    Runs,
    Shape,
    corners_of,
    decode_brush,
    decode_coco,
    ellipse,
    listed_counts,
    rotated,
    runs_of,
)

COCO_KEYS = re.compile(rb'"(images|annotations|categories|info|licenses)"\s*:')
OTHER_KEYS = re.compile(rb'"(FeatureCollection|shapes|imagePath|imageData)"')


def _recognises_coco(path: Path, start: bytes) -> bool:
    content = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return content.startswith(b"{") and bool(COCO_KEYS.search(content)) and not OTHER_KEYS.search(content)


def read_coco(path: Path) -> Annotations:
    """Read all objects of all images; the outline of an object, if any, goes before its box, and crowds are ignored."""
    data = load.mapping(load.read_json(path), str(path))
    with load.naming(str(path)):
        names: dict[Any, str | None] = {}
        for image in load.listed(data.get("images", []), "images"):
            one = load.mapping(image, "an image")
            names[_key(one.get("id"))] = load.text_or_none(one.get("file_name"))
        labels = {
            _key(load.mapping(one, "a category").get("id")): load.text_or_none(one.get("name"))
            for one in load.listed(data.get("categories", []), "categories")
        }
        objects: dict[str | None, list[Found]] = {name: [] for name in names.values()}
        for k, entry in enumerate(load.listed(data.get("annotations", []), "annotations")):
            with load.naming(f"annotation {k}"):
                one = load.mapping(entry, "it")
                image = _known(names, one.get("image_id"), "image_id", "images")
                label = (
                    _known(labels, one["category_id"], "category_id", "categories") if "category_id" in one else None
                )
                objects[image].append(Found(_coco_place(one), label, bool(one.get("iscrowd"))))
    return AnnotationTable({image: image_annotations(some) for image, some in objects.items()})


def _coco_place(entry: Mapping[str, Any]) -> Floats | Shape:
    drawn = entry.get("segmentation")
    if isinstance(drawn, dict):
        height, width = (int(side) for side in load.numbers(drawn.get("size"), "size", 2))
        counts = drawn.get("counts")
        runs = decode_coco(counts) if isinstance(counts, str) else listed_counts(load.numbers(counts, "counts"))
        return Runs(runs, height, width, image=(height, width))
    if drawn:
        return Polygons(tuple((_ring(part),) for part in load.listed(drawn, "segmentation")))
    if "bbox" not in entry:
        raise InvalidInputError("it has neither bbox nor segmentation.", code="coco-shape")
    return load.box_of(*load.numbers(entry["bbox"], "bbox", 4))


def _ring(part: Any) -> Floats:
    found = load.numbers(part, "segmentation")
    if len(found) < 6 or len(found) % 2:
        raise InvalidInputError(
            f"a polygon must be at least 6 numbers x1, y1, x2, y2, ..., got {len(found)}.", code="polygon-points"
        )
    return np.array(found).reshape(-1, 2)


def _key(value: Any) -> Any:
    return value if isinstance(value, str) else load.number(value, "id")


def _known(table: Mapping[Any, str | None], value: Any, what: str, where: str) -> str | None:
    key = _key(value)
    if key not in table:
        raise InvalidInputError(
            f"{what} {load.shortly(repr(value))} is not among the {where} of the file.", code="coco-reference"
        )
    return table[key]


COCO = AnnotationFormat(
    "coco", "COCO JSON: boxes, polygons and run lengths of all images; crowds are ignored", _recognises_coco, read_coco
)


LABELME_KEYS = re.compile(rb'"(shapes|imagePath|imageData)"\s*:')
LINES = ("line", "linestrip")


def _recognises_labelme(path: Path, start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") and bool(LABELME_KEYS.search(start))


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
                    objects.append(Found(_labelme_place(shape), load.text_or_none(shape.get("label"))))
    said = f"{path}: {lines} lines have no area and are left out." if lines else ""
    return AnnotationTable({load.text_or_none(data.get("imagePath")): image_annotations(objects)}, said)


def _labelme_place(shape: Mapping[str, Any]) -> Floats | Shape:
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


LABELME = AnnotationFormat("labelme", "labelme JSON, one file per image", _recognises_labelme, read_labelme)


TASKS = re.compile(rb"\[\s*(\{|\])")
UPLOAD = re.compile(r"[0-9a-f]{8}-(?=.)")  # which Label Studio puts before the name of an uploaded file


def _recognises_tasks(path: Path, start: bytes) -> bool:
    return path.suffix.lower() == ".json" and bool(TASKS.match(start.removeprefix(b"\xef\xbb\xbf").lstrip()))


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
    "label-studio", "Label Studio JSON (not JSON-MIN), of all images", _recognises_tasks, read_label_studio
)
