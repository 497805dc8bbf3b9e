"""GeoPackage and shapefile: polygons and points on a map, read with pyogrio."""

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._extras import import_optional
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.geojson import label_among
from bimichi.io.annotations.parse import LARGEST, check_bytes, naming, shortly
from bimichi.io.images import reading
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations
from bimichi.scenes.shapes import Disc, Polygons, Shape

GEOPACKAGE = b"SQLite format 3\0"
SHAPEFILE = b"\x00\x00\x27\x0a"
POINT, POLYGON, MULTIPOINT, MULTIPOLYGON = 1, 3, 4, 6  # of WKB
LINES = (2, 5)


def _recognises(path: Path, start: bytes) -> bool:
    if start.startswith(GEOPACKAGE):
        return path.suffix.lower() == ".gpkg" or start[68:72] == b"GPKG"
    return start.startswith(SHAPEFILE) and path.suffix.lower() == ".shp"


def read_vector(path: Path) -> Annotations:
    """Read all features of the one layer of a file; those without area, such as lines, are left out."""
    pyogrio = import_optional("pyogrio")
    check_bytes(path)
    with reading(path, "it is damaged", shortly), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layers = [str(layer) for layer in pyogrio.list_layers(path)[:, 0]]
        if len(layers) != 1:
            raise InvalidInputError(
                f"it has {len(layers)} layers; save the one you need as a separate file.", code="layers"
            )
        meta, _, shapes, columns = pyogrio.raw.read(path, layer=layers[0], force_2d=True)
    said = [f"{path}: {shortly(warning.message)}" for warning in caught[:3]]
    rows = [dict(zip(meta["fields"], row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * len(shapes)
    objects, lines = [], 0
    for k, (shape, row) in enumerate(zip(shapes, rows, strict=True)):
        with naming(f"{path}, feature {k + 1}"):
            places = _places(shape) if shape is not None else []
            lines += not places
            objects += [Found(place, label_among(row)) for place in places]
    if objects and meta["crs"] is None:
        raise InvalidInputError(
            f"{path} names no coordinate reference system; a shapefile keeps it in a .prj file.", code="crs-missing"
        )
    said += [f"{path}: {lines} features without area, such as lines, are left out."] if lines else []
    return AnnotationTable({None: image_annotations(objects, "map", meta["crs"])}, " ".join(said))


def _places(content: bytes) -> list[Floats | Shape]:
    try:
        kind, geometry = _geometry(memoryview(content))[:2]
    except (struct.error, ValueError, IndexError) as error:
        raise InvalidInputError(f"its geometry is damaged ({error}).", code="geometry-damaged") from error
    if kind == POINT:
        return [Disc(*geometry)] if np.isfinite(geometry).all() else []
    if kind == MULTIPOINT:
        return [Disc(*point) for point in geometry]
    return [Polygons(tuple(geometry))] if geometry else []


def _geometry(data: memoryview, at: int = 0) -> tuple[int, Any, int]:
    """Return the kind of a geometry in WKB, its points or the rings of its polygons, and where it ends."""
    order = "<" if data[at] == 1 else ">"
    kind, n = struct.unpack_from(f"{order}II", data, at + 1)
    kind &= 0xFFFF
    if kind == POINT:
        return kind, _pairs(data, order, at + 5, 1)[0], at + 21
    at += 9
    if kind in LINES:
        return kind, [], at
    if kind == POLYGON:
        rings = []
        for _ in range(n):
            (length,) = struct.unpack_from(f"{order}I", data, at)
            ring = _pairs(data, order, at + 4, length)
            at += 4 + 16 * length
            if length < 4:
                raise ValueError(f"a ring has {length} points")
            rings.append(ring[:-1] if (ring[0] == ring[-1]).all() else ring)
        return kind, [tuple(rings)] if rings else [], at
    if kind not in (MULTIPOINT, MULTIPOLYGON):
        raise InvalidInputError(
            f"geometry of the type {kind} of WKB is not known; use polygons.", code="geometry-type", argument="geometry"
        )
    parts: list[Any] = []
    for _ in range(n):
        inner, geometry, at = _geometry(data, at)
        if inner not in (POINT, POLYGON):
            raise ValueError(f"type {inner} within type {kind}")
        parts += [geometry] if inner == POINT else geometry
    return kind, parts, at


def _pairs(data: memoryview, order: str, at: int, n: int) -> Floats:
    pairs = np.frombuffer(data, np.dtype(f"{order}f8"), 2 * n, at).astype(np.float64).reshape(n, 2)
    if not (np.abs(pairs) <= LARGEST).all():
        raise ValueError(f"a coordinate is beyond {LARGEST:g}")
    return pairs


VECTOR = AnnotationFormat(
    "vector",
    "GeoPackage or shapefile of one layer: polygons and points on a map, for georeferenced images; needs pyogrio",
    _recognises,
    read_vector,
)
