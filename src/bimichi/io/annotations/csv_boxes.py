"""Boxes in a CSV file, whose first line names the columns, in any of the usual dialects."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import box_between, box_of, naming, number, read_text, shortly
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import Disc, Shape

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
IMAGES = (
    *("image", "filename", "file_name", "image_path", "image_name", "image_file", "file", "img", "img_path"),
    *("filepath", "file_path", "path", "imagename", "image_id", "frame"),
)
LABELS = (
    *("label", "class", "category", "name", "class_name", "label_name", "category_name", "classname", "cls", "type"),
    *("class_id", "category_id", "label_id"),
)
IGNORED = ("ignored", "ignore", "iscrowd", "difficult")
TRUE, FALSE = ("1", "1.0", "true", "yes"), ("", "0", "0.0", "false", "no")

CORNER, CORNERS = "x and y of the upper left corner, width and height", "two corners"
CENTRE, POINT = "x and y of the centre, width and height", "a point and a radius"
LAYOUTS = tuple(
    (kind, tuple(names.split()))
    for kind, listed in (
        (CORNER, "x y w h"),
        # Corners come before the rest: beside them, width and height are those of the image.
        (CORNERS, "xmin ymin xmax ymax, x1 y1 x2 y2, x0 y0 x1 y1, left top right bottom"),
        (CORNERS, "minx miny maxx maxy, xtl ytl xbr ybr"),
        (CORNER, "x y width height, left top width height, left top w h, xmin ymin w h, x1 y1 w h"),
        (CORNER, "xmin ymin width height, x1 y1 width height"),
        (CENTRE, "cx cy w h, cx cy width height, xc yc w h, xcenter ycenter width height"),
        (CENTRE, "centerx centery width height, xcenter ycenter w h, centerx centery w h"),
        (POINT, "x y radius, x y r, cx cy radius, cx cy r"),
    )
    for names in listed.split(", ")
)
"""What columns of these names are, in the order in which they are tried."""


@dataclass(frozen=True)
class _Dialect:
    """The columns of a file, and its separator."""

    separator: str
    kind: str
    sides: tuple[int, ...]
    image: int | None
    label: int | None
    ignored: int | None


def _plain(column: str) -> str:
    """Return the name of a column without case, prefix and separators."""
    name = re.sub(r"[\s._-]+", "_", column.strip().lower())
    return name if name in IMAGES + LABELS else re.sub(r"^(bounding_?box|bbox|box)(?=_)|_", "", name)


def _dialect(header: str) -> _Dialect | None:
    for separator in sorted(SEPARATORS, key=header.count, reverse=True):
        columns = [_plain(cell.strip('" ')) for cell in header.split(separator)]
        for kind, names in LAYOUTS:
            if all(columns.count(name) == 1 for name in names):
                sides = tuple(columns.index(name) for name in names)
                return _Dialect(separator, kind, sides, *(_first(columns, some) for some in (IMAGES, LABELS, IGNORED)))
    return None


def _first(columns: list[str], names: tuple[str, ...]) -> int | None:
    found = [name for name in names if name in columns]
    if found and columns.count(found[0]) > 1:
        raise InvalidInputError(
            f"columns must be named once, but {found[0]} occurs {columns.count(found[0])} times.",
            code="csv-columns",
            argument="columns",
        )
    return columns.index(found[0]) if found else None


def _recognises(path: Path, start: bytes) -> bool:
    if path.suffix.lower() in (".csv", ".tsv"):
        return True
    header = start.decode("utf-8-sig", "replace").lstrip("\r\n").partition("\n")[0]
    try:
        return not header.startswith(("{", "[", "<", "%")) and _dialect(header) is not None
    except InvalidInputError:
        return True


def read_csv(path: Path) -> Annotations:
    """Read all boxes; columns may be in any order, and others are left out. `about` says what was recognised."""
    whole = read_text(path)
    text = re.sub(r"\A([ \t]*\r?\n)+", "", whole)  # but not the empty first name of a column separated by tabs
    header, before = text.partition("\n")[0].strip("\r "), whole[: len(whole) - len(text)].count("\n")
    with naming(str(path)):
        how = _dialect(header)
    if how is None:
        raise InvalidInputError(
            f"{path} must start with a line that names its columns, each once, such as image,x,y,w,h,label or "
            f"filename,xmin,ymin,xmax,ymax,class, separated by commas, semicolons or tabs; "
            f"found {repr(shortly(header)) if header else 'nothing'}.",
            code="csv-header",
        )
    names, rows = _rows(path, text, how.separator)
    objects: dict[str | None, list[Found]] = {} if how.image is not None else {None: []}
    for line, cells in rows:
        with naming(f"{path}, line {line + before}"):
            if len(cells) != len(names):
                raise InvalidInputError(
                    f"{len(cells)} fields under {len(names)} columns. Give each column one "
                    "value; where numbers have decimal commas, separate columns by semicolons.",
                    code="csv-fields",
                )
            image = None if how.image is None else cells[how.image]
            label = None if how.label is None else cells[how.label] or None
            out = how.ignored is not None and _flag(cells[how.ignored])
            if any(cells[side] for side in how.sides):
                objects.setdefault(image, []).append(Found(_place(cells, names, how), label, out))
            else:  # a line that says that an image has no boxes
                objects.setdefault(image, [])
    return AnnotationTable(
        {image: image_annotations(some) for image, some in objects.items()}, _about(path, names, how)
    )


def _about(path: Path, names: list[str], how: _Dialect) -> str:
    sides = ", ".join(names[side] for side in how.sides)
    parts = [f"{path}: columns {sides} are read as {how.kind}, in pixels"]
    parts += [f"images by {names[how.image]}"] if how.image is not None else []
    parts += [f"labels by {names[how.label]}"] if how.label is not None else []
    parts += [] if how.separator == "," else [f"separated by {SEPARATORS[how.separator]}"]
    return "; ".join(parts) + "."


def _rows(path: Path, text: str, separator: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the names of columns, and number and stripped cells of every further line that is not blank."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise InvalidInputError(f"Cannot read {path}: {error}.", code="file-unreadable") from error
    return rows[0][1], [(line, cells) for line, cells in rows[1:] if any(cells)]


def _place(cells: list[str], names: list[str], how: _Dialect) -> Floats | Shape:
    values = [_number(cells[side], names[side], how.separator) for side in how.sides]
    if how.kind == CORNERS:
        return box_between(*values)
    if how.kind == POINT:
        if values[2] < 0:
            raise InvalidInputError(f"the radius must be at least 0, got {values[2]:g}.", code="csv-radius")
        return Disc(*values)
    x, y, width, height = values
    if not (width > 0 and height > 0):
        raise InvalidInputError(f"w and h must be above 0, got {width:g} and {height:g}.", code="box-size")
    return box_of(x - width / 2, y - height / 2, width, height) if how.kind == CENTRE else box_of(*values)


def _number(text: str, what: str, separator: str) -> float:
    """Return a number, which may have a decimal comma where commas do not separate columns."""
    return number(text.replace(",", ".") if separator != "," and text.count(",") == 1 else text, what)


def _flag(text: str) -> bool:
    if text.lower() not in TRUE + FALSE:
        raise InvalidInputError(
            f"ignored must be 0 or 1, got {shortly(repr(text))}.", code="csv-ignored", argument="ignored"
        )
    return text.lower() in TRUE


CSV = AnnotationFormat(
    "csv",
    "CSV with the columns x, y, w, h in pixels, or other usual names, and optionally image and label",
    _recognises,
    read_csv,
)
