"""Training and fusing: what is kept in the model, applied again, recorded and printed."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from program import ENVIRONMENT, HALF, PAPER, PROGRAM, SHAPE, images, program, run, target_mask

from bimichi import BiMIChI, FusionRule
from bimichi.fuse import images as fusing
from bimichi.io import read_image, write_image
from bimichi.sources import equalize, gamma_correction, to_bipolar
from bimichi.sources.recipes import AS_IS


def test_train_keeps_all_that_fuse_needs(trained):
    run("fuse", "model.json", "other/grey.png", "other/thermal.png", "-o", "out/fused.tif", "--png")
    model = BiMIChI.load("model.json")
    assert model.bicapacity_.source_names == ("thermal", "grey")
    planes = [to_bipolar(images(1)[name]) for name in ("thermal", "grey")]
    fused = read_image("out/fused.tif")
    assert fused.dtype == np.float32
    np.testing.assert_array_equal(fused, model.fuse(planes))
    np.testing.assert_array_equal(read_image("out/fused.png"), np.rint((fused + np.float32(1)) * np.float32(127.5)))
    inside = target_mask()
    assert fused[inside].mean() > fused[~inside].mean() + 0.5


def test_recipes_are_kept_and_applied_again(here):
    options = ["--recipe", "gamma_correction,equalize", "--labels", "mask.png", "--superpixels", 40]
    run("train", *PAPER, "thermal.png", "grey.png", *options, "--names", "heat,light", "-o", "model.json")
    assert FusionRule.load(Path("model.json")).recipes == ("gamma_correction", "equalize")
    run("fuse", "model.json", "other/grey.png", "other/thermal.png", "--names", "light,heat", "-o", "fused.tif")
    planes = [gamma_correction(images(1)["thermal"]), equalize(images(1)["grey"])]
    np.testing.assert_array_equal(read_image("fused.tif"), BiMIChI.load("model.json").fuse(planes))


def test_floats_in_any_unit_are_scaled(here):
    rng = np.random.default_rng(3)
    backscatter = images(0)["thermal"].astype(np.float32) / 8 - 39 + rng.normal(0, 0.1, images(0)["thermal"].shape)
    write_image("radar.tif", backscatter.astype(np.float32))
    done = run("train", "radar.tif", "grey.png", "--boxes", "boxes.csv", "--sources", "raw", "-o", "model.json")
    assert "quantile" in done.stderr
    assert FusionRule.load(Path("model.json")).recipes[0].startswith("quantile")
    run("check", "radar.tif", "grey.png", "--boxes", "boxes.csv")
    run("fuse", "model.json", "radar.tif", "grey.png", "-o", "fused.tif")
    assert np.nanstd(read_image("fused.tif")) > 0


def test_colour_counts_as_lightness(here):
    write_image("colour.png", np.stack([images(0)["grey"]] * 3, axis=-1))
    command = ["train", *PAPER, "thermal.png", "colour.png", "--boxes", "boxes.csv", "-o", "model.json"]
    assert "lightness" in run(*command, "--superpixels", 40).stderr
    assert FusionRule.load(Path("model.json")).recipes == ("to_bipolar", "to_bipolar")
    run("fuse", "model.json", "thermal.png", "colour.png", "-o", "fused.tif")


def test_bands_of_one_file_floats_and_scale(here):
    bands = np.stack([images(0)["thermal"], images(0)["grey"]], axis=-1).astype(np.float32) + 300
    write_image("bands.tif", bands)
    command = ["train", *PAPER, "bands.tif", "--labels", "mask.png", "--superpixels", 40, "-o", "model.json"]
    failed = run(*command, "--recipe", "as_is", code=1)
    assert "Source 'band 1'" in failed.stderr
    assert "--scale" in failed.stderr
    run(*command, "--scale", "minmax", "--polarity", "learn")
    run("fuse", "model.json", "bands.tif", "-o", "fused.tif")
    np.testing.assert_array_equal(read_image("fused.tif"), BiMIChI.load("model.json").fuse(bands))


@pytest.mark.parametrize("scale", [None, "minmax", "maxabs"])
@pytest.mark.parametrize("objective", ["bipolar", "magnitude"])
def test_models_fuse_as_the_estimator_does(objective, scale, tmp_path, rng):
    X = rng.uniform(-1, 1, (200, 3)) * (1 if scale is None else [7, 1, 0.1])
    y = np.repeat(X[::10, 0] - X[::10, 1] > 0, 10)
    model = BiMIChI(objective, polarity="learn", scale=scale, random_state=0).fit(X, y, np.repeat(np.arange(20), 10))
    model.save(tmp_path / "model.json")
    found = FusionRule.load(tmp_path / "model.json")
    assert found.recipes is None
    for kind in (np.float32, np.float64):
        planes = list(np.moveaxis(X.reshape(10, 20, 3).astype(kind), -1, 0))
        np.testing.assert_array_equal(found.fuse(planes), model.fuse(planes))


def test_strips_give_what_the_whole_gives(trained, monkeypatch):
    model = FusionRule.load(Path("model.json"))
    planes = [images(1)["thermal"], images(1)["grey"]]
    whole = np.concatenate(list(fusing.fused_strips(model, planes, model.recipes)))
    monkeypatch.setattr(fusing, "STRIP", 7 * SHAPE[1])
    strips = list(fusing.fused_strips(model, planes, model.recipes, n_jobs=3))
    assert [len(strip) for strip in strips] == [7, 7, 7, 7, 7, 5]
    np.testing.assert_array_equal(np.concatenate(strips), whole)
    run("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.tif")
    np.testing.assert_array_equal(read_image("fused.tif"), whole)


def test_nan_stays_nan_and_is_reported_for_a_png(here):
    planes = {name: to_bipolar(image) for name, image in images(0).items()}
    planes["grey"][3, 4:6] = np.nan
    for name, plane in planes.items():
        write_image(f"{name}.tif", plane)
    run("train", *PAPER, "thermal.tif", "grey.tif", "--labels", "mask.png", "--superpixels", 40, "-o", "model.json")
    assert FusionRule.load(Path("model.json")).recipes == (AS_IS, AS_IS)
    done = run("fuse", "model.json", "thermal.tif", "grey.tif", "-o", "fused.tif", "--png")
    assert "NaN in 2 pixels" in done.stderr
    assert np.isnan(read_image("fused.tif")).sum() == 2
    assert read_image("fused.png")[3, 4] == 0


def test_a_run_is_recorded_so_that_it_can_be_repeated(trained):
    record = json.loads(Path("model.json.run.json").read_text())
    assert record["command"] == "train"
    assert record["seed"] == 0
    assert record["parameters"]["sources"] == ["thermal.png", "grey.png"]
    assert record["parameters"]["superpixels"] == 40
    assert record["outputs"] == ["model.json"]
    assert {"read", "train", "total"} <= set(record["seconds"])
    assert set(record["inputs"]) == {"thermal.png", "grey.png", "boxes.csv"}
    for path, digest in record["inputs"].items():
        assert digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    first = Path("model.json").read_bytes()
    run(
        "train",
        *PAPER,
        "thermal.png",
        "grey.png",
        "--boxes",
        "boxes.csv",
        "--superpixels",
        40,
        "-o",
        "again.json",
        "--jobs",
        1,
    )
    assert Path("again.json").read_bytes() == first


def test_many_scenes_pair_up_by_name(many):
    labels = ["--boxes", "all.csv", "--superpixels", 40, "--json"]
    folders = json.loads(run("train", *PAPER, "thermals", "greys/", "--names", "a,b", *labels, "-o", "f.json").stdout)
    patterns = ["flat/*_thermal.png", "flat/*_grey.png"]
    matched = json.loads(run("train", *PAPER, *patterns, *labels, "-o", "p.json").stdout)
    assert folders["scenes"] == matched["scenes"] == 3
    assert matched["sources"] == {"thermal": "to_bipolar", "grey": "to_bipolar"}
    assert folders["bags"] == matched["bags"]
    assert folders["objective_value"] == matched["objective_value"]
    run("fuse", "p.json", *patterns[::-1], "-o", "fused")
    assert sorted(path.name for path in Path("fused").iterdir()) == ["run.json", "s0.tif", "s1.tif", "s2.tif"]
    expected = BiMIChI.load("p.json").fuse([to_bipolar(images(2)[name]) for name in ("thermal", "grey")])
    np.testing.assert_array_equal(read_image("fused/s2.tif"), expected)


def test_json_is_all_there_is_on_standard_output_and_quiet_is_quiet(trained):
    labels = ["--boxes", "boxes.csv", "--superpixels", 40]
    sources = ["thermal.png", "grey.png"]
    for command in (
        ["train", *PAPER, *sources, *labels, "-o", "m.json"],
        ["fuse", "model.json", *sources, "-o", "f.tif"],
    ):
        assert json.loads(run(*command, "--json").stdout)["run"].endswith(".run.json")
        done = run(*command, "--quiet")
        assert (done.stdout, done.stderr) == ("", "")


def test_fusing_tiffs_starts_quickly(trained):
    for name in ("thermal", "grey"):
        write_image(f"{name}.tif", read_image(f"{name}.png"))
    script = f"import atexit, sys; atexit.register(lambda: print('sklearn' in sys.modules)); {PROGRAM}"
    done = program("fuse", "model.json", "thermal.tif", "grey.tif", "-o", "fused.tif", "--quiet", script=script)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.slow
def test_the_path_of_a_user(here):
    train = ("train", *PAPER, "thermal.png", "grey.png", "--superpixels", 40, "-o", "model.json", "--boxes")
    done = program(*train, "boxes.csv")
    assert done.returncode == 0, done.stderr
    assert "J = " in done.stdout
    done = program("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.tif", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scenes"][0]["files"] == ["fused.tif"]
    assert read_image("fused.tif").shape == SHAPE
    Path("wrong.csv").write_text("x,y\n1,2\n")
    failed = program(*train, "wrong.csv")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "[csv-header]" in failed.stderr
    assert "Traceback" not in failed.stderr


INTERRUPTED = f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler){HALF}"


def test_ctrl_c_leaves_no_half_written_file(trained):
    Path("out").mkdir()
    Path("out/fused.tif").write_text("what was there before")
    arguments = ["fuse", "model.json", "thermal.png", "grey.png", "-o", "out/fused.tif"]
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == "half of it is written\n"
        assert len(list(Path("out").iterdir())) == 2
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Stopped" in stderr
    assert "Traceback" not in stderr
    assert [path.name for path in Path("out").iterdir()] == ["fused.tif"]
    assert Path("out/fused.tif").read_text() == "what was there before"
