"""One dataset of boxes in every annotation format: `WRITERS` give the file or folder to read."""

import base64
import io
import json

import numpy as np
import pyogrio
from PIL import Image

from bimichi.io import write_image
from bimichi.io.dataset import collect_scenes
from bimichi.scenes import Placement, box_mask
from bimichi.scenes.shapes import corners_of

SHAPE = (40, 60)
BOXES = {
    "a.png": [("person", 4, 5, 10, 20), ("car", 30, 2, 12, 8), ("person", 41, 22, 7, 13)],
    "b.png": [("person", 50, 30, 10, 10)],
}
CRS = "EPSG:32630"
PLACES = {
    "a.png": Placement(SHAPE, (10.0, 0.0, 500_000.0, 0.0, -10.0, 4_500_000.0), CRS),
    "b.png": Placement(SHAPE, (10.0, 0.0, 560_000.0, 0.0, -10.0, 4_500_000.0), CRS),
}


def collected(root):
    """The scenes of the fixture `scenes`."""
    return collect_scenes([str(root / "ir"), str(root / "vi")])


def expected(label=None):
    """The mask of targets of each image."""
    return {
        image: box_mask([box for own, *box in rows if label in (None, own)], SHAPE) for image, rows in BOXES.items()
    }


def rows_of():
    return [(image, label, *box) for image, rows in BOXES.items() for label, *box in rows]


def csv(folder):
    lines = [f"{image},{x},{y},{w},{h},{label}" for image, label, x, y, w, h in rows_of()]
    return text(folder / "boxes.csv", "\n".join(["image,x,y,w,h,label", *lines]))


def csv_corners(folder):
    lines = [f"C:\\data\\{i};60;40;{label};{x},0;{y},0;{x + w},0;{y + h},0" for i, label, x, y, w, h in rows_of()]
    return text(folder / "boxes.csv", "\n".join(["filename;width;height;class;xmin;ymin;xmax;ymax", *lines]))


def csv_centres(folder):
    lines = [f"{i}\t{label}\t{x + w / 2}\t{y + h / 2}\t{w}\t{h}" for i, label, x, y, w, h in rows_of()]
    header = "Image Path\tname\tbbox_x_center\tbbox_y_center\tbbox_width\tbbox_height"
    return text(folder / "boxes.tsv", "\n".join([header, *lines]))


def coco(folder, place=lambda box: {"bbox": box}):
    labels, images = ["car", "person"], list(BOXES)
    data = {
        "images": [
            {"id": k, "file_name": f"images/{image}", "width": 60, "height": 40} for k, image in enumerate(images)
        ],
        "categories": [{"id": k, "name": label} for k, label in enumerate(labels)],
        "annotations": [
            {"id": k, "image_id": images.index(i), "category_id": labels.index(label), "iscrowd": 0} | place(box)
            for k, (i, label, *box) in enumerate(rows_of())
        ],
    }
    return text(folder / "coco.json", json.dumps(data))


def coco_polygons(folder):
    return coco(folder, lambda box: {"segmentation": [corners_of(box).ravel().tolist()]})


def coco_runs(folder):
    def place(box):
        flat = box_mask([box], SHAPE).T.ravel()
        changes = np.flatnonzero(np.diff(flat)) + 1
        counts = np.diff([0, *changes, flat.size])
        return {"segmentation": {"size": list(SHAPE), "counts": counts.tolist()}}

    return coco(folder, place)


def yolo(folder):
    text(folder / "classes.txt", "car\nperson\n")
    for image, rows in BOXES.items():
        lines = [
            f"{['car', 'person'].index(label)} {(x + w / 2) / 60} {(y + h / 2) / 40} {w / 60} {h / 40}"
            for label, x, y, w, h in rows
        ]
        text(folder / image.replace(".png", ".txt"), "\n".join(lines))
    return folder


def yolo_polygons(folder):
    text(folder / "data.yaml", "path: .\nnames:\n  0: car\n  1: 'person'\nnc: 2\n")
    for image, rows in BOXES.items():
        lines = [
            f"{['car', 'person'].index(label)} {' '.join(map(str, (corners_of(box) / [60, 40]).ravel()))}"
            for label, *box in rows
        ]
        text(folder / image.replace(".png", ".txt"), "\n".join(lines))
    return folder


def voc(folder):
    for image, rows in BOXES.items():
        objects = "".join(
            f"<object><name>{label}</name><difficult>0</difficult><bndbox><xmin>{x}</xmin><ymin>{y}</ymin>"
            f"<xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>"
            for label, x, y, w, h in rows
        )
        content = f"<annotation><folder>x</folder><filename>{image}</filename>{objects}</annotation>"
        text(folder / image.replace(".png", ".xml"), content)
    return folder


