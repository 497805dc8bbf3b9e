"""From map to detections on the command line."""

import json
from pathlib import Path

import numpy as np
from program import BOX, PAPER, images, run, train_masks

from bimichi import FusionRule
from bimichi.fuse import detect
from bimichi.io import read_boxes, read_image
from bimichi.metrics import object_scores
from bimichi.sources import to_bipolar

TRAIN = ("train", *PAPER, "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "model.json")
FUSE = ("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.tif")


def test_from_training_to_boxes(here):
    said = run(*TRAIN, "--decision", "f1", "--min-size", 5, "--smooth", "1,1.5").stdout
    assert "which is optimistic" in said
    rule = FusionRule.load("model.json")
    assert (rule.decision.min_size, rule.decision.smooth) == (5, (1, 1.5))
    assert "Maps are smoothed" in " ".join(run("show", "model.json").stdout.split())
    found = json.loads(run(*FUSE, "--detections", "found.csv", "--json").stdout)
    assert list(found["targets"].values()) == [len(read_boxes("found.csv"))]
    raw = rule.fuse([to_bipolar(images(1)[name]) for name in ("thermal", "grey")])
    np.testing.assert_allclose(read_image("fused.tif"), rule.decision.smoothed(raw), atol=1e-6)
    np.testing.assert_array_equal(read_boxes("found.csv"), detect(raw, rule).boxes)
    assert object_scores([BOX], read_boxes("found.csv")).recall == 1


def test_a_decision_on_masks(here):
    train_masks("model.json", "--decision", "precision=0.5")
    assert "a precision of 0.5" in FusionRule.load("model.json").decision.chosen


def test_options_replace_those_of_the_model(trained):
    missing = run(*FUSE, "--detections", "found.json", code=1).stderr
    assert "--threshold" in missing
    assert not Path("fused.tif").exists()
    run(*FUSE, "--detections", "found.json", "--threshold", 0.1, "--smooth", 1)
    assert len(json.loads(Path("found.json").read_text())["annotations"]) >= 1
    smoothed = read_image("fused.tif")
    run(*FUSE)
    assert np.abs(read_image("fused.tif") - smoothed).max() > 0.01
    for options, code, message in (
        (("--detections", "found.shp", "--threshold", 0), 1, ".geojson"),
        (("--detections", "found.geojson", "--threshold", 0), 1, "[detections-not-georeferenced]"),
        (("--smooth", "wide"), 2, "width in pixels"),
        (("--smooth", "1,2,3"), 2, "width in pixels"),
        (("--detections", "other/grey.png", "--threshold", 0), 1, "[output-suffix]"),
    ):
        assert message in run(*FUSE, *options, code=code).stderr
    picture = ("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.png", "--detections", "a.csv")
    assert "8 bits" in run(*picture, "--threshold", 0, code=1).stderr
    for wrong in ("best", "recall=2", "recall=", "precision=x"):
        assert "recall=R" in run(*TRAIN, "--decision", wrong, code=2).stderr


def test_many_scenes_go_to_one_file(many):
    run(
        "train",
        *PAPER,
        "thermals",
        "greys",
        "--boxes",
        "all.csv",
        "--bags",
        "boxes",
        "--decision",
        "recall=0.9",
        "-o",
        "m.json",
    )
    assert "scenes left out in 2 folds" in FusionRule.load("m.json").decision.chosen
    run("fuse", "m.json", "thermals", "greys", "-o", "fused", "--detections", "found.csv")
    before = Path("found.csv").read_text()
    Path("fused/s1.tif").unlink()
    run("fuse", "m.json", "thermals", "greys", "-o", "fused", "--detections", "found.csv", "--resume")
    assert Path("found.csv").read_text() == before
    assert read_boxes("found.csv", "s1").shape[1] == 4


def test_rasters_are_smoothed_alike_in_windows_and_detections_are_georeferenced(here, trained, monkeypatch):
    import rasterio

    from bimichi.fuse import rasters

    monkeypatch.setattr(rasters, "WINDOW", 1)
    rng = np.random.default_rng(0)
    bands = np.repeat(np.repeat(rng.uniform(-1, 1, (2, 20, 15)), 3, axis=1), 3, axis=2).astype(np.float32)
    bands[:, 20:24, 20:30] = np.nan
    profile = {"driver": "GTiff", "count": 2, "height": 60, "width": 45, "dtype": "float32", "nodata": np.nan}
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 500000, 0, -10, 4500000)}
    with rasterio.open("bands.tif", "w", **profile, **place) as file:
        file.write(bands)
    rule = FusionRule.load("model.json")
    FusionRule(rule.measure, decision=None).save("floats.json")
    options = ("--names", "thermal,grey", "--smooth", "1.5,2", "--threshold", 0.1, "--min-size", 4)
    run("fuse", "floats.json", "bands.tif", "-o", "map.tif", "--detections", "found.geojson", *options)
    from bimichi.decision import smooth_map

    expected = smooth_map(np.asarray(rule.fuse(list(bands)), np.float32), (1.5, 2))
    with rasterio.open("map.tif") as file:
        np.testing.assert_allclose(file.read(1), expected, atol=1e-6)
    features = json.loads(Path("found.geojson").read_text())["features"]
    assert len(features) == len(detect(expected, threshold=0.1, min_size=4)) > 0
    rasters.fuse_raster(
        FusionRule(rule.measure, decision=detect_decision()),
        "bands.tif",
        "small.tif",
        block=16,
        names=["thermal", "grey"],
    )
    with rasterio.open("small.tif") as file:  # four rows of tiles, each read with a margin
        np.testing.assert_allclose(file.read(1), expected, atol=1e-6)


def detect_decision():
    from bimichi import Decision

    return Decision(smooth=(1.5, 2))
