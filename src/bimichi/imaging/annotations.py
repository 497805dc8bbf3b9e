"""Boxes from CSV files."""

import csv
import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError

__all__ = ["box_table", "read_boxes"]

SIDES = ("x", "y", "w", "h")


def read_boxes(path: str | PathLike[str], image: str | None = None, label: str | None = None) -> NDArray[np.float64]:
    """Read boxes from a CSV file with the columns x, y, w, h, and, if need be, image and label.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8, its first line the names of the columns, in any order; other columns are passed over.
    image : str, optional
        Take only the boxes of this image, as the column `image` names it. Needed if the file names several.
    label : str, optional
        Take only the boxes with this text in the column `label`.

    Returns
    -------
    boxes : ndarray of float64, shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels, as `label_bags` takes them; none if no box has the label.
    """
    table = box_table(path, label)
    if isinstance(table, np.ndarray):
        if image is not None:
            raise InvalidInputError(f"{path!s} has no column 'image', so no image {image!r}; pass image=None.")
        return table
    if (image is None and len(table) > 1) or (image is not None and image not in table):
        named = sorted(table)
        shown = ", ".join(map(repr, named[:5])) + (", ..." if len(named) > 5 else "")
        raise InvalidInputError(f"{path!s} has boxes of the images {shown}; pass one of them as image, got {image!r}.")
    return next(iter(table.values()), np.empty((0, 4))) if image is None else table[image]


def box_table(
    path: str | PathLike[str], label: str | None = None
) -> NDArray[np.float64] | dict[str, NDArray[np.float64]]:
    """Read all boxes as `read_boxes` does, in one pass; by image, if there is such a column."""
    rows = _rows(path)
    header = next(rows)[1]
    if label is not None and "label" not in header:
        raise InvalidInputError(f"{path!s} has no column 'label', so no label {label!r}; pass label=None.")
    boxes: dict[str, list[list[float]]] = {}
    for line, cells in rows:
        if len(cells) != len(header):
            raise InvalidInputError(f"{path!s}, line {line}: {len(cells)} fields under {len(header)} columns.")
        row = dict(zip(header, cells, strict=True))
        box = [_number(row[side], f"{path!s}, line {line}: {side}") for side in SIDES]
        if box[2] <= 0 or box[3] <= 0:
            raise InvalidInputError(f"{path!s}, line {line}: w and h must be above 0, got {row['w']} and {row['h']}.")
        of_image = boxes.setdefault(row.get("image", ""), [])
        if label in (None, row.get("label")):
            of_image.append(box)
    arrays = {image: np.array(some, dtype=np.float64).reshape(-1, 4) for image, some in boxes.items()}
    return arrays if "image" in header else arrays.get("", np.empty((0, 4)))


def _rows(path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the stripped cells of every line that is not blank, the checked header first."""
    header: list[str] = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                cells = [cell.strip() for cell in cells]
                if not any(cells):
                    continue
                if not header:
                    cells = header = [cell.lower() for cell in cells]
                    _check_header(header, path)
                yield reader.line_num, cells
    except InvalidInputError:
        raise
    except (OSError, TypeError, ValueError, csv.Error) as error:
        raise InvalidInputError(f"Cannot read {path!s}: {getattr(error, 'strerror', None) or error}.") from error
    if not header:
        _check_header(header, path)


def _check_header(header: list[str], path: str | PathLike[str]) -> None:
    if any(header.count(side) != 1 for side in SIDES) or max(header.count("image"), header.count("label")) > 1:
        raise InvalidInputError(
            f"{path!s} must start with a line that names the columns x, y, w and h, each once, separated by commas; "
            f"found {', '.join(map(repr, header)) or 'nothing'}."
        )


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"{what} must be a number, got {text!r}.")
    return number
