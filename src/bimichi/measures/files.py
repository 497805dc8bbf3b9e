"""Model files: one versioned format, no pickle, written atomically, checked when read.

A model is a JSON header and named float64 arrays. Small arrays stand inside the JSON; larger ones make the file a ZIP
(``.npz``) of ``header.json`` and one ``.npy`` member per array. See docs/model-format.md.
"""

import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.lib import format as npy

from bimichi._files import atomic_write
from bimichi._types import Floats
from bimichi._version import __version__
from bimichi.errors import InvalidInputError, ModelFileError

FORMAT = "bimichi-model"
VERSION = 4
INLINE_LIMIT = 3**7
DOCUMENT_LIMIT = 2**20
SIZE_LIMIT = 2**28
"""Bytes that a model, or any member of it, may take: a bi-capacity of 14 sources takes 38 million."""

Arrays = dict[str, Floats]


def write_model(path: str | PathLike[str], kind: str, header: dict[str, Any], arrays: Arrays, version: int = 1) -> None:
    """Write a model; `header` must fit JSON, `version` is that of the format which can read it."""
    document = {"format": FORMAT, "version": version, "kind": kind, "bimichi": __version__, **header}
    if sum(array.size for array in arrays.values()) <= INLINE_LIMIT:
        document["arrays"] = {name: array.tolist() for name, array in arrays.items()}
        text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
        atomic_write(path, lambda file: file.write(text.encode()))
        return

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(document, allow_nan=False))
            for name, array in arrays.items():
                buffer = BytesIO()
                npy.write_array(buffer, array.astype("<f8"), allow_pickle=False)
                archive.writestr(f"{name}.npy", buffer.getvalue())

    atomic_write(path, write)


def read_model(path: str | PathLike[str], *kinds: str) -> tuple[dict[str, Any], Arrays]:
    """Read a model of one of these kinds: its header and its arrays, not yet interpreted, or a `ModelFileError`."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ModelFileError(f"Cannot read the model file {path}: {error.strerror or error}.") from error
    except (ValueError, TypeError) as error:  # a path with a NUL in it, or no path at all
        raise ModelFileError(f"Cannot read the model file {path!r}: {error}.") from error
    archive = content[:2] == b"PK"
    limit = SIZE_LIMIT if archive else DOCUMENT_LIMIT
    try:
        if len(content) > limit:
            raise ModelFileError(f"it has more than {limit:,} bytes.")
        header, arrays = (_read_archive if archive else _read_document)(content)
        if header.get("kind") not in kinds:
            raise ModelFileError(f"it holds a {header.get('kind')!r}, not a {kinds[0]!r}.")
        return header, arrays
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not a valid bimichi model file: {error}") from error


@contextmanager
def reading(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Report errors in the content of a file as a `ModelFileError` that names the file."""
    try:
        yield
    except KeyError as error:
        raise ModelFileError(f"{path} is not a valid {kind} file: it lacks {error}.") from error
    except (InvalidInputError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a valid {kind} file: {error}") from error


def _check_header(header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise ModelFileError(f"its format is {header.get('format')!r}, not {FORMAT!r}.")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"it has no valid format version, but {version!r}.")
    if version > VERSION:
        raise ModelFileError(
            f"it is of format version {version}; this bimichi {__version__} reads up to {VERSION}. "
            "Upgrade bimichi to read it."
        )


def _read_document(content: bytes) -> tuple[dict[str, Any], Arrays]:
    header = _parse(content)
    _check_header(header)
    inline = header.pop("arrays", None)
    if not isinstance(inline, dict):
        raise ModelFileError("its arrays are missing.")
    arrays = {}
    for name, values in inline.items():
        if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
            raise ModelFileError(f"its array {name!r} is not a list of numbers.")
        try:
            arrays[name] = np.array([float(value) for value in values])
        except OverflowError as error:
            raise ModelFileError(f"its array {name!r} holds a number that is too large.") from error
    return header, arrays


def _read_archive(content: bytes) -> tuple[dict[str, Any], Arrays]:
    # Whatever zipfile and numpy raise for damaged or hostile bytes, the file is at fault: one error for all.
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            header = _parse(_unpacked(archive, archive.getinfo("header.json")))
            _check_header(header)
            arrays = {
                member.filename.removesuffix(".npy"): _read_array(_unpacked(archive, member))
                for member in archive.infolist()
                if member.filename != "header.json"
            }
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"it is a damaged archive ({error}).") from error
    return header, arrays


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member's content, without unpacking more than the limit, whatever size it claims to have."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelFileError(f"{member.filename} is compressed in a way that bimichi does not use.")
    with archive.open(member) as file:
        content = file.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise ModelFileError(f"it unpacks to more than {SIZE_LIMIT:,} bytes.")
    return content


def _read_array(content: bytes) -> Floats:
    array = npy.read_array(BytesIO(content), allow_pickle=False)
    if array.dtype != np.float64 or array.ndim != 1:
        raise ModelFileError(f"it holds an array of type {array.dtype} and shape {array.shape}.")
    return array.astype(np.float64)


def _parse(content: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a number of JSON")

    def finite(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"the number {text[:20]} is too large")
        return value

    try:
        header = json.loads(content.decode("utf-8"), parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its JSON cannot be read ({error}).") from error
    if not isinstance(header, dict):
        raise ModelFileError("its JSON is not an object.")
    return header
