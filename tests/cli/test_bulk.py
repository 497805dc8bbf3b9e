"""Many scenes: trained on one at a time, fused with failures, killed and resumed; and georeferenced rasters."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from program import ENVIRONMENT, PAPER, images, program, run, target_mask

from bimichi import BiMIChI, FusionRule, Scene, join_bags
from bimichi.fuse import images as fusing
from bimichi.io import read_image, write_image
from bimichi.scenes import label_bags, superpixels
from bimichi.sources import equalize, to_bipolar

PLACE = Affine(30.0, 0.0, 500_000.0, 0.0, -30.0, 4_600_000.0)


@pytest.fixture
def frames(trained):
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


def test_one_bad_scene_is_reported_and_the_others_are_done(frames):
    Path("grey/2.png").write_bytes(b"\x89PNG nonsense")
    result = run("fuse", "model.json", "thermal", "grey", "-o", "fused", "--json", code=1)
    assert sorted(path.name for path in Path("fused").glob("*.tif")) == ["0.tif", "1.tif", "3.tif"]
    assert list(json.loads(result.stdout)["failed"]) == ["2"]
    assert "3 fused, 0 existed already, 1 failed" in result.stderr
    assert "2.png" in result.stderr
    write_image("grey/2.png", images(2)["grey"])
    before = {path: path.stat().st_mtime_ns for path in Path("fused").glob("*.tif")}
    assert (
        "1 fused, 3 existed already, 0 failed"
        in run("fuse", "model.json", "thermal", "grey", "-o", "fused", "--resume").stderr
    )
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    run("fuse", "model.json", "thermal", "grey", "-o", "again", "--jobs", 1)
    for k in range(4):
        assert Path(f"again/{k}.tif").read_bytes() == Path(f"fused/{k}.tif").read_bytes()


TRAIN = ("train", *PAPER, "thermals", "greys", "--boxes", "all.csv", "--superpixels", 40)


def joined_scenes():
    """What the files of `many` hold, read in another way, all at once."""
    scenes = []
    for k in range(3):
        sources = np.stack([to_bipolar(image) for image in images(k).values()], axis=-1)
        segments = superpixels(sources, 40, lab=False)
        labels = label_bags(segments, boxes=np.array([(12, 8, 9, 14)] * (k != 1)).reshape(-1, 4), require_both=False)
        scenes.append(Scene(sources, f"s{k}", segments=segments, labels=labels))
    return join_bags(scenes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "magnitude", "polarity": "learn"},
        {"objective": "mean", "polarity": "learn", "scale": "maxabs"},
        {"solver": "evolutionary"},
    ],
)
def test_scenes_that_are_read_one_at_a_time_teach_the_same(many, options):
    given = [text for name, value in options.items() for text in (f"--{name}", value)]
    found = json.loads(run(*TRAIN, *given, "-o", "model.json", "--json").stdout)
    model, bags = BiMIChI.load("model.json"), joined_scenes()
    expected = BiMIChI(**options, random_state=0).fit(bags)
    np.testing.assert_allclose(model.bicapacity_.values, expected.bicapacity_.values, atol=1e-9)
    assert found["objective_value"] == pytest.approx(expected.objective_value_, abs=1e-9)
    assert found["bags"] == {"positive": bags.labels.sum(), "negative": (~bags.labels).sum()}
    for kind in ("touched", "weighted"):
        np.testing.assert_array_equal(model.usage_[kind], expected.usage_[kind])


def damaged():
    Path("greys/s2.png").write_bytes(Path("greys/s2.png").read_bytes()[:500])


def small():
    write_image("greys/s2.png", images(2)["grey"][:-1])


def beyond():
    for k in range(3):
        write_image(f"greys/s{k}.tif", (images(k)["grey"] / np.float32(255 if k < 2 else 25)))
        Path(f"greys/s{k}.png").unlink()


def of_floats():
    Path("greys/s2.png").unlink()
    write_image("greys/s2.tif", images(2)["grey"] / np.float32(255))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damaged, "[image-damaged]"),
        (small, "[grids-differ]"),
        (beyond, "(Scene 's2'.)"),
        (of_floats, "[types-differ]"),
    ],
)
def test_a_bad_scene_is_named_and_no_model_written(many, spoil, message):
    spoil()
    failed = run(*TRAIN, "-o", "new/model.json", code=1)
    assert message in " ".join(failed.stderr.split())
    assert list(Path("new").iterdir()) == []


def test_scenes_all_of_one_class_are_counted(many):
    Path("all.csv").write_text("image,x,y,w,h\n")
    message = " ".join(run(*TRAIN, "-o", "model.json", code=1).stderr.split())
    assert "[targets-missing]" in message


def test_a_scene_whose_bags_are_all_left_out_counts_for_nothing(many):
    Path("unknown").mkdir()
    for k in range(3):
        write_image(f"unknown/s{k}.png", np.full(target_mask().shape, k == 1))
    left_out = json.loads(run(*TRAIN, "--ignore", "unknown", "-o", "a.json", "--json").stdout)
    for folder in ("thermals", "greys", "unknown"):
        Path(f"{folder}/s1.png").unlink()
    without = json.loads(run(*TRAIN, "--ignore", "unknown", "-o", "b.json", "--json").stdout)
    assert left_out["bags"] == without["bags"]
    assert left_out["objective_value"] == without["objective_value"]


def test_pixels_without_a_value_belong_to_no_given_bag(here):
    for name in ("thermal", "grey"):
        np.save(f"{name}.npy", to_bipolar(read_image(f"{name}.png")))
    common = ["--bags", "segments.png", "--labels", "mask.png", "--json", "-o"]
    whole = json.loads(run("train", *PAPER, "thermal.npy", "grey.npy", *common, "whole.json").stdout)
    holed = np.load("grey.npy")
    holed[:10, :10] = np.nan  # all of the first bag
    holed[12, 3] = np.nan
    np.save("grey.npy", holed)
    found = json.loads(run("train", *PAPER, "thermal.npy", "grey.npy", *common, "holed.json").stdout)
    assert sum(found["bags"].values()) == sum(whole["bags"].values()) - 1


def test_training_on_many_scenes_needs_no_dask(many):
    script = """
