"""What is drawn on a scene: boxes, polygons and brush strokes of three classes, as pages send and projects keep them.

Coordinates are in pixels of the scene, pixel i from i to i + 1, rounded to a thousandth, so that those of a map, too,
come back as they were.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import Found, ImageAnnotations, image_annotations
from bimichi.scenes.shapes import Polygons, bounding_box, corners_of, outline

KINDS = ("box", "polygon", "stroke")
CLASSES = ("target", "not", "ignore")
LEAST_POINTS = {"box": 2, "polygon": 3, "stroke": 1}
MOST_SHAPES = 10_000
MOST_POINTS = 20_000
DIGITS = 3

Point = tuple[float, float]
Ring = tuple[Point, ...]
Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class Shape:
    """One thing that was drawn; a box has two corners, a stroke a width, and a polygon may have holes."""

    id: str
    kind: str
    label: str
    points: Ring
    width: float | None = None
    holes: tuple[Ring, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as the page takes it."""
        entry: dict[str, Any] = {"id": self.id, "kind": self.kind, "label": self.label, "points": _lists(self.points)}
        if self.width is not None:
            entry["width"] = self.width
        return entry | ({"holes": [_lists(ring) for ring in self.holes]} if self.holes else {})


Shapes = tuple[Shape, ...]


def parse_shapes(entries: Any, size: Size) -> Shapes:
    """Return the shapes of a scene from JSON; what is not as it must be is an error."""
    if not isinstance(entries, list) or len(entries) > MOST_SHAPES:
        raise InvalidInputError(
            f"shapes must be a list of up to {MOST_SHAPES:,} shapes.", code="shapes-list", argument="shapes"
        )
    shapes = tuple(_parse(entry, k + 1, size) for k, entry in enumerate(entries))
    names = [shape.id for shape in shapes]
    if len(set(names)) < len(names):
        raise InvalidInputError("Two shapes have the same id; each needs one of its own.", code="shapes-ids")
    return shapes


def _parse(entry: Any, number: int, size: Size) -> Shape:
    what = f"Shape {number}"
    if not isinstance(entry, Mapping):
        raise InvalidInputError(f"{what} must be an object.", code="object")
    name, kind, label = entry.get("id"), entry.get("kind"), entry.get("label")
    if not isinstance(name, str) or not 0 < len(name) <= 64:
        raise InvalidInputError(f"{what} needs an id: text of up to 64 characters.", code="shape-id")
    if kind not in KINDS or label not in CLASSES:
        raise InvalidInputError(
            f"{what}: kind must be one of {', '.join(KINDS)}, label one of {', '.join(CLASSES)}.", code="shape-kind"
        )
    points = _points(entry.get("points"), LEAST_POINTS[kind], what)
    width = None
    if kind == "stroke":
        width = _number(entry.get("width"), f"width of {what}")
        if not 0 < width <= 10_000:
            raise InvalidInputError(
                f"{what}: the width of a stroke must be above 0 and up to 10,000, got {width:g}.",
                code="stroke-width",
                value=width,
            )
    if kind == "box":
        if len(points) != 2 or points[0][0] == points[1][0] or points[0][1] == points[1][1]:
            raise InvalidInputError(f"{what}: a box needs two corners that differ in x and in y.", code="box-size")
        points = (tuple(map(min, *points)), tuple(map(max, *points)))  # type: ignore[assignment]
    holes = entry.get("holes") or []
    if not isinstance(holes, list) or (holes and kind != "polygon"):
        raise InvalidInputError(f"{what}: holes must be a list of rings of a polygon.", code="shape-holes")
    shape = Shape(name, kind, str(label), points, width, tuple(_points(ring, 3, f"{what}, a hole") for ring in holes))
    _check_inside(shape, what, size)
    return shape


def _points(points: Any, least: int, what: str) -> Ring:
    if not isinstance(points, list) or not least <= len(points) <= MOST_POINTS:
        raise InvalidInputError(f"{what} needs {least} to {MOST_POINTS:,} points.", code="shape-points")
    pairs = [pair if isinstance(pair, list | tuple) and len(pair) == 2 else (None, None) for pair in points]
    return tuple((_number(x, f"x in {what}"), _number(y, f"y in {what}")) for x, y in pairs)


