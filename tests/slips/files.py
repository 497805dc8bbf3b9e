"""Files with the slips that users make: each function writes to the current folder, beside the scenes of `program`."""

import json
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from program import BOX, SHAPE, images, target_mask
from rasters import GRID, write

from bimichi.io import write_image

NAMES = ("thermal", "grey")
X, Y, W, H = BOX
HEIGHT, WIDTH = SHAPE
PROJECT = '[[sources]]\npath = "thermal.png"\n\n[[sources]]\npath = "grey.png"\n\n[labels]\nboxes = "boxes.csv"\n'


def text(path, content, encoding="utf-8"):
    """Returns a function that writes a text file."""
    return lambda: Path(path).write_text(content, encoding)


def document(path, content):
    """Returns a function that writes a JSON file."""
    return text(path, json.dumps(content))


def boxes(*rows, header="x,y,w,h", encoding="utf-8"):
    """Returns a function that writes boxes.csv."""
    return text("boxes.csv", "\n".join([header, *rows]) + "\n", encoding)


def image(path, values):
    """Returns a function that writes an image, in a folder if need be."""

    def make():
        Path(path).parent.mkdir(exist_ok=True)
        write_image(path, np.asarray(values))

    return make


def mask(values):
    """Returns a function that writes mask.png."""
    return image("mask.png", np.asarray(values, np.uint8))


def folder(path):
    """Returns a function that makes an empty folder."""
    return lambda: Path(path).mkdir()


def both(*makers):
    """Returns a function that calls several."""
    return lambda: [make() for make in makers]


def many(*, flat=False):
    """Two scenes, one folder per source or all in one folder, with boxes and masks for both."""
    for k in range(2):
        for name, pixels in images(k).items():
            path = Path(f"flat/s{k}_{name}.png" if flat else f"{name}/s{k}.png")
            path.parent.mkdir(exist_ok=True)
            write_image(path, pixels)
        Path("masks").mkdir(exist_ok=True)
        write_image(f"masks/s{k}.png", target_mask())
    rows = [f"s{k}.png,{X},{Y},{W},{H}" for k in range(2)]
    Path("all.csv").write_text("\n".join(["image,x,y,w,h", *rows]))


def flat():
    many(flat=True)


def lacking_mask():
    many()
    Path("masks/s1.png").unlink()


def twins():
    """Two folders with images of the same name, of which the boxes do not say which is meant."""
    for name, pixels in images(0).items():
        for day in ("mon", "tue"):
            Path(f"{name}/{day}").mkdir(parents=True, exist_ok=True)
            write_image(f"{name}/{day}/1.png", pixels)
    Path("boxes.csv").write_text(f"image,x,y,w,h\n1.png,{X},{Y},{W},{H}\n")


def nested():
    """Scenes, and the boxes of each, in folders of their own."""
    for k, day in enumerate(("mon", "tue")):
        for name, pixels in images(k).items():
            Path(f"{day}/{name}").mkdir(parents=True, exist_ok=True)
            write_image(f"{day}/{name}/1.png", pixels)
        Path(f"notes/{day}").mkdir(parents=True)
        Path(f"notes/{day}/1.csv").write_text(f"x,y,w,h\n{X},{Y},{W},{H}\n")


def geotiffs(*, bands=False, **options):
    """thermal.tif and grey.tif, or the bands of both.tif."""
    planes = images(0)
    if bands:
        write("both.tif", [*planes.values()], ["B3", "B8"], **options)
    for name, plane in planes.items():
        write(f"{name}.tif", [plane])


def stacked():
    geotiffs(bands=True)


def elsewhere():
    geotiffs()
    write("grey.tif", [images(0)["grey"]], crs="EPSG:32633")


def coarser():
    geotiffs()
    write("grey.tif", [images(0)["grey"][::2, ::2]], transform=GRID["transform"] @ GRID["transform"].scale(2))


def holed(share=slice(0, 6)):
    """Rasters of floats where nodata is not declared."""
    for name, plane in images(0).items():
        values = plane.astype(np.float32)
        values[share] = -9999
        write(f"{name}.tif", [values])


def declared():
    """The same rasters, now with nodata declared."""
    for name, plane in images(0).items():
        values = plane.astype(np.float32)
        values[:6] = -9999
        write(f"{name}.tif", [values], nodata=-9999)


def nothing_but_nodata():
    geotiffs()
    write("grey.tif", [np.full(SHAPE, -9999, np.float32)], nodata=-9999)


def counts():
    """Thermal counts of 16 bits, which use little of their type."""
    write_image("thermal.png", (7000 + images(0)["thermal"].astype(np.uint16) * 20))


def fifteen():
    """One raster of fifteen bands of 16 bits, which use little of their type, with nodata."""
    rng = np.random.default_rng(0)
    write("bands.tif", rng.integers(300, 2000, (15, *SHAPE), np.int16), nodata=-32768)


def kelvin():
    write_image("thermal.tif", (250 + images(0)["thermal"] / 4).astype(np.float32))


def rgb(path="grey.png", alpha=None):
    planes = [images(0)["grey"]] * 3 + ([] if alpha is None else [alpha])
    Image.fromarray(np.stack(planes, axis=-1)).save(path)


def transparent():
    rgb(alpha=np.where(target_mask(), 0, 255).astype(np.uint8))


def pages():
    tifffile.imwrite("grey.tif", np.stack([images(0)["grey"]] * 3), photometric="minisblack", metadata=None)


def one_page():
    tifffile.imwrite("grey.tif", images(0)["grey"])


def truncated():
    path = Path("grey.png")
    path.write_bytes(path.read_bytes()[:400])


def damaged(path, start, offset=0):
    """Returns a function that writes the start of a format and rubbish after it."""
    return lambda: Path(path).write_bytes(bytes(offset) + start + bytes(range(200)))


def nifti():
    import nibabel

    nibabel.save(nibabel.Nifti1Image(np.ones((60, 40, 3), np.float32), np.eye(4)), "t1.nii.gz")
    whole = Path("t1.nii.gz").read_bytes()
    Path("t1.nii.gz").write_bytes(whole[: len(whole) // 2])


def newer_model():
    held = json.loads(Path("model.json").read_text())
    Path("model.json").write_text(json.dumps(held | {"version": 99}))


def turned():
    """A source whose width and height are exchanged."""
    write_image("grey.png", np.ascontiguousarray(images(0)["grey"].T))


def yolo(row, classes=None):
    def make():
        Path("yolo").mkdir()
        Path("yolo/thermal.txt").write_text(row)
        if classes is not None:
            Path("yolo/classes.txt").write_text(classes)

    return make


COCO = {
    "images": [{"id": 1, "file_name": "thermal.png", "width": WIDTH, "height": HEIGHT}],
    "categories": [{"id": 1, "name": "person"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [X, Y, W, H]}],
}
