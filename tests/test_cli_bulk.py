"""`bimichi fuse` in bulk: many scenes, resumed and with failures, and georeferenced rasters."""

import json
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from test_cli import here, images, run, trained, trained_once  # noqa: F401  # fixtures

from bimichi.cli.model import FusionModel
from bimichi.imaging import read_image, to_bipolar, write_image

PLACE = Affine(30.0, 0.0, 500_000.0, 0.0, -30.0, 4_600_000.0)


@pytest.fixture
def frames(trained):  # noqa: F811  # pytest's way
    for name in ("thermal", "grey"):
        Path(name).mkdir()
        for k in range(4):
            write_image(f"{name}/{k}.png", images(k)[name])


def write_raster(path, *bands, place=PLACE, **profile):
    height, width = bands[0].shape
    given = {"driver": "GTiff", "height": height, "width": width, "count": len(bands), "dtype": bands[0].dtype}
    with rasterio.open(path, "w", crs="EPSG:32633", transform=place, **given | profile) as file:
        for k, band in enumerate(bands, 1):
            file.write(band, k)


def test_one_bad_scene_is_told_and_the_others_are_done(frames):
    Path("grey/2.png").write_bytes(b"\x89PNG nonsense")
    result = run("fuse", "model.json", "thermal", "grey", "-o", "fused", "--json", code=1)
    assert sorted(path.name for path in Path("fused").glob("*.tif")) == ["0.tif", "1.tif", "3.tif"]
    assert list(json.loads(result.stdout)["failed"]) == ["2"]
    assert "3 fused, 0 were there already, 1 failed" in result.stderr
    assert "2.png" in result.stderr
    write_image("grey/2.png", images(2)["grey"])
    before = {path: path.stat().st_mtime_ns for path in Path("fused").glob("*.tif")}
    assert (
        "1 fused, 3 were there already, 0 failed"
        in run("fuse", "model.json", "thermal", "grey", "-o", "fused", "--resume").stderr
    )
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    run("fuse", "model.json", "thermal", "grey", "-o", "again", "--jobs", 1)
    for k in range(4):
        assert Path(f"again/{k}.tif").read_bytes() == Path(f"fused/{k}.tif").read_bytes()


def test_rasters_keep_their_place(trained):  # noqa: F811
    for name, image in images(1).items():
        write_raster(f"other/{name}.tif", image, nodata=255 if name == "grey" else None)
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif", "--overviews")
    model = FusionModel.load(Path("model.json"))
    expected = model.fuse([to_bipolar(images(1)[name]) for name in model.source_names])
    expected[images(1)["grey"] == 255] = np.nan
    with rasterio.open("fused.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform == PLACE
        np.testing.assert_allclose(file.read(1, masked=True).filled(np.nan), expected, atol=1e-6)
    write_raster("bands.tif", *images(1).values())
    run("fuse", "model.json", "bands.tif", "--names", "thermal,grey", "-o", "bands-fused.tif")
    with rasterio.open("bands-fused.tif") as file:
        np.testing.assert_allclose(file.read(1)[~np.isnan(expected)], expected[~np.isnan(expected)], atol=1e-6)


def test_a_world_file_gives_a_place(trained):  # noqa: F811
    for name, image in images(1).items():
        write_image(f"other/{name}.tif", image)
    Path("other/grey.tfw").write_text("10\n0\n0\n-10\n500005\n4999995\n")
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif", "--align", code=1)
    Path("other/thermal.tfw").write_text("10\n0\n0\n-10\n500005\n4999995\n")
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif")
    with rasterio.open("fused.tif") as file:
        assert file.transform == Affine(10, 0, 500000, 0, -10, 5000000)


def test_other_grids_are_refused_or_warped(trained):  # noqa: F811
    write_raster("other/thermal.tif", images(1)["thermal"])
    write_raster("other/grey.tif", images(1)["grey"], place=PLACE @ Affine.translation(3, 2))
    files = ("other/thermal.tif", "other/grey.tif")
    message = run("fuse", "model.json", *files, "-o", "fused.tif", code=1).stderr
    assert "--align" in message
    assert "500000" in message
    assert "500090" in message
    assert not Path("fused.tif").exists()
    run("fuse", "model.json", *files, "-o", "fused.tif", "--align")
    assert read_image("fused.tif").shape == images(1)["grey"].shape


def test_rasters_and_recipes(trained):  # noqa: F811
    run(
        "train",
        "thermal.png",
        "grey.png",
        "--recipe",
        "equalize",
        "--boxes",
        "boxes.csv",
        "--superpixels",
        40,
        "-o",
        "e.json",
    )
    for name, image in images(1).items():
        write_raster(f"other/{name}.tif", image)
    files = ("other/thermal.tif", "other/grey.tif")
    assert "equalize, which looks at a whole image" in run("fuse", "e.json", *files, "-o", "f.tif", code=1).stderr
    write_raster("other/grey.tif", images(1)["grey"].astype(np.uint16))
    assert "of several types" in run("fuse", "model.json", *files, "-o", "f.tif", code=1).stderr
