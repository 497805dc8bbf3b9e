"""From a fused map to targets, connected regions above a threshold; and files of them: CSV, COCO and GeoJSON."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi._types import Flags, Floats, Ints
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.scenes.grid import Placement
from bimichi.scenes.shapes import Polygon, outline, runs_of


@dataclass(frozen=True, eq=False, repr=False)  # arrays do not compare to one bool, and do not fit on a line
class Detections:
    """Targets that were found in a map, the highest score first.

    Attributes
    ----------
    regions : ndarray of int, shape (height, width)
        Which target each pixel belongs to, from 1; 0 for none.
    boxes : ndarray of shape (n, 4)
        The box (x, y, width, height) around each target, in pixels.
    scores : ndarray of shape (n,)
        The mean of the map over each target.
    sizes : ndarray of int, shape (n,)
        The number of pixels of each target.
    """

    regions: Ints
    boxes: Floats
    scores: Floats
    sizes: Ints

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        height, width = self.regions.shape
        return f"Detections({len(self)} in {width} x {height} pixels)"

    @property
    def mask(self) -> Flags:
        """The pixels that belong to a target, shape (height, width)."""
        return np.asarray(self.regions > 0)

    @cached_property
    def polygons(self) -> list[list[Polygon]]:
        """The outline of each target along the edges of its pixels: polygons of rings of corners (x, y).

        Parts that meet only at corners are polygons of their own. The first ring of a polygon is its outer one, the
        others are holes; each is closed.
        """
        outlines = []
        for k, box in enumerate(self.boxes.astype(int).tolist()):
            x, y, width, height = box
            outlines.append(outline(self.regions[y : y + height, x : x + width] == k + 1, x, y))
        return outlines


def detect(
    fused: ArrayLike,
    decision: Any = None,
    *,
    threshold: float | None = None,
    min_size: int | None = None,
    smooth: tuple[float, float] | None = None,
) -> Detections:
    """Find targets in a fused map: 8-connected regions of pixels at or above a threshold.

    Parameters
    ----------
    fused : array-like of float, shape (height, width)
        The map, as `FusionRule.fuse` returns it. Pixels with NaN belong to no target.
    decision : Decision, or FusionRule or fitted model with one, optional
        The threshold, least size and smoothing.
    threshold, min_size, smooth
        In place of those of the decision; see `bimichi.Decision`.

    Returns
    -------
    Detections
        With mask, boxes, scores, sizes and outlines.

    Examples
    --------
    >>> found = detect(np.array([[0.9, 0.8, 0.0, 0.6], [0.1, 0.9, 0.0, 0.2]]), threshold=0.5, min_size=2)
    >>> found.boxes, found.sizes
    (array([[0., 0., 2., 2.]]), array([3]))
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    used = decision_of(decision, threshold, min_size, smooth)
    values = np.asarray(fused)
    array = values if values.dtype.kind == "f" else values.astype(np.float64)
    if array.ndim != 2:
        raise InvalidInputError(
            f"fused must be a map of shape (height, width), got shape {array.shape}.",
            code="map-shape",
            argument="fused",
        )
    array = used.smoothed(array)
    regions, n = ndimage.label(used.find(array), structure=np.ones((3, 3)))
    sizes = np.bincount(regions.ravel(), minlength=n + 1)[1:]
    total = np.bincount(regions.ravel(), np.where(regions.ravel() > 0, array.ravel(), 0), minlength=n + 1)[1:]
    scores = total / np.maximum(sizes, 1)
    kept = np.flatnonzero(sizes >= used.min_size)
    order = kept[np.argsort(-scores[kept], kind="stable")]
    number = np.zeros(n + 1, np.int64)
    number[order + 1] = np.arange(1, len(order) + 1)
    slices = ndimage.find_objects(regions)
    boxes = [(c.start, r.start, c.stop - c.start, r.stop - r.start) for r, c in (slices[k] for k in order)]
    return Detections(number[regions], np.array(boxes, float).reshape(-1, 4), scores[order], sizes[order])


def decision_of(
    model: Any = None,
    threshold: float | None = None,
    min_size: int | None = None,
    smooth: tuple[float, float] | None = None,
) -> Decision:
    """Return the decision of a rule or model, or as given, with some of its parts replaced."""
    decision = getattr(getattr(model, "rule_", model), "decision", model)
    decision = Decision() if decision is None else decision
    if not isinstance(decision, Decision):
        raise InvalidInputError(
            f"decision must be a Decision, or a rule or model with one, got {type(model).__name__}.",
            code="decision-kind",
            argument="decision",
            value=model,
        )
    changed: dict[str, Any] = {"threshold": threshold, "min_size": min_size, "smooth": smooth}
    changed["chosen"] = None if threshold is None else "given"
    return replace(decision, **{name: value for name, value in changed.items() if value is not None})


SUFFIXES = (".geojson", ".csv", ".json")
LONGITUDE_LATITUDE = "EPSG:4326"  # rasterio gives longitude first, as GeoJSON asks
DIGITS = 8  # of degrees: about a millimetre


class Georeference(NamedTuple):
    """The place of an image: x' = a x + b y + c, y' = d x + e y + f for six numbers, in the reference system `crs`."""

    transform: tuple[float, ...]
    crs: Any


