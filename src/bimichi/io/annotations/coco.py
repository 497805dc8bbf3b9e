"""COCO JSON: images, categories, and annotations by boxes, polygons and run lengths."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bimichi.io.annotations.parse as load
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import Polygons, Runs, Shape, decode_coco, listed_counts

KEYS = re.compile(rb'"(images|annotations|categories|info|licenses)"\s*:')
OTHERS = re.compile(rb'"(FeatureCollection|shapes|imagePath|imageData)"')


def _recognises(path: Path, start: bytes) -> bool:
    content = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return content.startswith(b"{") and bool(KEYS.search(content)) and not OTHERS.search(content)


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
                objects[image].append(Found(_place(one), label, bool(one.get("iscrowd"))))
    return AnnotationTable({image: image_annotations(some) for image, some in objects.items()})


def _place(entry: Mapping[str, Any]) -> Floats | Shape:
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
    "coco", "COCO JSON: boxes, polygons and run lengths of all images; crowds are ignored", _recognises, read_coco
)
