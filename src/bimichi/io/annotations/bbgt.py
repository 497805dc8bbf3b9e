"""Boxes in the text format ``bbGt version=3`` of the KAIST benchmark, one file per image."""

import math
from pathlib import Path

from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import read_text, shortly
from bimichi.scenes.annotations import AnnotationFormat, Annotations, ImageAnnotations, boxes_array

SOURCE = "the KAIST Multispectral Pedestrian Benchmark (github.com/SoonminHwang/rgbt-ped-detection)"


def read_bbgt(path: Path, shape: tuple[int, ...] | None = None) -> Annotations:
    """Read the boxes of one image; a box outside its `shape`, if given, is an error that names the line.

    Lines are: label, x, y, width, height, occlusion, the same four numbers of the visible part, ignore, angle.
    """
    try:
        lines = read_text(path).splitlines()
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Get it from {SOURCE}.", code="bbgt-file") from error
    boxes, labels, ignored = [], [], []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("%"):
            continue
        label, *fields = line.split()
        try:
            values = [float(field) for field in fields]
            x, y, width, height = values[:4]
        except ValueError:
            raise _damaged(path, number, line, "'label x y width height ...' is expected") from None
        if not all(map(math.isfinite, values)) or width <= 0 or height <= 0:
            raise _damaged(path, number, line, "width and height must be above 0, and all numbers finite")
        if shape is not None and (x >= shape[1] or y >= shape[0] or x + width <= 0 or y + height <= 0):
            raise _damaged(path, number, line, f"the box lies outside the image of {shape[1]} x {shape[0]} pixels")
        boxes.append([x, y, width, height])
        labels.append(label)
        ignored.append(any(values[9:10]))
    return {None: ImageAnnotations(boxes_array(boxes), labels, ignored)}


def _damaged(path: Path, number: int, line: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}, line {number}: {shortly(line)!r} is damaged: {why}. Correct it, or get it from {SOURCE}.",
        code="bbgt-line",
    )


BBGT = AnnotationFormat(
    "bbgt",
    "text of the KAIST benchmark, which starts with `% bbGt version=3`; one file per image",
    lambda path, start: start.startswith(b"% bbGt"),
    read_bbgt,
)
