"""Polygons and points on a map, which a georeferenced image turns into pixels: GeoJSON, GeoPackage, shapefile."""

import re
import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bimichi.io.annotations.parse as load
from bimichi._extras import import_optional
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.io.images import reading
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, Units, image_annotations
from bimichi.scenes.shapes import Disc, Polygons, Shape

WGS84 = "OGC:CRS84"
"""The reference system of GeoJSON that names none: longitude, latitude."""

LABELS = ("label", "class", "category", "name", "class_name", "type")
"""Properties that may hold the class of a feature, in the order in which they are tried, in any case."""

TYPE = re.compile(rb'"type"\s*:\s*"(FeatureCollection|Feature)"')


def _recognises_geojson(path: Path, start: bytes) -> bool:
    content = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return content.startswith(b"{") and (path.suffix.lower() == ".geojson" or bool(TYPE.search(content)))


def read_geojson(path: Path) -> Annotations:
    """Read all features; with a property image, by image. The member ``"crs": null`` says that units are pixels."""
    data = load.mapping(load.read_json(path), str(path))
    with load.naming(str(path)):
        features = load.listed(data.get("features"), "features") if data.get("type") != "Feature" else [data]
        pixels = "crs" in data and data["crs"] is None
        crs = None if pixels else _crs(data.get("crs"))
        objects: dict[str | None, list[Found]] = {}
        lines = 0
        for k, feature in enumerate(features):
            with load.naming(f"feature {k + 1}"):
                entry = load.mapping(feature, "it")
                about = load.mapping(entry.get("properties") or {}, "properties")
                geometry = load.mapping(entry.get("geometry") or {"type": "none"}, "geometry")
                places = _places_of(geometry, about, pixels)
                lines += not places
                some = objects.setdefault(load.text_or_none(about.get("image")), [])
                some += [Found(place, label_among(about), about.get("ignored") is True) for place in places]
    for image in load.listed(data.get("images", []), "images"):  # those without features
        objects.setdefault(load.text_or_none(image), [])
    said = f"{path}: {lines} features without area, such as lines, are left out." if lines else ""
    units: Units = "pixels" if pixels else "map"
    by_image = objects or {None: []}
    return AnnotationTable({image: image_annotations(some, units, crs) for image, some in by_image.items()}, said)


def label_among(properties: Mapping[str, Any]) -> str | None:
    """Return the class of a feature by its properties."""
    lower = {str(key).lower(): value for key, value in properties.items()}
    return next(filter(None, (load.text_or_none(lower.get(name)) for name in LABELS)), None)


def _crs(member: Any) -> str:
    """Return the reference system of the member crs, which files of GDAL and QGIS have."""
    if member is None:
        return WGS84
    name = load.mapping(load.mapping(member, "crs").get("properties"), "properties of crs").get("name")
    if not isinstance(name, str):
        raise InvalidInputError(
            f"crs must have a name, such as 'EPSG:32630', got {load.shortly(repr(name))}.",
            code="crs-name",
            argument="crs",
        )
    return name


def _places_of(geometry: Mapping[str, Any], about: Mapping[str, Any], pixels: bool) -> list[Floats | Shape]:
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if pixels and isinstance(about.get("box"), list):  # written by bimichi: exact, where corners are rounded
        return [load.box_of(*load.numbers(about["box"], "box", 4))]
    if kind == "Polygon":
        return [Polygons((_rings(coordinates),), is_box=about.get("box") is True)]
    if kind == "MultiPolygon":
        parts = load.listed(coordinates, "coordinates") if coordinates else []
        return [Polygons(tuple(map(_rings, parts)))] if parts else []
    if kind in ("Point", "MultiPoint"):
        radius = load.number(about.get("radius_pixels", 0), "radius_pixels")
        at = load.points([coordinates] if kind == "Point" else coordinates, "coordinates", 1)
        return [Disc(x, y, max(radius, 0)) for x, y in at]
    if kind == "GeometryCollection":
        some = load.listed(geometry.get("geometries"), "geometries")
        if any(isinstance(member, dict) and member.get("type") == kind for member in some):
            raise InvalidInputError(
                "a GeometryCollection within another is not read; take it apart.", code="geometry-nested"
            )
        return [place for member in some for place in _places_of(load.mapping(member, "a geometry"), {}, pixels)]
    if kind in ("none", "LineString", "MultiLineString"):
        return []
    raise InvalidInputError(
        f"geometry of type {load.shortly(repr(kind))} is not known; use a Polygon.",
        code="geometry-type",
        argument="geometry",
    )


def _rings(coordinates: Any) -> tuple[Floats, ...]:
    rings = tuple(load.points(ring, "coordinates", 4) for ring in load.listed(coordinates, "coordinates"))
    if not rings:
        raise InvalidInputError("a polygon must have at least one ring.", code="polygon-rings")
    return tuple(ring[:-1] if (ring[0] == ring[-1]).all() else ring for ring in rings)


GEOJSON = AnnotationFormat(
    "geojson", "GeoJSON: polygons and points on a map, for georeferenced images", _recognises_geojson, read_geojson
)


GEOPACKAGE = b"SQLite format 3\0"
SHAPEFILE = b"\x00\x00\x27\x0a"
POINT, POLYGON, MULTIPOINT, MULTIPOLYGON = 1, 3, 4, 6  # of WKB
LINE_KINDS = (2, 5)


def _recognises_vector(path: Path, start: bytes) -> bool:
    if start.startswith(GEOPACKAGE):
        return path.suffix.lower() == ".gpkg" or start[68:72] == b"GPKG"
    return start.startswith(SHAPEFILE) and path.suffix.lower() == ".shp"


def read_vector(path: Path) -> Annotations:
    """Read all features of the one layer of a file; those without area, such as lines, are left out."""
    pyogrio = import_optional("pyogrio")
    load.check_bytes(path)
    with reading(path, "it is damaged", load.shortly), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layers = [str(layer) for layer in pyogrio.list_layers(path)[:, 0]]
        if len(layers) != 1:
            raise InvalidInputError(
                f"it has {len(layers)} layers; save the one you need as a separate file.", code="layers"
            )
        meta, _, shapes, columns = pyogrio.raw.read(path, layer=layers[0], force_2d=True)
    said = [f"{path}: {load.shortly(warning.message)}" for warning in caught[:3]]
    rows = [dict(zip(meta["fields"], row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * len(shapes)
    objects, lines = [], 0
    for k, (shape, row) in enumerate(zip(shapes, rows, strict=True)):
        with load.naming(f"{path}, feature {k + 1}"):
            places = _places_in(shape) if shape is not None else []
            lines += not places
            objects += [Found(place, label_among(row)) for place in places]
    if objects and meta["crs"] is None:
        raise InvalidInputError(
            f"{path} names no coordinate reference system; a shapefile keeps it in a .prj file.", code="crs-missing"
        )
    said += [f"{path}: {lines} features without area, such as lines, are left out."] if lines else []
    return AnnotationTable({None: image_annotations(objects, "map", meta["crs"])}, " ".join(said))


def _places_in(content: bytes) -> list[Floats | Shape]:
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
    if kind in LINE_KINDS:
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
    if not (np.abs(pairs) <= load.LARGEST).all():
        raise ValueError(f"a coordinate is beyond {load.LARGEST:g}")
    return pairs


VECTOR = AnnotationFormat(
    "vector",
    "GeoPackage or shapefile of one layer: polygons and points on a map, for georeferenced images; needs pyogrio",
    _recognises_vector,
    read_vector,
)