def png_text(mask):
    file = io.BytesIO()
    Image.fromarray(mask).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def labelme(folder):
    def shape(k, label, x, y, w, h):
        ways = [
            {"shape_type": "rectangle", "points": [[x + w, y + h], [x, y]]},
            {"shape_type": "polygon", "points": corners_of([x, y, w, h]).tolist()},
            {"shape_type": "mask", "points": [[x, y], [x + w - 1, y + h - 1]], "mask": png_text(np.ones((h, w), bool))},
        ]
        return {"label": label} | ways[k % 3]

    for image, rows in BOXES.items():
        shapes = [shape(k, *row) for k, row in enumerate(rows)]
        data = {"version": "5.4", "flags": {}, "shapes": shapes, "imagePath": f"..\\{image}", "imageData": None}
        text(folder / image.replace(".png", ".json"), json.dumps(data))
    return folder


def cvat(folder):
    def shape(k, label, x, y, w, h):
        points = ";".join(f"{a},{b}" for a, b in corners_of([x, y, w, h]))
        return [
            f'<box label="{label}" xtl="{x}" ytl="{y}" xbr="{x + w}" ybr="{y + h}"/>',
            f'<polygon label="{label}" points="{points}"/>',
            f'<mask label="{label}" rle="0, {w * h}" left="{x}" top="{y}" width="{w}" height="{h}"/>',
        ][k % 3]

    images = "".join(
        f'<image id="{n}" name="{image}" width="60" height="40">'
        + "".join(shape(k, *row) for k, row in enumerate(rows))
        + "</image>"
        for n, (image, rows) in enumerate(BOXES.items())
    )
    content = f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>{images}</annotations>'
    return text(folder / "annotations.xml", content)


def label_studio(folder):
    def result(label, x, y, w, h):
        value = {"x": x / 0.6, "y": y / 0.4, "width": w / 0.6, "height": h / 0.4, "rotation": 0}
        value["rectanglelabels"] = [label]
        return {"type": "rectanglelabels", "original_width": 60, "original_height": 40, "value": value}

    tasks = [
        {
            "id": k,
            "data": {"image": f"/data/upload/1/0a1b2c3d-{image}"},
            "annotations": [{"was_cancelled": False, "result": [result(*row) for row in rows]}],
        }
        for k, (image, rows) in enumerate(BOXES.items())
    ]
    return text(folder / "tasks.json", json.dumps(tasks))


def geojson(folder, crs=CRS):
    features = []
    for image, label, *box in rows_of():
        ring = PLACES[image].to_map(corners_of(box))
        if crs is None:
            from rasterio.warp import transform

            ring = np.stack(transform(CRS, "EPSG:4326", *ring.T), axis=1)
        geometry = {"type": "Polygon", "coordinates": [[*ring.tolist(), ring[0].tolist()]]}
        features.append({"type": "Feature", "properties": {"Class": label}, "geometry": geometry})
    data = {"type": "FeatureCollection", "features": features}
    if crs is not None:
        data["crs"] = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32630"}}
    return text(folder / "map.geojson", json.dumps(data))


def wkb(ring):
    closed = np.concatenate([ring, ring[:1]])
    return b"\x01\x03\0\0\0\x01\0\0\0" + len(closed).to_bytes(4, "little") + closed.astype("<f8").tobytes()


def vector(folder, suffix=".gpkg", driver="GPKG"):
    shapes = np.array([wkb(PLACES[image].to_map(corners_of(box))) for image, _, *box in rows_of()], dtype=object)
    labels = np.array([label for _, label, *_ in rows_of()], dtype=object)
    path = folder / f"map{suffix}"
    pyogrio.raw.write(path, shapes, [labels], ["label"], geometry_type="Polygon", crs=CRS, driver=driver)
    return path


def shapefile(folder):
    return vector(folder, ".shp", "ESRI Shapefile")


def bbgt(folder):
    for image, rows in BOXES.items():
        lines = [f"{label} {x} {y} {w} {h} 0 0 0 0 0 0 0" for label, x, y, w, h in rows]
        text(folder / image.replace(".png", ".txt"), "\n".join(["% bbGt version=3", *lines]))
    return folder


def mask(folder):
    for image, where in expected().items():
        write_image(folder / image, where.astype(np.uint8) + expected("car")[image])
    return folder


def text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


WRITERS = {
    "csv": (csv, csv_corners, csv_centres),
    "coco": (coco, coco_polygons, coco_runs),
    "yolo": (yolo, yolo_polygons),
    "voc": (voc,),
    "labelme": (labelme,),
    "cvat": (cvat,),
    "label-studio": (label_studio,),
    "geojson": (geojson, lambda folder: geojson(folder, None)),
    "vector": (vector, shapefile),
    "bbgt": (bbgt,),
    "mask": (mask,),
}