def write_detections(
    path: str | PathLike[str],
    detections: Detections | Mapping[str, Detections],
    georeferences: Georeference | Mapping[str, Georeference] | None = None,
    label: str = "target",
) -> None:
    """Write detections to a file, whose ending names the format; it appears when it is complete.

    Parameters
    ----------
    path : path
        ``.csv``: one line per target with image, x, y, w, h, label, score and size, in pixels, for `read_boxes`.
        ``.json``: COCO, boxes and outlines in pixels. ``.geojson``: outlines in longitude and latitude (RFC 7946), for
        georeferenced maps.
    detections : Detections, or mapping of str to Detections
        Those of one image, or of several by name.
    georeferences : Georeference, or mapping of str to Georeference, optional
        Where the images lie, for ``.geojson``.
    label : str, default="target"
        The class of the targets.
    """
    by_image: Mapping[str, Detections] = {"": detections} if isinstance(detections, Detections) else detections
    places: Mapping[str, Georeference] = (
        {"": georeferences} if isinstance(georeferences, Georeference) else georeferences or {}
    )
    kind = Path(path).suffix.lower()
    if kind not in SUFFIXES:
        raise InvalidInputError(
            f"A file of detections must end in {', '.join(SUFFIXES)}, got {path!s}.",
            code="detections-suffix",
            value=path,
        )
    if kind == ".csv":
        text = _csv(by_image, label)
    else:
        content = _coco(by_image, label) if kind == ".json" else _geojson(by_image, places, label)
        text = json.dumps(content, allow_nan=False)
    atomic_write(path, lambda file: file.write(text.encode()))


def _csv(detections: Mapping[str, Detections], label: str) -> str:
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    named = [*detections] != [""]
    lines.writerow([*(["image"] if named else []), "x", "y", "w", "h", "label", "score", "size"])
    for image, targets in detections.items():
        for box, score, size in zip(
            targets.boxes.tolist(), targets.scores.tolist(), targets.sizes.tolist(), strict=True
        ):
            lines.writerow([*([image] if named else []), *(f"{end:g}" for end in box), label, repr(score), size])
    return file.getvalue()


def _coco(detections: Mapping[str, Detections], label: str) -> dict[str, Any]:
    images: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    for number, (image, targets) in enumerate(detections.items(), 1):
        height, width = targets.regions.shape
        images.append({"id": number, "file_name": image, "width": width, "height": height})
        for k, polygons in enumerate(targets.polygons):
            holes = any(len(polygon) > 1 for polygon in polygons)
            outlines: Any = [polygon[0][:-1].ravel().tolist() for polygon in polygons]
            annotation: dict[str, Any] = {"id": len(objects) + 1, "image_id": number, "category_id": 1, "iscrowd": 0}
            annotation |= {
                "bbox": targets.boxes[k].tolist(),
                "area": int(targets.sizes[k]),
                "score": float(targets.scores[k]),
            }
            if holes:  # which polygons of COCO cannot have, but lengths of runs, column by column
                counts = runs_of(targets.regions == k + 1).counts.tolist()
                outlines = {"size": list(targets.regions.shape), "counts": counts}
            objects.append(annotation | {"segmentation": outlines})
    return {"images": images, "annotations": objects, "categories": [{"id": 1, "name": label}]}


def _geojson(detections: Mapping[str, Detections], places: Mapping[str, Georeference], label: str) -> dict[str, Any]:
    features = []
    for image, targets in detections.items():
        place = places.get(image)
        if place is None or place.crs is None:
            raise InvalidInputError(
                f"{repr(image) if image else 'The map'} is not georeferenced, so that its targets have no longitude "
                "and latitude. Write .csv or .json, which are in pixels.",
                code="detections-not-georeferenced",
            )
        on_map = Placement((targets.regions.shape[0], targets.regions.shape[1]), place.transform)
        for k, polygons in enumerate(targets.polygons):
            rings = [[on_map.to_map(ring) for ring in polygon] for polygon in polygons]
            about = {"label": label, "score": float(targets.scores[k]), "size": int(targets.sizes[k])}
            about |= {"image": image} if image else {}
            features.append({"type": "Feature", "properties": about, "geometry": _geometry(rings, place.crs)})
    return {"type": "FeatureCollection", "features": features}


def _geometry(polygons: list[Polygon], crs: Any) -> dict[str, Any]:
    """Return a polygon, or several, in longitude and latitude."""
    coordinates = [[ring.tolist() for ring in polygon] for polygon in polygons]
    geometry = {"type": "MultiPolygon", "coordinates": coordinates}
    moved = import_optional("rasterio.warp").transform_geom(crs, LONGITUDE_LATITUDE, geometry)["coordinates"]
    turned = [[_directed(ring, outer=k == 0) for k, ring in enumerate(polygon)] for polygon in moved]
    if len(turned) == 1:
        return {"type": "Polygon", "coordinates": turned[0]}
    return {"type": "MultiPolygon", "coordinates": turned}


def _directed(ring: Any, outer: bool) -> list[list[float]]:
    """Return a ring whose direction is that of GeoJSON: counterclockwise if it is the outer one."""
    corners = np.asarray(ring, dtype=np.float64)
    x, y = (corners - corners[0]).T
    counterclockwise = float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) > 0
    rounded: list[list[float]] = np.round(corners if counterclockwise == outer else corners[::-1], DIGITS).tolist()
    return rounded
