"""Boxes and outlines in text: bbGt of the KAIST benchmark and YOLO, one file per image, and CSV."""

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import box_between, box_of, naming, number, read_text, shortly
from bimichi.scenes.annotations import (
    AnnotationFormat,
    Annotations,
    AnnotationTable,
    Found,
    ImageAnnotations,
    boxes_array,
    image_annotations,
)
from bimichi.scenes.shapes import Disc, Polygons, Shape
from bimichi.sources.bands import first_few

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
    for k, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("%"):
            continue
        label, *fields = line.split()
        try:
            values = [float(field) for field in fields]
            x, y, width, height = values[:4]
        except ValueError:
            raise _damaged(path, k, line, "'label x y width height ...' is expected") from None
        if not all(map(math.isfinite, values)) or width <= 0 or height <= 0:
            raise _damaged(path, k, line, "width and height must be above 0, and all numbers finite")
        if shape is not None and (x >= shape[1] or y >= shape[0] or x + width <= 0 or y + height <= 0):
            raise _damaged(path, k, line, f"the box lies outside the image of {shape[1]} x {shape[0]} pixels")
        boxes.append([x, y, width, height])
        labels.append(label)
        ignored.append(any(values[9:10]))
    return {None: ImageAnnotations(boxes_array(boxes), labels, ignored)}


def _damaged(path: Path, k: int, line: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}, line {k}: {shortly(line)!r} is damaged: {why}. Correct it, or get it from {SOURCE}.",
        code="bbgt-line",
    )


BBGT = AnnotationFormat(
    "bbgt",
    "text of the KAIST benchmark, which starts with `% bbGt version=3`; one file per image",
    lambda path, start: start.startswith(b"% bbGt"),
    read_bbgt,
)


CLASS_FILES = ("classes.txt", "obj.names", "data.yaml", "data.yml", "dataset.yaml")
"""Files with the names of classes, looked for beside a label file and in the folder above."""

NUMBER = re.compile(rb"[-+.\deE]+")
NORMAL = 1.5  # fractions beyond it are no rounding


def _recognises_yolo(path: Path, start: bytes) -> bool:
    if path.suffix.lower() != ".txt" or path.name in CLASS_FILES:
        return False
    fields = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].split()
    return not fields or (len(fields) > 3 and fields[0].isdigit() and all(map(NUMBER.fullmatch, fields[1:5])))


def read_yolo(path: Path) -> Annotations:
    """Read the objects of one image, in fractions; five numbers after the class are a box and its score."""
    names, source = class_names(path.parent)
    objects = []
    for k, line in enumerate(read_text(path).splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        with naming(f"{path}, line {k}"):
            values = [number(field, "a coordinate") for field in fields[1:]]
            if not fields[0].isdecimal() or len(values) < 4 or (len(values) > 5 and len(values) % 2):
                raise InvalidInputError(
                    f"{shortly(line)!r} must be a class number and x, y, width, height, or the corners of a polygon.",
                    code="yolo-line",
                )
            if not all(abs(value) <= NORMAL for value in values):
                raise InvalidInputError(
                    f"{shortly(line)!r} must be in fractions of the image, from 0 to 1; divide x by its width and y by "
                    "its height, or write a CSV file with the columns x, y, w, h for pixels.",
                    code="yolo-fractions",
                )
            label = names.get(int(fields[0])) if len(fields[0]) < 10 else None
            if names and label is None:
                known = first_few([f"{k} {name}" for k, name in names.items()])
                raise InvalidInputError(
                    f"class {shortly(fields[0])} has no name in {source}, which names {known}. "
                    "Correct the class, or add its name.",
                    code="yolo-class",
                )
            label = fields[0] if label is None else label
            objects.append(Found(_yolo_place(values), label))
    said = f"{path.parent}: class names are those of {source}." if source else ""
    return AnnotationTable({None: image_annotations(objects, "fractions")}, said)


def _yolo_place(values: list[float]) -> Floats | Polygons:
    if len(values) > 5:
        return Polygons(((np.array(values).reshape(-1, 2),),))
    x, y, width, height = values[:4]
    return box_of(x - width / 2, y - height / 2, width, height)


def class_names(folder: Path) -> tuple[dict[int, str], Path | None]:
    """Return the names of classes by number, and the file that gives them, if there is one."""
    for place in (folder, folder.absolute().parent):
        for name in CLASS_FILES:
            if (place / name).is_file():
                text = read_text(place / name)
                lines = [line.strip() for line in text.splitlines()]
                if name.endswith((".yaml", ".yml")):
                    return _yaml_names(text), place / name
                return dict(enumerate(line for line in lines if line)), place / name
    return {}, None


def _yaml_names(text: str) -> dict[int, str]:
    """Return the entry `names` of a data file: a list in brackets, lines with dashes, or lines with numbers."""
    entry = re.search(r"^names:[ \t]*(.*)$((?:\n[ \t]*(?:-|\d+[ \t]*:).*|\n[ \t]*(?:#.*)?$)*)", text, re.MULTILINE)
    if entry is None:
        return {}
    inline = entry[1].partition("#")[0].strip()
    if inline.startswith(("[", "{")):
        parts = [part.strip() for part in inline.strip("[]{} ").split(",") if part.strip()]
    else:
        parts = [line.strip() for line in entry[2].splitlines() if line.strip().strip("-") and line.strip()[0] != "#"]
    names = {}
    for k, part in enumerate(parts):
        numbered = re.fullmatch(r"(\d{1,9})[ \t]*:[ \t]*(.*)", part)
        key, name = (int(numbered[1]), numbered[2]) if numbered else (k, part.removeprefix("-"))
        names[key] = name.strip().strip("'\"")
    return names


YOLO = AnnotationFormat(
    "yolo",
    "YOLO text in fractions of the image, one file per image, with classes.txt or data.yaml for the names of classes",
    _recognises_yolo,
    read_yolo,
)


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


def _recognises_csv(path: Path, start: bytes) -> bool:
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
                objects.setdefault(image, []).append(Found(_csv_place(cells, names, how), label, out))
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


def _csv_place(cells: list[str], names: list[str], how: _Dialect) -> Floats | Shape:
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
    _recognises_csv,
    read_csv,
)
