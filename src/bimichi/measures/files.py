"""Model files: one versioned format, no pickle, written atomically, checked when read.

A model is a JSON header and named float64 arrays. Small arrays are part of the JSON; larger ones make the file a ZIP
(``.npz``) of ``header.json`` and one ``.npy`` member per array. See docs/model-format.md.
"""

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.lib import format as npy

from bimichi._checks import check_choice
from bimichi._files import atomic_write
from bimichi._types import Floats, Ints
from bimichi._version import __version__
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.measures.lattice import Lattice

FORMAT = "bimichi-model"
VERSION = 1
INLINE_LIMIT = 3**7
DOCUMENT_LIMIT = 2**20
SIZE_LIMIT = 2**28
"""Bytes that a model may take, all members of an archive together: a bi-capacity of 14 sources takes 38 million."""
DIRECTORY_LIMIT = 2**12
"""Bytes that the directory of an archive may take; zipfile reads all of it before anything can be checked."""
DEPTH_LIMIT = 32
"""Depth to which lists and objects of the header may be nested."""
USAGE = ("touched", "weighted")
ARRAYS = ("values", "codes", "terms", "centre", "factor", "polarity", "history", *USAGE)
"""Arrays that a model may hold, besides counts that its training names."""

Arrays = dict[str, Floats]


