"""Annotations written as COCO, CSV or GeoJSON, which `read_annotations` reads back as they were."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._files import atomic_write
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.scenes.annotations import Annotations, Found, ImageAnnotations, in_pixels
from bimichi.scenes.grid import Placement
from bimichi.scenes.shapes import Disc, Polygons, Runs, Shape, corners_of, encode_coco, runs_of

Placements = Mapping[str | None, Placement] | Placement | None
Images = dict[str | None, list[Found]]

COLUMNS = ("image", "x", "y", "w", "h", "label", "ignored")


def write_annotations(path: str | PathLike[str], annotations: Annotations, placement: Placements = None) -> None:
    """Write annotations as COCO (.json), CSV (.csv) or GeoJSON (.geojson).

    Parameters
    ----------
    path : str or path
        The file; its suffix decides the format.
    annotations : mapping of str or None to ImageAnnotations
        By image, as `read_annotations` returns them.
    placement : Placement, or mapping of images to Placement, optional
        Size and place of the images. COCO needs the size for discs, polygons with holes and masks without a size;
        GeoJSON is in the coordinates of the map if there is one, else in pixels, which its member crs says by null.

    Raises
    ------
    InvalidInputError
        If the suffix is another, or the format cannot hold an object.

    Notes
    -----
    CSV holds boxes only. COCO holds polygons with holes, and discs, as their pixels. In pixels, numbers are read back
    exactly; map coordinates are rounded as floats are. A mask is written as one object per class.
    """
    writers: dict[str, Callable[[Images, Placements], str]] = {".json": _coco, ".csv": _csv, ".geojson": _geojson}
    try:
        file = Path(path)
    except TypeError as error:
        raise InvalidInputError(
            f"path must be a path, got {path!r}.", code="path", argument="path", value=path
        ) from error
    if file.suffix.lower() not in writers:
        raise InvalidInputError(
            f"path must end in {', '.join(writers)}, which decides the format, got {file.name!r}.",
            code="annotations-suffix",
            argument="path",
            value=file.name,
        )
    images = {image: _objects(objects, placed(placement, image)) for image, objects in annotations.items()}
    text = writers[file.suffix.lower()](images, placement)
    atomic_write(file, lambda opened: opened.write(text.encode()))


def placed(placement: Placements, image: str | None) -> Placement | None:
    """Return the placement of one image."""
    return placement if placement is None or isinstance(placement, Placement) else placement.get(image)


def _objects(annotations: ImageAnnotations, placement: Placement | None) -> list[Found]:
    annotations = in_pixels(annotations, placement)
    objects = annotations.objects
    if annotations.mask is not None:
        size = (annotations.mask.shape[0], annotations.mask.shape[1])
        for value in np.unique(annotations.mask[annotations.mask > 0]).tolist():
            objects.append(Found(runs_of(annotations.mask == value, image=size), f"{value:g}"))
        if annotations.unknown is not None and annotations.unknown.any():
            objects.append(Found(runs_of(annotations.unknown, image=size), None, True))
    return objects


def _coco(images: Images, placement: Placements) -> str:
    labels = sorted({item.label or "" for some in images.values() for item in some})
    data: dict[str, Any] = {
        "images": [],
        "annotations": [],
        "categories": [{"id": k, "name": label} for k, label in enumerate(labels, 1)],
    }
    for number, (image, objects) in enumerate(images.items(), 1):
        where = placed(placement, image)
        sizes = {item.place.image for item in objects if isinstance(item.place, Runs)} - {None}
        size = where.shape if where is not None else next(iter(sizes), None)
        entry = {"id": number, "file_name": image or ""}
        data["images"].append(entry | ({} if size is None else {"height": size[0], "width": size[1]}))
        for item in objects:
            data["annotations"].append(
                {
                    "id": len(data["annotations"]) + 1,
                    "image_id": number,
                    "category_id": labels.index(item.label or "") + 1,
                    "iscrowd": int(item.ignored),
                    **_coco_place(item.place, size, image),
                }
            )
    return json.dumps(data, allow_nan=False)


def _coco_place(place: Floats | Shape, size: tuple[int, int] | None, image: str | None) -> dict[str, Any]:
    if isinstance(place, np.ndarray):
        return {"bbox": place.tolist(), "area": float(place[2] * place[3]), "segmentation": []}
    if isinstance(place, Polygons) and all(len(part) == 1 for part in place.parts):
        return {"bbox": place.box.tolist(), "segmentation": [part[0].ravel().tolist() for part in place.parts]}
    if size is None:
        raise InvalidInputError(
            f"COCO holds discs, polygons with holes and masks by their pixels, for which it needs the size of the "
            f"image {image!r}; pass placement=Placement((height, width)).",
            code="annotations-size",
        )
    mask = np.zeros(size, np.bool_)
    place.paint(mask)
    runs = runs_of(mask)
    counts = {"size": list(size), "counts": encode_coco(runs.counts.tolist())}
    return {"bbox": runs.box.tolist(), "area": int(mask.sum()), "segmentation": counts}


def _csv(images: Images, placement: Placements) -> str:
    text = io.StringIO()
    named = set(images) != {None}
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS if named else COLUMNS[1:])
    for image, objects in images.items():
        start = [image or ""] if named else []
        for item in objects:
            if not isinstance(item.place, np.ndarray):
                raise InvalidInputError(
                    f"CSV holds boxes only, but the image {image!r} has other shapes; write .json (COCO) or .geojson.",
                    code="annotations-boxes-only",
                )
            writer.writerow([*start, *map(repr, item.place.tolist()), item.label or "", int(item.ignored)])
        if not objects and named:
            writer.writerow([*start, "", "", "", "", "", ""])
    return text.getvalue()


def _geojson(images: Images, placement: Placements) -> str:
    on_map = {image: where for image in images if (where := placed(placement, image)) and where.transform is not None}
    systems = {str(where.crs) for where in on_map.values()}
    if on_map and (len(on_map) < len(images) or len(systems) > 1 or systems == {"None"}):
        raise InvalidInputError(
            "A GeoJSON file needs one coordinate reference system for all its images.", code="annotations-crs"
        )
    features = []
    for image, objects in images.items():
        where = on_map.get(image)
        for item in objects:
            about: dict[str, Any] = {"label": item.label} | ({"ignored": True} if item.ignored else {})
            about |= {} if image is None else {"image": image}
            if isinstance(item.place, np.ndarray):
                about["box"] = item.place.tolist() if where is None else True
            if isinstance(item.place, Disc) and item.place.radius:
                about["radius_pixels"] = item.place.radius
            features.append({"type": "Feature", "properties": about, "geometry": _geometry(item.place, where, image)})
    crs = {"type": "name", "properties": {"name": systems.pop()}} if systems else None
    data = {"type": "FeatureCollection", "crs": crs, "images": [name for name in images if name is not None]}
    return json.dumps(data | {"features": features}, allow_nan=False)


def _geometry(place: Floats | Shape, where: Placement | None, image: str | None) -> dict[str, Any]:
    if isinstance(place, Runs):
        raise InvalidInputError(
            f"GeoJSON cannot hold masks, which the image {image!r} has; write .json (COCO).", code="annotations-masks"
        )
    if isinstance(place, Disc):
        at = np.array([[place.x, place.y]])
        return {"type": "Point", "coordinates": (at if where is None else where.to_map(at))[0].tolist()}
    shape = Polygons(((corners_of(place),),)) if isinstance(place, np.ndarray) else place
    moved = shape if where is None else shape.mapped(where.to_map)
    parts = [[[*ring.tolist(), ring[0].tolist()] for ring in part] for part in moved.parts]
    if len(parts) == 1:
        return {"type": "Polygon", "coordinates": parts[0]}
    return {"type": "MultiPolygon", "coordinates": parts}
