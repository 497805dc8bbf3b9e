"""The command line: the user's path, what it prints, and how it fails."""

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from program import BOX, ENVIRONMENT, HALF, PAPER, PROGRAM, SHAPE, images, program, run, target_mask, train_masks
from typer.testing import CliRunner

from bimichi import BiCapacity, BiMIChI, FusionRule, InvalidInputError
from bimichi.cli.options import expand_groups
from bimichi.imaging import SOURCE_RECIPES, fusing, gamma_correction, read_image, to_bipolar, write_image
from bimichi.imaging.collecting import collect_scenes
from bimichi.imaging.recipes import AS_IS, RECIPES


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
    planes = [gamma_correction(images(1)["thermal"]), SOURCE_RECIPES["equalize"](images(1)["grey"])]
    np.testing.assert_array_equal(read_image("fused.tif"), BiMIChI.load("model.json").fuse(planes))


def test_colour_counts_as_lightness_only_if_asked_for(here):
    write_image("colour.png", np.stack([images(0)["grey"]] * 3, axis=-1))
    command = ["train", *PAPER, "thermal.png", "colour.png", "--boxes", "boxes.csv", "-o", "model.json"]
    assert "'colour' has 3 bands" in run(*command, code=1).stderr
    run(*command, "--recipe", "to_bipolar", "--superpixels", 40)
    run("fuse", "model.json", "thermal.png", "colour.png", "-o", "fused.tif")


def test_bands_of_one_file_floats_and_scale(here):
    bands = np.stack([images(0)["thermal"], images(0)["grey"]], axis=-1).astype(np.float32) + 300
    write_image("bands.tif", bands)
    command = ["train", *PAPER, "bands.tif", "--labels", "mask.png", "--superpixels", 40, "-o", "model.json"]
    failed = run(*command, code=1)
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


