"""Additive models through the program."""

import json

import numpy as np
from program import PAPER, images, run
from refusals import refused

from bimichi import BiMIChI, FusionRule, ModelFileError
from bimichi.io import write_image


def test_the_program_trains_shows_and_fuses(here):
    names = []
    for k in range(16):
        for name, image in images(k).items():
            if k == 0 or name == "grey":
                write_image(f"{name}{k}.png", image)
                names.append(f"{name}{k}")
    assert len(names) > 14
    files = [f"{name}.png" for name in names]
    options = ("--boxes", "boxes.csv", "--superpixels", 40, "-o", "model.json")
    assert "[objective-additive]" in run("train", *PAPER, *files, *options, "--additivity", 2, code=1).stderr
    assert "--additivity 2" in run("train", *PAPER, *files, *options, "--objective", "mean", code=1).stderr
    run("train", *PAPER, *files, *options, "--additivity", 2, "--objective", "mean")
    run("fuse", "model.json", *files, "-o", "fused.tif")
    shown = run("show", "model.json", "--elements", 5).stdout
    assert "terms are used" in shown
    shown = json.loads(run("show", "model.json", "--json").stdout)
    assert len(shown["terms"]) == 2 * len(names) ** 2
    model, plain = FusionRule.load("model.json"), BiMIChI.load("model.json")
    assert model.measure == plain.bicapacity_
    X = np.random.default_rng(0).uniform(-1, 1, (50, len(names)))
    np.testing.assert_array_equal(model.fuse(list(X.T)), plain.fuse(X))
    content = json.loads((here / "model.json").read_text())
    assert content["version"] == 1
    for change, message in (
        ({"order": 3}, "order"),
        ({"measure": "bicapacity"}, "model-incomplete"),
        ({}, ""),
    ):
        (here / "bad.json").write_text(json.dumps(content | change))
        for load in (FusionRule.load, BiMIChI.load) if message else ():
            with refused(message, kind=ModelFileError):
                load("bad.json")