def write_model(path: str | PathLike[str], kind: str, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a model, whose `header` must fit JSON."""
    document = {"format": FORMAT, "version": VERSION, "kind": kind, "bimichi": __version__, **header}
    if sum(array.size for array in arrays.values()) <= INLINE_LIMIT:
        document["arrays"] = {name: array.tolist() for name, array in arrays.items()}
        text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
        # Labels of users may have lone surrogates, which are then escapes of JSON.
        atomic_write(path, lambda file: file.write(text.encode(errors="backslashreplace")))
        return

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(document, allow_nan=False))
            for name, array in arrays.items():
                buffer = BytesIO()
                npy.write_array(buffer, array.astype("<f8"), allow_pickle=False)
                archive.writestr(f"{name}.npy", buffer.getvalue())

    atomic_write(path, write)


EXPECTED = "Name a file that `bimichi train` or `save` wrote."


def read_model(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read a model of this kind: its header and its arrays, not yet interpreted, or a `ModelFileError`."""
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # so that no more memory is taken than the file needs
            content = file.read(min(max(size, DOCUMENT_LIMIT), SIZE_LIMIT) + 1)
    except OSError as error:
        raise ModelFileError(
            f"Cannot read the model file {path}: {error.strerror or error}. {EXPECTED}", code="model-unreadable"
        ) from error
    except (ValueError, TypeError) as error:  # a path with a NUL in it, or no path at all
        raise ModelFileError(f"Cannot read the model file {path!r}: {error}.", code="model-unreadable") from error
    archive = content[:2] == b"PK"
    limit = SIZE_LIMIT if archive else DOCUMENT_LIMIT
    try:
        if len(content) > limit:
            raise ModelFileError(f"it has more than {limit:,} bytes.", code="model-large")
        header, arrays = (_read_archive if archive else _read_document)(content)
        _check_names(header, arrays)
        if header.get("kind") != kind:
            raise ModelFileError(f"it holds a {header.get('kind')!r}, not a {kind!r}.", code="model-of-another")
        return header, arrays
    except ModelFileError as error:
        raise ModelFileError(
            f"{path} is not a valid bimichi model file: {error}",
            code=error.code,
            argument=error.argument,
            value=error.value,
        ) from error


@contextmanager
def reading(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Report errors in the content of a file as a `ModelFileError` that names the file."""
    try:
        yield
    except KeyError as error:
        raise ModelFileError(
            f"{path} is not a valid {kind} file: it lacks {error}.", code="model-incomplete"
        ) from error
    except (InvalidInputError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(
            f"{path} is not a valid {kind} file: {error}", code=getattr(error, "code", "model-content")
        ) from error


def _check_header(header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise ModelFileError(f"its format is {header.get('format')!r}, not {FORMAT!r}.", code="model-format")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its format version is not valid: {version!r}.", code="model-version")
    if version > VERSION:
        raise ModelFileError(
            f"it is of format version {version}; this bimichi {__version__} reads up to {VERSION}. "
            "Upgrade bimichi to read it.",
            code="model-version",
        )


def _read_document(content: bytes) -> tuple[dict[str, Any], Arrays]:
    header = _parse(content)
    _check_header(header)
    inline = header.pop("arrays", None)
    if not isinstance(inline, dict):
        raise ModelFileError("its arrays are missing.", code="model-arrays")
    arrays = {}
    for name, values in inline.items():
        if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
            raise ModelFileError(f"its array {name!r} is not a list of numbers.", code="model-array-type")
        try:
            arrays[name] = np.array([float(value) for value in values])
        except OverflowError as error:
            raise ModelFileError(
                f"its array {name!r} holds a number that is too large.", code="model-array-type"
            ) from error
    return header, arrays


def _read_archive(content: bytes) -> tuple[dict[str, Any], Arrays]:
    # Whatever zipfile and numpy raise for damaged or hostile bytes, the file is at fault: one error for all.
    try:
        end = content[-22:]
        if end[:4] != b"PK\5\6" or end[20:] != b"\0\0" or content[-42:-38] == b"PK\6\7":  # cut, commented, of ZIP64
            raise ModelFileError("it is a damaged archive (its directory is not at its end).", code="model-archive")
        if int.from_bytes(end[12:16], "little") > DIRECTORY_LIMIT:
            raise ModelFileError("it is an archive of too many members.", code="model-archive")
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise ModelFileError("it holds two members of one name.", code="model-archive")
            document = _unpacked(archive, "header.json", DOCUMENT_LIMIT)
            header, left = _parse(document), SIZE_LIMIT - len(document)
            _check_header(header)
            names.remove("header.json")
            _check_names(header, [name.removesuffix(".npy") if name.endswith(".npy") else name for name in names])
            arrays = {}
            for name in names:
                member = _unpacked(archive, name, left)
                left -= len(member)
                arrays[name.removesuffix(".npy")] = _read_array(member)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"it is a damaged archive ({error}).", code="model-archive") from error
    return header, arrays


def _check_names(header: dict[str, Any], names: Iterable[str]) -> None:
    """Refuse arrays that no model has."""
    training = header.get("training")
    counted = training.get("usage") if isinstance(training, dict) else None
    usage = [name for name in counted if isinstance(name, str)] if isinstance(counted, list) else []
    allowed = {*ARRAYS, *usage, *(f"{name}_codes" for name in (*USAGE, *usage))}
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise ModelFileError(f"it holds {unknown[0][:40]!r}, which is not part of a model.", code="model-member")


def _unpacked(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Return a member's content, without unpacking more than the limit, whatever size it claims to have."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelFileError(
            f"{name} is compressed in a way that bimichi does not use.", code="model-compression", argument=name
        )
    with archive.open(member) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        whole = f"its {name}" if name == "header.json" else "it"
        raise ModelFileError(
            f"{whole} unpacks to more than {DOCUMENT_LIMIT if whole != 'it' else SIZE_LIMIT:,} bytes.",
            code="model-large",
        )
    return content


def _read_array(content: bytes) -> Floats:
    file = BytesIO(content)
    if npy.read_magic(file) != (1, 0):
        raise ModelFileError("it holds an array in a format that bimichi does not use.", code="model-array-format")
    shape, _, kind = npy.read_array_header_1_0(file)
    if kind != np.dtype("<f8") or len(shape) != 1:
        raise ModelFileError(f"it holds an array of type {kind} and shape {shape}.", code="model-array-type")
    array = np.frombuffer(content, "<f8", offset=file.tell())
    if array.shape != shape:
        raise ModelFileError(
            f"it holds {array.size} numbers in place of an array of shape {shape}.", code="model-array-size"
        )
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
        raise ModelFileError(f"its JSON cannot be read ({error}). {EXPECTED}", code="json") from error
    if not isinstance(header, dict):
        raise ModelFileError("its JSON is not an object.", code="json")
    _check_depth(header)
    return header


def _check_depth(header: dict[str, Any]) -> None:
    """Refuse lists in lists without end, which functions that go through a header by recursion could not finish."""
    level: list[Any] = [header]
    for _ in range(DEPTH_LIMIT):
        level = [part for whole in level for part in (whole.values() if isinstance(whole, dict) else whole)]
        level = [part for part in level if isinstance(part, dict | list)]
        if not level:
            return
    raise ModelFileError(f"its JSON is nested more than {DEPTH_LIMIT} deep.", code="json-depth")


COMPACT_FROM = 2**11
"""Smaller measures are stored whole, so that people can read them."""

COMPLETIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "middle": lambda lower, upper: (lower + upper) / 2,
    "lowest": lambda lower, upper: lower,
    "highest": lambda lower, upper: upper,
    "nearest-zero": lambda lower, upper: np.clip(0.0, lower, upper),
}
"""Ways to choose unknown values between their bounds; each is monotone because both bounds are."""

FOLLOWING = {rule: COMPLETIONS[rule] for rule in ("lowest", "highest", "nearest-zero")}
"""Rules by which an element need not be stored: they compute it from the values just below and just above it."""


def filled(lattice: Lattice, values: Floats, completion: str) -> Floats:
    """Fill the NaN of values that do not contradict each other; the boundary counts as known. O(m base^m)."""
    bounded = lattice.with_boundary(values)
    return np.where(np.isnan(bounded), COMPLETIONS[completion](*lattice.bounds(values)), bounded)


def pack_values(lattice: Lattice, values: Floats) -> tuple[dict[str, Any], Arrays]:
    """Return header fields and arrays: all `values`, or, if smaller, `completion`, and `values` of `codes`."""
    whole = {"values": values}
    if lattice.size < COMPACT_FROM:
        return {}, whole
    below, above = lattice.beside(values)
    kept = {rule: np.flatnonzero(values != follow(below, above)) for rule, follow in FOLLOWING.items()}
    for rule, codes in sorted(kept.items(), key=lambda item: len(item[1])):
        codes = np.setdiff1d(codes, list(lattice.fixed))
        if 2 * len(codes) >= lattice.size:
            break
        if np.array_equal(_completed(lattice, codes, values[codes], rule), values):  # else rounding broke the order
            return {"completion": rule}, {"codes": codes.astype(np.float64), "values": values[codes]}
    return {}, whole


def unpack_values(lattice_of: Callable[[int], Lattice], header: dict[str, Any], arrays: Arrays) -> Floats:
    """Return the values of the measure in a model file; `lattice_of` makes the lattice of that many sources."""
    values = arrays["values"]
    if "completion" not in header:
        return values
    rule = check_choice(header["completion"], "its completion", FOLLOWING)
    if not isinstance(header["source_names"], list):
        raise InvalidInputError("its source_names must be a list.", code="model-names")
    lattice = lattice_of(len(header["source_names"]))
    codes = _checked(arrays["codes"], values, lattice.size)
    if np.isin(codes, list(lattice.fixed)).any() or np.isnan(values).any():
        raise InvalidInputError(
            "its known elements must be numbers, and none of them on the boundary.", code="model-elements"
        )
    return _completed(lattice, codes, values, rule)


def pack_counts(name: str, counts: Ints) -> Arrays:
    """Return counts as arrays of a model file: whole, or, if smaller, those above zero and their codes."""
    used = np.flatnonzero(counts)
    if len(counts) < COMPACT_FROM or 2 * len(used) >= len(counts):
        return {name: counts.astype(np.float64)}
    return {f"{name}_codes": used.astype(np.float64), name: counts[used].astype(np.float64)}


def unpack_counts(name: str, arrays: Arrays, size: int) -> Ints:
    """Return the counts of `size` elements; the inverse of `pack_counts`."""
    counts = arrays[name]
    if not ((counts >= 0) & (counts < 2**53) & (counts == np.floor(counts))).all():  # which NaN is not either
        raise InvalidInputError(
            f"its array {name} must hold counts: whole numbers that are not negative.", code="model-counts"
        )
    if f"{name}_codes" not in arrays:
        if counts.shape != (size,):
            raise InvalidInputError(f"its array {name} does not fit the number of elements.", code="model-array-size")
        return counts.astype(np.int64)
    whole = np.zeros(size, np.int64)
    whole[_checked(arrays[f"{name}_codes"], counts, size)] = counts
    return whole


def _completed(lattice: Lattice, codes: Ints, values: Floats, rule: str) -> Floats:
    whole = np.full(lattice.size, np.nan)
    whole[codes] = values
    return filled(lattice, whole, rule)


def _checked(codes: Floats, values: Floats, size: int) -> Ints:
    """Return codes as whole numbers: each once, within range, and as many as values."""
    if codes.shape != values.shape:
        raise InvalidInputError(f"it has {len(codes)} codes for {len(values)} values.", code="model-codes")
    if not np.isfinite(codes).all() or not ((codes >= 0) & (codes < size) & (codes == np.floor(codes))).all():
        raise InvalidInputError(f"its codes must be whole numbers in 0..{size - 1}.", code="model-codes")
    if len(np.unique(codes)) < len(codes):
        raise InvalidInputError("some of its codes occur twice.", code="model-codes")
    return codes.astype(np.int64)