def _number(value: Any, what: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or abs(value) > 1e7 or not math.isfinite(value):  # in this order: whole numbers may be too large
        raise InvalidInputError(f"{what} must be a finite number of pixels.", code="number")
    return round(float(value), DIGITS) + 0.0  # no -0.0


def _check_inside(shape: Shape, what: str, size: Size) -> None:
    x, y, width, height = reach(shape)
    if x >= size[1] or y >= size[0] or x + width <= 0 or y + height <= 0:
        raise InvalidInputError(
            f"{what} lies outside the image, which is {size[1]} x {size[0]} pixels.", code="shape-outside"
        )


def reach(shape: Shape) -> Floats:
    """Return the box around a shape."""
    box, around = bounding_box(np.array(shape.points)), (shape.width or 0.0) / 2
    return np.asarray(box + np.array([-around, -around, 2 * around, 2 * around]))


def _lists(ring: Ring) -> list[list[float]]:
    return [list(point) for point in ring]


def annotations_of(shapes: Sequence[Shape], size: Size) -> ImageAnnotations:
    """Return shapes as annotation files hold them: strokes become the outlines of their pixels."""
    return image_annotations([Found(_place(one, size), one.label, one.label == "ignore") for one in shapes])


@lru_cache(4096)
def _place(shape: Shape, size: Size) -> Floats | Polygons:
    points = np.array(shape.points)
    if shape.kind == "box":
        return bounding_box(points)
    if shape.kind == "polygon":
        return Polygons(((points, *(np.array(ring) for ring in shape.holes)),))
    left, top = (max(0, int(start)) for start in np.floor(reach(shape)[:2]))
    region = stroke_mask(shape, size, left, top)
    return Polygons(tuple(tuple(ring[:-1] for ring in part) for part in outline(region, left, top)))


def stroke_mask(shape: Shape, size: Size, left: int = 0, top: int = 0) -> Flags:
    """Return the pixels whose centre is within half the width of a stroke, and those that its points are in.

    The mask begins at the pixel in column `left` and row `top`, and ends with the stroke or the image.
    """
    x, y, width, height = reach(shape)
    right, below = min(size[1], math.ceil(x + width)), min(size[0], math.ceil(y + height))
    mask = np.zeros((below - top, right - left), np.bool_)
    points = np.array(shape.points) - [left, top]
    half = (shape.width or 0.0) / 2
    for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
        low, high = np.minimum(start, end) - half, np.maximum(start, end) + half
        rows = slice(max(0, int(low[1])), max(0, math.ceil(high[1])))
        columns = slice(max(0, int(low[0])), max(0, math.ceil(high[0])))
        part = mask[rows, columns]
        if not part.size:
            continue
        across = np.arange(part.shape[1]) + columns.start + 0.5 - start[0]
        down = (np.arange(part.shape[0]) + rows.start + 0.5 - start[1])[:, None]
        step = end - start
        along = np.clip((across * step[0] + down * step[1]) / max(float(step @ step), 1e-12), 0, 1)
        part |= (across - along * step[0]) ** 2 + (down - along * step[1]) ** 2 <= half**2
    inside = points[((points >= 0) & (points < mask.shape[::-1])).all(axis=1)].astype(np.int64)
    mask[inside[:, 1], inside[:, 0]] = True
    if not mask.any():  # its points are outside, and it is thinner than a pixel where it crosses the border
        nearest = np.clip(points[:1].astype(np.int64), 0, np.array(mask.shape[::-1]) - 1)
        mask[nearest[:, 1], nearest[:, 0]] = True
    return mask


def shapes_of(annotations: ImageAnnotations, size: Size, prefix: str, target: str | None = None) -> Shapes:
    """Return the annotations of a scene, in its pixels, as shapes; those marked "not" or ignored keep that class.

    With `target`, labels or values of masks that are another one are left out.
    """
    shapes: list[Shape] = []

    def add(kind: str, label: str, rings: Sequence[Floats]) -> None:
        points, *holes = (tuple((round(x, DIGITS) + 0.0, round(y, DIGITS) + 0.0) for x, y in ring) for ring in rings)
        shapes.append(Shape(f"{prefix}-{len(shapes) + 1}", kind, label, points, None, tuple(holes)))

    rows = zip(annotations.boxes, annotations.outlines, annotations.labels, annotations.is_ignored, strict=True)
    for box, shape, own, out in rows:
        label = "ignore" if out else "not" if own == "not" else "target"
        if label == "target" and target is not None and own != target:
            continue
        if shape is None:
            add("box", label, [corners_of(box)[[0, 2]]])
        elif isinstance(shape, Polygons):
            for part in shape.parts:
                add("polygon", label, part)
        else:
            mask = np.zeros(size, np.bool_)
            shape.paint(mask)
            for polygon in outline(mask):
                add("polygon", label, [ring[:-1] for ring in polygon])
    targets = annotations.mask_of(target)
    if targets is not None and annotations.unknown is not None:
        for region, label in ((targets, "target"), (annotations.unknown, "ignore")):
            for polygon in outline(np.asarray(region)):
                add("polygon", label, [ring[:-1] for ring in polygon])
    return tuple(shapes)


_collecting: ContextVar[list[str] | None] = ContextVar("bimichi_warnings", default=None)
_lock = Lock()
_before: list[Any] = []
_count = 0


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Return a list of the warnings of this thread in the context; they are not shown elsewhere."""
    texts: list[str] = []
    token = _collecting.set(texts)
    _listen(1)
    try:
        yield texts
    finally:
        _listen(-1)
        _collecting.reset(token)


def _listen(change: int) -> None:
    """Collect warnings as long as any thread asks for them."""
    global _count
    with _lock:
        if _count == 0:
            _before[:] = [warnings.filters[:], warnings.showwarning]
            warnings.simplefilter("always")
            warnings.showwarning = _collect
        _count += change
        if _count == 0:
            warnings.filters[:], warnings.showwarning = _before  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]  # or what was decided by them stays


def _collect(message: Warning | str, *more: Any, **named: Any) -> None:
    texts = _collecting.get()
    if texts is None:
        _before[1](message, *more, **named)
    elif str(message) not in texts:
        texts.append(str(message))
