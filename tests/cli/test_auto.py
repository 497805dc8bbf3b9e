import json
from pathlib import Path

import numpy as np
import pytest
from program import BOX, images, run, target_mask

from bimichi import FusionRule
from bimichi.fit.choose import selection_of
from bimichi.io import read_image, write_image

SOURCES = ("thermals", "greys", "--superpixels", 40, "-o", "m.json")


@pytest.fixture
def four(here):
    """Four scenes with a target each."""
    for k in range(4):
        for name, image in images(k).items():
            Path(f"{name}s").mkdir(exist_ok=True)
            write_image(f"{name}s/s{k}.png", image)
        Path("masks").mkdir(exist_ok=True)
        write_image(f"masks/s{k}.png", target_mask())
    rows = [f"s{k}.png,{','.join(map(str, BOX))}" for k in range(4)]
    Path("all.csv").write_text("\n".join(["image,x,y,w,h", *rows]))
    return here


def test_without_an_objective_the_best_of_several_is_learned(four):
    done = run("train", *SOURCES, "--boxes", "all.csv")
    for shown in ("logistic, 1-additive, cores", "mean, 2-additive", "bipolar", "source thermals", "chosen", "Chose "):
        assert shown in done.stdout
    rule = FusionRule.load("m.json")
    assert rule.link is not None
    assert all(recipe.startswith("to_bipolar") for recipe in rule.recipes)
    shown = run("show", "m.json").stdout
    assert selection_of(rule.training).sentence() in " ".join(shown.split())
    data = json.loads(run("show", "m.json", "--json").stdout)
    assert data["selection"]["scenes"] == ["s0", "s1", "s2", "s3"]
    run("fuse", "m.json", "thermals", "greys", "-o", "out")
    fused = read_image("out/s0.tif")
    assert 0 <= fused.min() < 0.1
    x, y, w, h = BOX
    assert fused[y + 2 : y + h - 2, x + 2 : x + w - 2].mean() > 0.5
    assert fused.mean() < 0.15


def test_masks_are_eroded_to_their_cores(four):
    done = json.loads(run("train", *SOURCES, "--labels", "masks", "--json").stdout)
    assert len(done["selection"]["scenes"]) == 4
    assert any("cores" in one["name"] for one in done["selection"]["contenders"])


def test_rarity_becomes_part_of_the_recipes(four, monkeypatch):
    from bimichi.fit import candidates

    rare = candidates.Candidate("logistic", 1, "rarity", "cores")
    monkeypatch.setattr("bimichi.fit.choose.default_candidates", lambda *_, **__: [rare])
    monkeypatch.setattr("bimichi.fit.choose.simplest_of_best", lambda rows: 0)
    run("train", *SOURCES, "--boxes", "all.csv", "--recipe", "to_bipolar,equalize")
    assert FusionRule.load("m.json").recipes == ("to_bipolar|rarity", "equalize|rarity")
    run("fuse", "m.json", "thermals", "greys", "-o", "out")
    assert np.isfinite(read_image("out/s1.tif")).all()


def test_one_scene_is_divided(here):
    done = json.loads(
        run(
            "train", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "m.json", "--json"
        ).stdout
    )
    assert len(done["selection"]["scenes"]) >= 2


def test_options_that_do_not_go_with_a_choice(four):
    failed = run("train", *SOURCES, "--boxes", "all.csv", "--solver", "evolutionary", code=2)
    assert "--objective" in failed.stderr
    done = json.loads(run("train", *SOURCES, "--boxes", "all.csv", "--additivity", 1, "--json").stdout)
    fusions = [one["name"] for one in done["selection"]["contenders"] if not one["is_source"]]
    assert all("1-additive" in name for name in fusions)


def test_scenes_without_targets_are_refused(four):
    Path("none.csv").write_text("image,x,y,w,h\n")
    failed = run("train", *SOURCES, "--boxes", "none.csv", code=1)
    assert "positive" in failed.stderr or "target" in failed.stderr
