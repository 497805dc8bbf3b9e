"""`--project`, `bimichi init` and `bimichi check`."""

import json
from pathlib import Path

import numpy as np
import pytest
from program import BOX, PAPER, images, run, target_mask

from bimichi import BiMIChI, FusionRule
from bimichi.io import read_image, write_image
from bimichi.io.project import read_project

PROJECT = """
[[sources]]
path = "thermal.png"
name = "heat"
recipe = "gamma_correction"

[[sources]]
path = "grey.png"
name = "light"
recipe = "to_bipolar"

[labels]
boxes = "boxes.csv"
superpixels = 40

[train]
objective = "mean"
polarity = "learn"
"""
TYPED = ["thermal.png", "grey.png", "--names", "heat,light", "--recipe", "gamma_correction,to_bipolar"]
TYPED += ["--boxes", "boxes.csv", "--superpixels", 40]


@pytest.fixture
def project(here):
    Path("bimichi.toml").write_text(PROJECT)
    return here


def test_a_project_gives_what_typing_it_all_gives(project, monkeypatch):
    run("train", *TYPED, "--objective", "mean", "--polarity", "learn", "-o", "typed.json")
    run("train", "--project", "bimichi.toml", "-o", "model.json")
    assert Path("model.json").read_bytes() == Path("typed.json").read_bytes()
    record = json.loads(Path("model.json.run.json").read_text())["parameters"]
    assert record["sources"] == ["thermal.png", "grey.png"]
    assert record["superpixels"] == 40
    run("fuse", "model.json", "--project", ".", "-o", "fused.tif")
    run("bags", "--project", ".", "-o", "bags.png")
    run("report", "model.json", "--project", ".", "-o", "report.html")
    run("compare", "--project", ".", "--truth", "mask.png", "--methods", "mean", "-o", "table.md")
    expected = BiMIChI.load("model.json")
    assert expected.bicapacity_.source_names == ("heat", "light")
    monkeypatch.chdir(project / "other")
    run("fuse", "../model.json", "--project", "..", "-o", "elsewhere.tif")
    np.testing.assert_array_equal(read_image("elsewhere.tif"), read_image("../fused.tif"))


def test_the_command_line_overrides_the_project(project):
    run("train", *PAPER, "--project", ".", "--objective", "bipolar", "--superpixels", 30, "-o", "model.json")
    record = json.loads(Path("model.json.run.json").read_text())["parameters"]
    assert (record["objective"], record["superpixels"], record["polarity"]) == ("bipolar", 30, "learn")
    run("train", *PAPER, "--project", ".", "--labels", "mask.png", "-o", "model.json")  # instead of boxes
    assert json.loads(Path("model.json.run.json").read_text())["parameters"]["boxes"] is None
    run("train", *PAPER, "--project", ".", "--names", "a,b", "-o", "model.json")
    assert FusionRule.load(Path("model.json")).source_names == ("a", "b")


def test_other_sources_do_not_take_the_names_of_the_project(project):
    run("train", *PAPER, "other/grey.png", "other/thermal.png", "--project", ".", "-o", "model.json")
    rule = FusionRule.load(Path("model.json"))
    assert rule.source_names == ("grey", "thermal")
    assert rule.recipes == ("to_bipolar", "to_bipolar")


def test_sources_are_needed_from_somewhere(here):
    assert "--project" in run("train", *PAPER, "-o", "model.json", code=2).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nobjectiv = 'mean'", "[project-key]"),
        ("[trian]\nseed = 3", "[project-key]"),
        ("[labels]\nsuperpixel = 3", "[project-key]"),
        ("[labels]\nboxes = 3", "[project-path]"),
        ("[train]\noutput = '/etc/passwd'", "[project-option]"),
        ("[fuse]\nnames = 'a,b'", "[project-key]"),
        ("[train]\nlabels = 'mask.png'", "[project-key]"),
        ("[show]\njson = true", "[project-key]"),
    ],
)
def test_slips_in_a_project_are_reported(here, text, message):
    Path("bimichi.toml").write_text(f"[[sources]]\npath = 'thermal.png'\n{text}\n")
    failed = run("fuse", "model.json", "--project", ".", "-o", "fused.tif", code=1)
    if "boxes" in text:
        failed = run("train", *PAPER, "--project", ".", "-o", "model.json", code=1)
    assert message in failed.stderr


