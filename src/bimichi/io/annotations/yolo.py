"""YOLO text, one file per image: a class number and a box or polygon in fractions of the image per line."""

import re
from pathlib import Path

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import box_of, naming, number, read_text, shortly
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import Polygons
from bimichi.sources.bands import first_few

CLASS_FILES = ("classes.txt", "obj.names", "data.yaml", "data.yml", "dataset.yaml")
"""Files with the names of classes, looked for beside a label file and in the folder above."""

NUMBER = re.compile(rb"[-+.\deE]+")
NORMAL = 1.5  # fractions beyond it are no rounding


def _recognises(path: Path, start: bytes) -> bool:
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
            objects.append(Found(_place(values), label))
    said = f"{path.parent}: class names are those of {source}." if source else ""
    return AnnotationTable({None: image_annotations(objects, "fractions")}, said)


def _place(values: list[float]) -> Floats | Polygons:
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
    _recognises,
    read_yolo,
)