import sys
sys.modules.update(dict.fromkeys(["dask", "distributed", "xarray", "rasterio"]))
from bimichi.cli import main
main()
"""
    done = program(*TRAIN, "--polarity", "learn", "-o", "model.json", "--json", script=script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scenes"] == 3


KILLED = """
import threading
from bimichi.cli import main
from bimichi.fuse import images as fusing
whole, begun = fusing.fused_strips, []
def stuck(*arguments):
    strips = whole(*arguments)
    yield next(strips)
    begun.append(1)
    if len(begun) > 2:
        print("halfway through the third", flush=True)
        threading.Event().wait()
    yield from strips
fusing.fused_strips, fusing.STRIP = stuck, 600
main()
"""


def test_a_killed_run_is_resumed_to_the_same_bytes(frames, monkeypatch):
    command = ["fuse", "model.json", "thermal", "grey", "--png", "--jobs", 1]
    monkeypatch.setattr(fusing, "STRIP", 600)
    run(*command, "-o", "whole")
    arguments = [sys.executable, "-c", KILLED, *map(str, command), "-o", "fused"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stdout.readline() == "halfway through the third\n"
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    shown = [path for path in Path("fused").iterdir() if not path.name.startswith(".")]
    assert sorted(path.name for path in shown) == ["0.png", "0.tif", "1.png", "1.tif"]
    Path("fused/1.png").unlink()  # as if it had been killed between the two files of a scene
    assert "3 fused, 1 existed already, 0 failed" in run(*command, "-o", "fused", "--resume").stderr
    for path in Path("whole").glob("?.*"):
        assert Path("fused", path.name).read_bytes() == path.read_bytes()


FULL = """
import resource
from bimichi.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
main()
"""


def test_a_full_disk_is_reported_and_damages_nothing(frames):
    Path("fused").mkdir()
    Path("fused/0.tif").write_text("what was there before")
    failed = program("fuse", "model.json", "thermal", "grey", "-o", "fused", script=FULL)
    assert failed.returncode == 1
    assert "0 fused, 0 existed already, 4 failed" in failed.stderr
    assert "[output-unwritable]" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert [path.name for path in Path("fused").glob("*") if path.name != "run.json"] == ["0.tif"]
    assert Path("fused/0.tif").read_text() == "what was there before"


def test_rasters_keep_their_place(trained):
    for name, image in images(1).items():
        write_raster(f"other/{name}.tif", image, nodata=255 if name == "grey" else None)
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif", "--overviews")
    model = FusionRule.load(Path("model.json"))
    expected = model.fuse([to_bipolar(images(1)[name]) for name in model.source_names])
    expected[images(1)["grey"] == 255] = np.nan
    with rasterio.open("fused.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform == PLACE
        np.testing.assert_allclose(file.read(1, masked=True).filled(np.nan), expected, atol=1e-6)
    failed = run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "f.tif", "--png", code=1)
    assert "[geotiff-only]" in failed.stderr
    write_raster("bands.tif", *images(1).values())
    run("fuse", "model.json", "bands.tif", "--names", "thermal,grey", "-o", "bands-fused.tif")
    with rasterio.open("bands-fused.tif") as file:
        np.testing.assert_allclose(file.read(1)[~np.isnan(expected)], expected[~np.isnan(expected)], atol=1e-6)


def test_a_world_file_gives_a_place(trained):
    for name, image in images(1).items():
        write_image(f"other/{name}.tif", image)
    Path("other/grey.tfw").write_text("10\n0\n0\n-10\n500005\n4999995\n")
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif")
    with rasterio.open("fused.tif") as file:
        assert file.transform == Affine(10, 0, 500000, 0, -10, 5000000)
    Path("other/thermal.tfw").write_text("10\n0\n0\n-10\n500015\n4999995\n")
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif", code=1)
    Path("other/thermal.tfw").write_text("10\n0\n0\n-10\n500005\n4999995\n")
    run("fuse", "model.json", "other/grey.tif", "other/thermal.tif", "-o", "fused.tif")
    with rasterio.open("fused.tif") as file:
        assert file.transform == Affine(10, 0, 500000, 0, -10, 5000000)


def test_other_grids_are_refused_or_warped(trained):
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


def test_rasters_and_recipes(trained):
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
    run("fuse", "e.json", *files, "-o", "f.tif")
    expected = FusionRule.load(Path("e.json")).fuse([equalize(images(1)[name]) for name in ("thermal", "grey")])
    np.testing.assert_array_equal(read_image("f.tif"), expected)
    write_raster("other/grey.tif", images(1)["grey"].astype(np.uint16) * 257)
    run("fuse", "e.json", *files, "-o", "f.tif")  # which ranks values, whatever their type
    assert "[type-of-training]" in run("fuse", "model.json", *files, "-o", "f.tif", code=1).stderr