def test_values_of_a_project_are_checked_as_options_are(here):
    Path("bimichi.toml").write_text("[[sources]]\npath = 'thermal.png'\n[labels]\nsuperpixels = 0\n")
    assert "superpixels" in run("train", *PAPER, "--project", ".", "-o", "model.json", code=2).stderr
    Path("bimichi.toml").write_text("[[sources]]\npath = 'thermal.png'\n[train]\npolarity = 'no'\n")
    assert "polarity" in run("train", *PAPER, "--project", ".", "-o", "model.json", code=2).stderr


def test_expressions_are_computed_in_training_and_kept_for_fusing(here):
    sources = "".join(f"[[sources]]\npath = '{name}.png'\n" for name in ("thermal", "grey"))
    formulas = ["warm: thermal / 255", "difference: (thermal - b2) / 255"]
    Path("bimichi.toml").write_text(f"expressions = {formulas}\n{sources}[labels]\nlabels = 'mask.png'\n")
    run("train", *PAPER, "--project", ".", "--superpixels", 40, "-o", "model.json")
    rule = FusionRule.load("model.json")
    assert rule.source_names == ("warm", "difference")
    assert [one.expression for one in rule.inputs] == formulas
    run("fuse", "model.json", "--project", ".", "-o", "fused.tif")
    thermal, grey = (read_image(f"{name}.png").astype(np.float32) for name in ("thermal", "grey"))
    expected = rule.fuse([thermal / 255, (thermal - grey) / 255])
    assert np.allclose(read_image("fused.tif"), expected, atol=1e-6)
    run("report", "model.json", "thermal.png", "grey.png", "-o", "report.html")
    assert "[band-unknown]" in run("fuse", "model.json", "grey.png", "-o", "x.tif", code=1).stderr


def test_init_finds_folders_masks_and_boxes_and_the_rest_works(many):
    for name in ("thermal.png", "grey.png", "mask.png", "segments.png", "boxes.csv"):
        Path(name).unlink()
    Path("notes.pdf").write_bytes(b"%PDF")
    said = run("init", ".").stdout
    project = read_project(".")
    assert [one.path for one in project.sources] == ["greys", "thermals"]
    assert project.names() == ["greys", "thermals"]
    assert project.labels == {"boxes": "all.csv", "truth": "masks"}
    assert "left out: notes.pdf, flat (6 files)" in said
    assert "[project-exists]" in run("init", ".", code=1).stderr
    run("init", ".", "--force", "--quiet")
    found = json.loads(run("check", "--project", ".", "--superpixels", 40, "--json").stdout)
    assert [scene["targets"] for scene in found["scenes"]] == [1, 0, 1]
    run("train", *PAPER, "--project", ".", "--superpixels", 40, "-o", "model.json")
    run("compare", "--project", ".", "--superpixels", 40, "--methods", "mean")


def test_init_knows_names_that_end_in_the_source(many):
    run("init", "flat")
    project = read_project("flat")
    assert [one.path for one in project.sources] == ["*_grey.png", "*_thermal.png"]
    assert project.names() == ["grey", "thermal"]
    assert project.labels == {}
    assert 'add boxes = "FILE"' in Path("flat/bimichi.toml").read_text()


def test_init_knows_nested_folders_single_scenes_and_bands(here):
    for outer in ("set1", "set2"):
        for name, image in images(0).items():
            Path("nested", outer, name).mkdir(parents=True)
            write_image(f"nested/{outer}/{name}/7.png", image)
    run("init", "nested")
    assert [one.path for one in read_project("nested").sources] == ["*/grey/*.png", "*/thermal/*.png"]
    run("init", "other")
    assert [one.path for one in read_project("other").sources] == ["grey.png", "thermal.png"]
    Path("bands").mkdir()
    write_image("bands/stack.tif", np.stack([images(0)["grey"]] * 5, axis=-1))
    run("init", "bands")
    assert [one.path for one in read_project("bands").sources] == ["stack.tif"]
    assert read_project("bands").names() is None


