"""Chains of recipes and functions of one's own on the command line."""

import sys
from pathlib import Path

import numpy as np
import pytest
from program import PAPER, images, run
from registries import unimported

from bimichi import FusionRule
from bimichi.io import read_image
from bimichi.sources import edge_strength, rarity, recipes

TRAIN = ("train", *PAPER, "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "model.json")
FUSE = ("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.tif")


@pytest.fixture
def own(here, monkeypatch):
    Path("mine.py").write_text("import numpy as np\ndef warm(image):\n    return np.asarray(image, float) / 255\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with unimported():
        yield
    sys.modules.pop("mine", None)


def test_chains_are_kept_in_the_model_and_applied_again(here):
    run(*TRAIN, "--recipe", "rarity, edge_strength(1, 2)|rarity")
    rule = FusionRule.load("model.json")
    assert rule.recipes == ("rarity", "edge_strength(1,2)|rarity")
    run(*FUSE)
    thermal, grey = images(1)["thermal"], images(1)["grey"]
    expected = rule.fuse([rarity(thermal), rarity(edge_strength(grey, 1, 2))])
    np.testing.assert_array_equal(read_image("fused.tif"), expected)
    assert "edge_strength(1,2)|rarity" in run("show", "model.json").stdout


def test_a_wrong_chain_is_a_wrong_option(here):
    assert "[recipe-unknown]" in " ".join(run(*TRAIN, "--recipe", "soup|rarity", code=2).stderr.split())


def test_a_python_function_from_the_working_directory(own, here):
    run(*TRAIN, "--recipe", "mine:warm|rarity,rarity")
    assert FusionRule.load("model.json").recipes == ("mine:warm|rarity", "rarity")
    recipes._loaded.clear()  # as in a new process
    sys.modules.pop("mine")
    for command in (FUSE, ("report", *FUSE[1:4], "-o", "page.html")):
        failed = run(*command, code=1)
        assert "--trust-recipes" in failed.stderr
        assert "mine" not in sys.modules
    run(*FUSE, "--trust-recipes")
    expected = FusionRule.load("model.json").fuse([rarity(images(1)["thermal"]), rarity(images(1)["grey"])])
    np.testing.assert_allclose(read_image("fused.tif"), expected, atol=1e-6)
