"""What users get wrong, and models that are damaged: each ends in a message, and no file is written."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from program import PAPER, SHAPE, images, run, train_masks

from bimichi import BiCapacity
from bimichi.io import write_image

TRAIN = ("train", *PAPER, "thermal.png", "grey.png", "-o", "new/model.json")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ((*TRAIN,), 2, "'--boxes' / '--labels'"),
        ((*TRAIN, "--boxes", "boxes.csv", "--labels", "mask.png"), 2, "'--boxes' / '--labels'"),
        (
            (*TRAIN, "--boxes", "boxes.csv", "--objective", "best"),
            1,
            "[choice]",
        ),
        ((*TRAIN, "--boxes", "boxes.csv", "--recipe", "soup"), 2, "soup"),
        ((*TRAIN, "--boxes", "boxes.csv", "--min-overlap", "2"), 2, "less than or equal to 1"),
        (("train", *PAPER, "thermal.png", "--boxes", "boxes.csv"), 2, "--output"),
        (("nothing",), 2, "nothing"),
        (("train", *PAPER, "thermal.png", "small.png", "--boxes", "boxes.csv", "-o", "new/m"), 1, "60 x 40 pixels"),
        (
            ("train", *PAPER, "thermal.png", "none.png", "--boxes", "boxes.csv", "-o", "new/m"),
            1,
            "[file-missing]",
        ),
        (
            ("train", *PAPER, "thermal.png", "corrupt.png", "--boxes", "boxes.csv", "-o", "new/m"),
            1,
            "[image-damaged]",
        ),
        ((*TRAIN, "--boxes", "none.csv"), 1, "[file-missing]"),
        ((*TRAIN, "--boxes", "outside.csv"), 1, "[shape-outside]"),
        ((*TRAIN, "--boxes", "flat.csv"), 1, "[box-size]"),
        ((*TRAIN, "--boxes", "boxes.csv", "--target", "car"), 1, "[label-unknown]"),
        ((*TRAIN, "--labels", "all.png"), 1, "0 negative"),
        ((*TRAIN, "--labels", "small.png"), 1, "[mask-size]"),
        ((*TRAIN, "--labels", "mask.png", "--target", "car"), 1, "[target-number]"),
        ((*TRAIN, "--labels", "mask.png", "--names", "a,b,c"), 1, "[names-number]"),
        ((*TRAIN, "--labels", "mask.png", "--recipe", "as_is"), 1, "'thermal'"),
        ((*TRAIN, "--labels", "mask.png", "--recipe", "as_is,as_is,as_is"), 1, "[recipes-number]"),
        ((*TRAIN, "--boxes", "several.csv"), 1, "[annotations-other-images]"),
        (("bags", "thermal.png", "--boxes", "boxes.csv", "-o", "bags.txt"), 1, "[output-suffix]"),
        (("show", "none.json"), 1, "[model-unreadable]"),
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
        (("thermal.png",), "[sources-number]"),
        (("thermal.png", "mask.png"), "[sources-number]"),
        (("thermal.png", "grey.png", "mask.png"), "[sources-number]"),
        (("thermal.png", "grey.png", "--names", "grey,heat"), "[sources-number]"),
        (("thermal.png", "grey.tif"), "[source-range]"),
        (("thermal.png", "other"), "[sources-mixed]"),
        (("nothing/*.png", "other/*.png"), "[pattern-empty]"),
        (("thermal.png", "grey.png", "-o", "thermal.png"), "[output-is-input]"),
        (("thermal.png", "grey.png", "-o", "thermal.tif", "--png"), "[output-is-input]"),
        (("thermal.png", "grey.png", "-o", "fused.jpg"), "[output-suffix]"),
        (("thermal.png", "grey.png", "-o", "other"), "[output-suffix]"),
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
    assert "[annotations-other-images]" in failed.stderr
    Path("boxes.csv").write_text("x,y,w,h\n1,1,5,5\n")
    failed = run("train", *PAPER, "thermals", "greys", "--boxes", "boxes.csv", "-o", "m.json", code=1)
    assert "[annotations-scene]" in failed.stderr
    assert (
        "[not-folder]"
        in run("train", *PAPER, "thermals", "greys", "--labels", "mask.png", "-o", "m.json", code=1).stderr
    )
    Path("masks/s1.png").unlink()
    assert "[scene-file-missing]" in run("train", *PAPER, "thermals", "greys", *labels, code=1).stderr
    Path("greys/s2.png").unlink()
    assert "[scene-file-missing]" in run("train", *PAPER, "thermals", "greys", *labels, code=1).stderr
    assert (
        "[output-not-folder]" in run("fuse", train_one(many), "thermals", "thermals", "-o", "fused.tif", code=1).stderr
    )


def test_a_missing_band(here):
    Path("bands").mkdir()
    for k, n_bands in enumerate((3, 3, 2)):
        write_image(f"bands/{k}.tif", np.stack([images(k)["thermal"] // (n + 1) for n in range(n_bands)], axis=-1))
    failed = run("train", *PAPER, "bands", "--boxes", csv_of("0", "1"), "-o", "model.json", code=1)
    assert "[bands-differ]" in failed.stderr
    Path("bands/2.tif").rename("two.tif")
    run("train", *PAPER, "bands", "--boxes", "named.csv", "--superpixels", 20, "-o", "model.json")
    failed = run("fuse", "model.json", "two.tif", "-o", "fused.tif", code=1)
    assert "[sources-number]" in failed.stderr


def csv_of(*scenes):
    Path("named.csv").write_text("\n".join(["image,x,y,w,h", *(f"{scene},1,1,5,5" for scene in scenes)]))
    return "named.csv"


def train_one(folder):
    return train_masks(folder / "one.json", "--superpixels", 20)


def test_an_output_that_cannot_be_written_is_found_before_the_work(trained, monkeypatch):
    def read(*_):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("bimichi.io.images.read_image", read)
    for output in ("mask.png/model.tif", "mask.png/deeper/model.tif"):
        for command in (("train", "--boxes", "boxes.csv"), ("fuse", "model.json")):
            failed = run(*command, "thermal.png", "grey.png", "-o", output, code=1)
            assert "[folder-unwritable]" in failed.stderr
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
    assert "[recipe-unknown]" in failed


@pytest.mark.parametrize(("key", "value"), [("solver", 3), ("status", 3), ("n_iter", "3"), ("lower_bound", "low")])
def test_hostile_headers_in_a_model(trained, key, value):
    document = json.loads(Path("model.json").read_text())
    document["training"] |= {key: value}
    Path("model.json").write_text(json.dumps(document))
    assert "[model-record]" in run("show", "model.json", code=1).stderr


@pytest.mark.parametrize("name", ["polarity", "centre", "factor", "touched", "values"])
def test_damaged_arrays_in_a_model(trained, name):
    document = json.loads(Path("model.json").read_text())
    document["arrays"][name] = document["arrays"][name][:-1]
    Path("model.json").write_text(json.dumps(document))
    assert "not a valid FusionRule file" in run("show", "model.json", code=1).stderr
