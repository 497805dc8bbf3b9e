"""Bytes, JSON and XML of annotation files, read with limits; nothing in a file can name another or run anything."""

import codecs
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.images import check_file, reading

SIZE_LIMIT = 512 << 20
"""Bytes of the largest annotation file."""

LARGEST = 1e9  # of coordinates; beyond it pixels cannot be distinguished
SHOWN = 80  # characters of a wrong value in an error


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file."""
    with reading(path, "it cannot be opened"):
        return check_bytes(path).read_bytes()


def check_bytes(path: Path) -> Path:
    """Return the path of a regular file of bounded size."""
    size = check_file(path).stat().st_size
    if size > SIZE_LIMIT:
        raise InvalidInputError(
            f"Cannot read {path}: it has {size:,} bytes; up to {SIZE_LIMIT:,} can be. Split it.", code="file-large"
        )
    return path


def read_text(path: Path) -> str:
    """Return the content of a text file in UTF-8, UTF-16 with its mark, or else in the Latin-1 of old tools."""
    content = read_bytes(path)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidInputError(
                f"{path} is damaged: it is not UTF-16 ({error.reason}). Save it as UTF-8.", code="encoding"
            ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; NaN and infinity are errors."""
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"), parse_constant=_no_number)
    except InvalidInputError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidInputError(f"{path} is damaged: it is not JSON ({shortly(error)}).", code="json") from error


def read_xml(path: Path) -> ElementTree.Element:
    """Return the root of an XML file; a document type, which can define entities, is an error."""
    content = read_bytes(path)

    def refuse(*_: object) -> None:
        raise InvalidInputError(
            f"{path} has a document type (<!DOCTYPE>), which is not allowed; remove it.", code="xml-doctype"
        )

    try:
        check = expat.ParserCreate()
        check.StartDoctypeDeclHandler = refuse
        check.Parse(content, True)
        return ElementTree.fromstring(content)
    except InvalidInputError:
        raise
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        raise InvalidInputError(f"{path} is damaged: it is not XML ({shortly(error)}).", code="xml") from error


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put a place, such as the file and the object in it, before messages of `InvalidInputError` from within."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{place}: {error}", code=error.code, argument=error.argument, value=error.value
        ) from error


def number(value: Any, what: str) -> float:
    """Return a finite number of usual size, given as such or as text."""
    try:
        parsed = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        parsed = math.nan
    if not abs(parsed) <= LARGEST:
        size = f" up to {LARGEST:g}" if abs(parsed) > LARGEST else ""
        raise InvalidInputError(
            f"{what} must be a number{size}, got {shortly(repr(value))}.", code="number", argument=what
        )
    return parsed


def numbers(values: Any, what: str, n: int | None = None) -> list[float]:
    """Return a list of numbers, of this length if it is given."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or n not in (None, len(values)):
        wanted = "numbers" if n is None else f"{n} numbers"
        raise InvalidInputError(
            f"{what} must be a list of {wanted}, got {shortly(repr(values))}.", code="list-of-numbers", argument=what
        )
    return [number(value, what) for value in values]


def points(values: Any, what: str, least: int = 3) -> Floats:
    """Return corners (x, y) from a list of pairs."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or len(values) < least:
        raise InvalidInputError(
            f"{what} must be a list of at least {least} points, got {shortly(repr(values))}.",
            code="polygon-points",
            argument=what,
        )
    pairs = [numbers(pair[:2] if isinstance(pair, list | tuple) else pair, what, 2) for pair in values]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def box_of(x: float, y: float, width: float, height: float) -> Floats:
    """Return a box, which must have an area."""
    if not (width > 0 and height > 0):
        raise InvalidInputError(f"width and height must be above 0, got {width:g} and {height:g}.", code="box-size")
    return np.array([x, y, width, height])


def box_between(left: float, top: float, right: float, bottom: float) -> Floats:
    """Return the box between two corners."""
    if not (right > left and bottom > top):
        raise InvalidInputError(
            f"the right and lower edge must exceed the left and upper, got {left:g}, {top:g}, {right:g}, {bottom:g}.",
            code="box-size",
        )
    return np.array([left, top, right - left, bottom - top])


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object of JSON."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"{what} must be an object, got {shortly(repr(value))}.", code="object", argument=what)
    return value


def listed(value: Any, what: str) -> list[Any]:
    """Return a list of JSON."""
    if not isinstance(value, list):
        raise InvalidInputError(f"{what} must be a list, got {shortly(repr(value))}.", code="list", argument=what)
    return value


def text_or_none(value: Any) -> str | None:
    """Return a label or name as text, None if it is missing or empty."""
    return None if value is None or isinstance(value, dict | list) else str(value).strip() or None


def shortly(value: object) -> str:
    """Return the text of a value, cut short for errors."""
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")
