"""Boxes in a CSV file with the columns x, y, w, h, and optionally image and label."""

import csv
import math
from pathlib import Path

from bimichi.errors import InvalidInputError
from bimichi.imaging.formats import AnnotationFormat, Annotations, ImageAnnotations, boxes_array

SIDES = ("x", "y", "w", "h")


def _recognises(path: Path, start: bytes) -> bool:
    columns = start.decode("utf-8-sig", "replace").lstrip().partition("\n")[0].lower().split(",")
    return path.suffix.lower() == ".csv" or set(SIDES) <= {column.strip() for column in columns}


def _read(path: Path) -> Annotations:
    """Read all boxes; the first line names the columns, in any order, and other columns are ignored."""
    rows = _rows(path)
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    if any(header.count(side) != 1 for side in SIDES) or max(header.count("image"), header.count("label")) > 1:
        raise InvalidInputError(
            f"{path} must start with a line that names the columns x, y, w and h, each once, separated by commas; "
            f"found {', '.join(map(repr, header)) or 'nothing'}."
        )
    found: dict[str | None, list[tuple[list[float], str | None]]] = {} if "image" in header else {None: []}
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            raise InvalidInputError(f"{path}, line {line}: {len(cells)} fields under {len(header)} columns.")
        row = dict(zip(header, cells, strict=True))
        box = [_number(row[side], f"{path}, line {line}: {side}") for side in SIDES]
        if box[2] <= 0 or box[3] <= 0:
            raise InvalidInputError(f"{path}, line {line}: w and h must be above 0, got {row['w']} and {row['h']}.")
        found.setdefault(row.get("image"), []).append((box, row.get("label")))
    return {
        image: ImageAnnotations(boxes_array([box for box, _ in some]), [label for _, label in some])
        for image, some in found.items()
    }


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the number and the stripped cells of every line that is not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidInputError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    return [(line, cells) for line, cells in rows if any(cells)]


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"{what} must be a number, got {text!r}.")
    return number


CSV = AnnotationFormat(
    "csv", "CSV with the columns x, y, w, h in pixels, and optionally image and label", _recognises, _read
)
