"""GeoJSON: polygons and points on a map, which a georeferenced image turns into pixels."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bimichi.io.annotations.parse as load
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, Units, image_annotations
from bimichi.scenes.shapes import Disc, Polygons, Shape

WGS84 = "OGC:CRS84"
"""The reference system of GeoJSON that names none: longitude, latitude."""

LABELS = ("label", "class", "category", "name", "class_name", "type")
"""Properties that may hold the class of a feature, in the order in which they are tried, in any case."""

TYPE = re.compile(rb'"type"\s*:\s*"(FeatureCollection|Feature)"')


def _recognises(path: Path, start: bytes) -> bool:
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
                places = _places(geometry, about, pixels)
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


def _places(geometry: Mapping[str, Any], about: Mapping[str, Any], pixels: bool) -> list[Floats | Shape]:
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
        return [place for member in some for place in _places(load.mapping(member, "a geometry"), {}, pixels)]
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
    "geojson", "GeoJSON: polygons and points on a map, for georeferenced images", _recognises, read_geojson
)