def test_init_gives_colour_a_recipe_and_finds_nothing_in_an_empty_folder(here):
    for name, image in {"ir": images(0)["thermal"], "vi": np.stack([images(0)["grey"]] * 3, axis=-1)}.items():
        Path("c", name).mkdir(parents=True)
        write_image(f"c/{name}/0.png", image)
    run("init", "c")
    assert read_project("c").recipes() == ["to_bipolar", "to_bipolar"]
    Path("empty").mkdir()
    assert "[images-missing]" in run("init", "empty", code=1).stderr
    assert not Path("empty/bimichi.toml").exists()
    assert "[not-folder]" in run("init", "missing", code=1).stderr


def test_check_shows_sources_scenes_and_what_train_would_do(many):
    done = run("check", "thermals", "greys", "--boxes", "all.csv", "--superpixels", 40)
    assert "thermal" in done.stdout
    assert "train would learn from 3 scenes" in done.stdout
    assert "objective auto, solver convex" in done.stdout
    assert "1 of 3 scenes have no target: s1." in done.stderr
    found = json.loads(run("check", "thermals", "greys", "--boxes", "all.csv", "--superpixels", 40, "--json").stdout)
    assert [one["name"] for one in found["sources"]] == ["thermals", "greys"]
    assert all(one["auc"] > 0.9 for one in found["sources"])
    assert found["train"]["bags"]["positive"] == sum(bag["positive"] for bag in found["bags"].values()) > 0
    assert found["problems"] == {}
    trained = json.loads(
        run(
            "train", *PAPER, "thermals", "greys", "--boxes", "all.csv", "--superpixels", 40, "-o", "m.json", "--json"
        ).stdout
    )
    assert trained["bags"] == {kind: found["train"]["bags"][kind] for kind in ("positive", "negative")}
    assert trained["sources"] == found["train"]["recipes"]


def test_check_without_labels_of_colour_and_of_classes(here):
    write_image("colour.png", np.stack([images(0)["grey"]] * 3, axis=-1))
    done = run("check", "thermal.png", "colour.png")
    assert "Without labels nothing can be learned" in done.stdout
    classes = target_mask() * 1
    classes[30:, 30:] = 2
    write_image("classes.png", classes.astype(np.uint8))
    done = run("check", "thermal.png", "grey.png", "--labels", "classes.png", "--superpixels", 40)
    assert "classes" in done.stderr
    assert "--target" not in run("check", "thermal.png", "grey.png", "--labels", "mask.png", "--superpixels", 40).stderr


def test_check_goes_on_after_a_scene_that_cannot_be_used(many):
    write_image("greys/s1.png", images(1)["grey"][:-4])
    done = run("check", "thermals", "greys", "--labels", "masks", "--superpixels", 40, code=1)
    assert "s0" in done.stdout
    assert "s1: " in done.stderr
    assert "same" in done.stderr
    for k in (0, 2):
        write_image(f"greys/s{k}.png", images(k)["grey"][:-4])
    failed = run("check", "thermals", "greys", "--labels", "masks", code=1)
    assert "s0" not in failed.stdout


def test_bags_are_drawn_over_a_photograph_with_the_boxes(here, monkeypatch):
    from bimichi import plot as plotting

    seen = {}

    def spy(segments, labels, image, ax, **targets):
        seen.update(targets, image=image)
        return ax

    monkeypatch.setattr(plotting, "plot_bags", spy)
    run("bags", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "bags.png")
    np.testing.assert_array_equal(seen["boxes"], [BOX])
    assert seen["image"].dtype == np.uint8
    assert np.corrcoef(seen["image"].ravel(), images(0)["grey"].ravel())[0, 1] > 0.8  # "grey" looks like a photograph
    run("bags", "thermal.png", "grey.png", "--labels", "mask.png", "--superpixels", 40, "-o", "bags.png")
    np.testing.assert_array_equal(seen["mask"], target_mask())