def test_masks_bags_and_what_to_ignore(here):
    ignore = np.zeros(SHAPE, bool)
    ignore[25:33, 40:50] = True
    write_image("ignore.png", ignore)
    write_image("classes.png", (target_mask() * 2 + ignore).astype(np.uint8))
    common = ["thermal.png", "grey.png", "--bags", "segments.png", "-o", "bags.png", "--json"]
    scene = json.loads(run("bags", *common, "--labels", "classes.png", "--target", 2).stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"], scene["left_out"]) == (6, 18, 0)
    scene = json.loads(run("bags", *common, "--labels", "mask.png", "--ignore", "ignore.png").stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"], scene["left_out"]) == (6, 16, 2)
    scene = json.loads(run("bags", *common, "--boxes", "boxes.csv", "--min-overlap", "0.5").stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"]) == (1, 23)
    picture = read_image("bags.png")
    assert picture.ndim == 3
    assert picture.std() > 20


def test_every_annotation_format_can_label_a_scene(here):
    x, y, w, h = BOX
    text = f"% bbGt version=3\nperson {x} {y} {w} {h} 0 0 0 0 0 0 0\nperson? 40 25 10 8 0 0 0 0 0 1 0\n"
    Path("boxes.txt").write_text(text)
    common = ["bags", "thermal.png", "grey.png", "--bags", "segments.png", "-o", "bags.png", "--json"]
    counts = {
        labels: json.loads(run(*common, *labels.split()).stdout)["scenes"][0]
        for labels in ("--labels mask.png", "--labels boxes.csv", "--boxes boxes.csv", "--labels boxes.txt")
    }
    ignored = counts.pop("--labels boxes.txt")
    assert len({(found["positive"], found["negative"], found["left_out"]) for found in counts.values()}) == 1
    assert ignored["positive"] == 6
    assert ignored["left_out"] == 2
    Path("boxes.csv").write_text(f"image,x,y,w,h\nthermal,{x},{y},{w},{h}\n")
    named = json.loads(run(*common, "--labels", "boxes.csv").stdout)["scenes"][0]
    assert named == counts["--boxes boxes.csv"]


def test_bags_of_many_scenes(many):
    done = run("bags", "thermals", "greys", "--labels", "masks", "--superpixels", 20, "-o", "pictures")
    assert {path.name for path in Path("pictures").iterdir()} == {"s0.png", "s1.png", "s2.png", "run.json"}
    assert "left out" in done.stdout
    assert "s1" in done.stdout


def test_show_tells_of_the_model(trained):
    shown = run("show", "model.json").stdout
    assert "objective bipolar" in shown
    assert "thermal+grey" in shown
    data = json.loads(run("show", "model.json", "--json").stdout)
    g = BiMIChI.load("model.json").bicapacity_
    assert [source["name"] for source in data["sources"]] == ["thermal", "grey"]
    assert len(data["elements"]) == 9
    for element in data["elements"]:
        assert element["value"] == g[element["A"], element["B"]]
    assert sum(element["used_by"] for element in data["elements"]) > 0


def test_names_are_shown_as_they_are(here):
    names = ["[bold]a", "<script>", "[/red]", "b_c"]
    X = np.random.default_rng(0).uniform(-1, 1, (100, 4))
    ids = np.repeat(np.arange(10), 10)
    BiMIChI(source_names=names, random_state=0).fit(X, ids % 2, ids).save("model.json")
    shown = run("show", "model.json", "--elements", 5).stdout
    for name in names:
        assert name in shown
    assert "used by" in shown
    failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "fused.tif", code=1)
    assert "([bold]a, <script>, [/red], b_c)" in failed.stderr


def test_compare_writes_every_kind_of_table(here):
    command = ["compare", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--truth", "mask.png", "--superpixels", 20]
    done = json.loads(run(*command, "-o", "table.csv", "--json").stdout)
    rows = list(csv.DictReader(Path("table.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == [row["method"] for row in done["methods"]]
    assert "Bi-MIChI (objective 1)" in {row["method"] for row in rows}
    assert all(float(row["auc"]) > 0.4 for row in rows if not row["problem"])
    assert json.loads(Path("table.csv.run.json").read_text())["command"] == "compare"


def test_compare_prints_a_table_of_some_methods(here):
    command = ["compare", "thermal.png", "grey.png", "--labels", "mask.png", "--truth", "mask.png", "--superpixels", 20]
    assert "no method 'best'" in run(*command, "--methods", "mean,best", code=1).stderr
    command += ["--methods", "mean, Bi-MIChI (mean)"]
    shown = run(*command).stdout
    assert "Bi-MIChI (mean)" in shown
    assert "SVM" not in shown
    assert run(*command, "-o", "table.md", "--quiet").stdout == ""
    assert Path("table.md").read_text().startswith("| method |")
    run(*command, "-o", "table.tex")
    assert "\\toprule" in Path("table.tex").read_text()


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


TRAIN = ("train", *PAPER, "thermal.png", "grey.png", "-o", "new/model.json")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ((*TRAIN,), 2, "'--boxes' / '--labels'"),
        ((*TRAIN, "--boxes", "boxes.csv", "--labels", "mask.png"), 2, "'--boxes' / '--labels'"),
        (
            (*TRAIN, "--boxes", "boxes.csv", "--objective", "best"),
            1,
            "must be one of bipolar, magnitude, mean, logistic, got 'best'",
        ),
        ((*TRAIN, "--boxes", "boxes.csv", "--recipe", "soup"), 2, "soup"),
        ((*TRAIN, "--boxes", "boxes.csv", "--min-overlap", "2"), 2, "less than or equal to 1"),
        (("train", *PAPER, "thermal.png", "--boxes", "boxes.csv"), 2, "--output"),
        (("nothing",), 2, "nothing"),
        (("train", *PAPER, "thermal.png", "small.png", "--boxes", "boxes.csv", "-o", "new/m"), 1, "60 x 40 pixels"),
        (
            ("train", *PAPER, "thermal.png", "none.png", "--boxes", "boxes.csv", "-o", "new/m"),
            1,
            "no file or folder none.png",
        ),
        (
            ("train", *PAPER, "thermal.png", "corrupt.png", "--boxes", "boxes.csv", "-o", "new/m"),
            1,
            "corrupt.png: it is damaged",
        ),
        ((*TRAIN, "--boxes", "none.csv"), 1, "no file or folder none.csv"),
        ((*TRAIN, "--boxes", "outside.csv"), 1, "lies outside the image of width 60 and height 40"),
        ((*TRAIN, "--boxes", "flat.csv"), 1, "w and h must be above 0"),
        ((*TRAIN, "--boxes", "boxes.csv", "--target", "car"), 1, "has no label 'car'; it has 'person' (1)"),
        ((*TRAIN, "--labels", "all.png"), 1, "0 negative"),
        ((*TRAIN, "--labels", "small.png"), 1, "small.png is 5 x 4 pixels"),
        ((*TRAIN, "--labels", "mask.png", "--target", "car"), 1, "a number, got 'car'"),
        ((*TRAIN, "--labels", "mask.png", "--names", "a,b,c"), 1, "3 names for 2 sources"),
        ((*TRAIN, "--labels", "mask.png", "--recipe", "as_is"), 1, "'thermal'"),
        ((*TRAIN, "--labels", "mask.png", "--recipe", "as_is,as_is,as_is"), 1, "3 recipes for 2 sources"),
        ((*TRAIN, "--boxes", "several.csv"), 1, "boxes of the images 's8', 's9', but the scenes are"),
        (("bags", "thermal.png", "--boxes", "boxes.csv", "-o", "bags.txt"), 1, "must end in .png or .svg or .pdf"),
        (("show", "none.json"), 1, "none.json: No such file"),
        (("show", "boxes.csv"), 1, "not a valid bimichi model file"),
        (("show", "capacity.json"), 1, "holds a 'bicapacity'"),
    ],
)
def test_what_users_get_wrong(here, command, code, message):
    write_image("small.png", np.zeros((4, 5), np.uint8))
    write_image("all.png", np.ones(SHAPE, bool))
    Path("corrupt.png").write_bytes(Path("grey.png").read_bytes()[:200])
    Path("outside.csv").write_text("x,y,w,h\n70,5,3,3\n")
    Path("flat.csv").write_text("x,y,w,h\n7,5,0,3\n")
    Path("several.csv").write_text("image,x,y,w,h\ns8,1,1,5,5\ns9,1,1,5,5\n")
    BiCapacity.additive([0.5, 0.5]).save("capacity.json")
    failed = run(*command, code=code)
    assert failed.stdout == ""
    assert message in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not Path("new").exists() or not list(Path("new").iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("thermal.png",), "has 1 source (thermal), but the model has 2 sources (thermal, grey)."),
        (("thermal.png", "mask.png"), "has 2 sources (thermal, mask), but"),
        (("thermal.png", "grey.png", "mask.png"), "Quote patterns"),
        (("thermal.png", "grey.png", "--names", "grey,heat"), "has 2 sources (grey, heat), but"),
        (("thermal.png", "grey.tif"), "Source 'grey' (index 1) reaches"),
        (("thermal.png", "other"), "thermal.png is a file, but other is a folder"),
        (("nothing/*.png", "other/*.png"), "nothing/*.png has no files"),
        (("thermal.png", "grey.png", "-o", "thermal.png"), "one of the inputs"),
        (("thermal.png", "grey.png", "-o", "thermal.tif", "--png"), "one of the inputs"),
        (("thermal.png", "grey.png", "-o", "fused.jpg"), "must end in .tif or .tiff or .png"),
        (("thermal.png", "grey.png", "-o", "other"), "must end in"),
    ],
)
def test_images_that_do_not_fit_the_model(trained, arguments, message):
    write_image("grey.tif", images(0)["grey"].astype(np.float32))
    header = json.loads(Path("model.json").read_text()) | {"recipes": ["to_bipolar", "as_is"]}
    if "grey.tif" in arguments:
        Path("model.json").write_text(json.dumps(header))
    before = sorted(Path().rglob("*"))
    failed = run("fuse", "model.json", "-o", "fused.tif", *arguments, code=1)
    assert message in " ".join(failed.stderr.split())
    assert sorted(Path().rglob("*")) == before


def test_scenes_that_do_not_pair_up(many):
    labels = ["--labels", "masks", "-o", "model.json"]
    failed = run("train", *PAPER, "thermals", "greys", "--boxes", csv_of("s8"), "-o", "m.json", code=1)
    assert "'s8', but the scenes are" in failed.stderr
    Path("boxes.csv").write_text("x,y,w,h\n1,1,5,5\n")
    failed = run("train", *PAPER, "thermals", "greys", "--boxes", "boxes.csv", "-o", "m.json", code=1)
    assert "needs a column image" in failed.stderr
    assert (
        "must be a folder or a pattern"
        in run("train", *PAPER, "thermals", "greys", "--labels", "mask.png", "-o", "m.json", code=1).stderr
    )
    Path("masks/s1.png").unlink()
    assert "has no file for s1" in run("train", *PAPER, "thermals", "greys", *labels, code=1).stderr
    Path("greys/s2.png").unlink()
    assert "Scene 's2' has no file in greys" in run("train", *PAPER, "thermals", "greys", *labels, code=1).stderr
    assert (
        "must be a folder, got fused.tif"
        in run("fuse", train_one(many), "thermals", "thermals", "-o", "fused.tif", code=1).stderr
    )


def test_a_missing_band(here):
    Path("bands").mkdir()
    for k, n_bands in enumerate((3, 3, 2)):
        write_image(f"bands/{k}.tif", np.stack([images(k)["thermal"] // (n + 1) for n in range(n_bands)], axis=-1))
    failed = run("train", *PAPER, "bands", "--boxes", csv_of("0", "1"), "-o", "model.json", code=1)
    assert "Scene '2' has 2 bands, but scene '0' has 3" in failed.stderr
    Path("bands/2.tif").rename("two.tif")
    run("train", *PAPER, "bands", "--boxes", "named.csv", "--superpixels", 20, "-o", "model.json")
    failed = run("fuse", "model.json", "two.tif", "-o", "fused.tif", code=1)
    assert "has 2 sources (band 1, band 2), but the model has 3 sources (band 1, band 2, band 3)." in failed.stderr


def csv_of(*scenes):
    Path("named.csv").write_text("\n".join(["image,x,y,w,h", *(f"{scene},1,1,5,5" for scene in scenes)]))
    return "named.csv"


def train_one(folder):
    return train_masks(folder / "one.json", "--superpixels", 20)


def test_an_output_that_cannot_be_written_is_found_before_the_work(trained, monkeypatch):
    def read(*_):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("bimichi.imaging.reading.read_image", read)
    for output in ("mask.png/model.tif", "mask.png/deeper/model.tif"):
        for command in (("train", "--boxes", "boxes.csv"), ("fuse", "model.json")):
            failed = run(*command, "thermal.png", "grey.png", "-o", output, code=1)
            assert "Cannot write to the folder mask.png" in failed.stderr
    Path("locked").mkdir(mode=0o500)
    if not os.access("locked", os.W_OK):  # root may write anywhere
        failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "locked/fused.tif", code=1)
        assert "Permission denied" in failed.stderr


def test_a_missing_extra_is_reported_without_a_traceback(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "fused.tif", code=1)
    assert "pip install 'bimichi[image]'" in failed.stderr


@pytest.mark.parametrize("recipes", [["to_bipolar"], "to_bipolar", [1, 2]])
def test_hostile_recipes_in_a_model(trained, recipes):
    header = json.loads(Path("model.json").read_text()) | {"recipes": recipes}
    Path("model.json").write_text(json.dumps(header))
    assert "recipes" in run("show", "model.json", code=1).stderr


def test_an_unknown_recipe_is_refused_where_it_is_used(trained):
    header = json.loads(Path("model.json").read_text()) | {"recipes": ["to_bipolar", "soup"]}
    Path("model.json").write_text(json.dumps(header))
    run("show", "model.json")
    failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "fused.tif", code=1).stderr
    assert "'soup'" in failed
    assert "newer bimichi" in failed


@pytest.mark.parametrize(("key", "value"), [("solver", 3), ("status", 3), ("n_iter", "3"), ("lower_bound", "low")])
def test_hostile_headers_in_a_model(trained, key, value):
    document = json.loads(Path("model.json").read_text())
    document["training"] |= {key: value}
    Path("model.json").write_text(json.dumps(document))
    assert "not a valid FusionRule file" in run("show", "model.json", code=1).stderr


@pytest.mark.parametrize("name", ["polarity", "centre", "factor", "touched", "values"])
def test_damaged_arrays_in_a_model(trained, name):
    document = json.loads(Path("model.json").read_text())
    document["arrays"][name] = document["arrays"][name][:-1]
    Path("model.json").write_text(json.dumps(document))
    assert "not a valid FusionRule file" in run("show", "model.json", code=1).stderr


def test_sources_and_scenes_are_named_by_files_folders_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("ir/1.png", "ir/2.jpg", "ir/.hidden.png", "ir/notes.txt", "a1/t.npy", "b2/t.npy", "x_ir.png"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()

    def found(*sources):
        scenes = collect_scenes(sources)
        return scenes.source_names, scenes.names

    assert found("ir") == (["ir"], ["1", "2"])
    assert found("./ir/", "ir/[0-9]*") == (["ir", "ir 2"], ["1", "2"])
    assert found("*r/*.*g") == (["r"], ["i_1", "i_2"])
    assert found("ir/?.png") == (["ir"], ["1"])
    assert found("*/t.npy") == (["t"], ["a1", "b2"])
    assert found("[ab]?/t.npy") == (["t"], ["a1", "b2"])
    assert found("*_ir.png") == (["ir"], ["x"])
    assert found("ir/1.png") == (["1"], ["1"])
    assert found("ir/1.png", "ir/1.png") == (["1", "1 2"], ["ir"])
    assert found("a1/t.npy", "b2/t.npy") == (["a1", "b2"], ["t"])
    with pytest.raises(InvalidInputError, match=r"\*\* is not supported"):
        collect_scenes(["**/t.npy"])
    with pytest.raises(InvalidInputError, match=r"15 sources.*Quote patterns"):
        collect_scenes(["ir/1.png"] * 15)
    Path("ir/1.tif").touch()
    with pytest.raises(InvalidInputError, match=r"both belong to scene '1'"):
        collect_scenes(["ir"])


def test_groups_of_options_are_options_of_the_command():
    @dataclass(frozen=True)
    class Group:
        size: Annotated[int, typer.Option(help="How large.")] = 3

    def command(*, name: str, group: Group, loud: bool = False) -> None:
        print(name, group.size, loud)

    alone = typer.Typer()
    alone.command()(expand_groups(command))
    assert CliRunner().invoke(alone, ["x", "--size", "5", "--loud"]).stdout == "x 5 True\n"
    assert CliRunner().invoke(alone, ["x"]).stdout == "x 3 False\n"
    assert "How large." in CliRunner().invoke(alone, ["--help"]).stdout


def test_help_lists_recipes():
    shown = " ".join(run("train", "--help").stdout.replace("│", " ").split())
    assert ", ".join(RECIPES) in shown


def test_help_has_examples():
    experiments = ("study", "reproduce um", "reproduce pedestrian", "reproduce flood", "reproduce lesions", "demo")
    for command in ("train", "fuse", "bags", "show", "compare", "report", *experiments):
        assert re.search(rf"^ *bimichi {command}( \S|$)", run(*command.split(), "--help").stdout, re.MULTILINE), command


def test_help_and_completion_are_quick():
    script = "import sys, bimichi.cli.app; print([m for m in ('numba', 'scipy', 'sklearn') if m in sys.modules])"
    assert program(script=script).stdout.strip() == "[]"
    done = program(_BIMICHI_COMPLETE="complete_bash", COMP_WORDS="bimichi tr", COMP_CWORD="1")
    assert done.stdout.split() == ["train"]


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
    done = program("show", "model.json")
    assert done.returncode == 0, done.stderr
    assert "thermal+grey" in done.stdout
    Path("wrong.csv").write_text("x,y\n1,2\n")
    failed = program(*train, "wrong.csv")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "names its columns, each once" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert program(*train[:-1]).returncode == 2


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
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped" in stderr
    assert "Traceback" not in stderr
    assert [path.name for path in Path("out").iterdir()] == ["fused.tif"]
    assert Path("out/fused.tif").read_text() == "what was there before"
