"""`bimichi train --objective logistic` and `--free-scale`, and shares of targets in `bimichi fuse`."""

from pathlib import Path

import numpy as np
import pytest
from program import images, run

from bimichi import BiMIChI, FusionRule
from bimichi.io import read_image, write_image
from bimichi.sources import to_bipolar

TRAIN = ("train", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40, "-o", "model.json")
FUSE = ("fuse", "model.json", "other/thermal.png", "other/grey.png", "-o", "fused.tif")


@pytest.fixture
def logistic(here):
    run(*TRAIN, "--objective", "logistic", "--additivity", 1)
    return FusionRule.load("model.json")


def planes(k=1):
    return [to_bipolar(images(k)[name]) for name in ("thermal", "grey")]


def test_prior_shift_gives_what_the_shifted_rule_gives(logistic):
    high = logistic.linked(logistic.link.slope, logistic.link.offset + 2, 0.5)  # as if half had been targets
    high.save("model.json")
    run(*FUSE, "--prior-shift")
    shifted = high.shifted(planes())
    assert shifted.link.base_rate < 0.4
    np.testing.assert_allclose(read_image("fused.tif"), shifted.fuse(planes()), atol=1e-6)


def test_a_batch_is_shifted_as_one(logistic):
    high = logistic.linked(logistic.link.slope, logistic.link.offset + 2, 0.5)
    high.save("model.json")
    for seed in (1, 2):
        for name, image in images(seed).items():
            Path("many", name).mkdir(parents=True, exist_ok=True)
            write_image(f"many/{name}/{seed}.png", image)
    run("fuse", "model.json", "many/thermal", "many/grey", "-o", "fused", "--prior-shift-batch")
    both = [np.concatenate(one) for one in zip(planes(1), planes(2), strict=True)]
    shifted = high.shifted(both)
    assert shifted.link not in (high.shifted(planes(1)).link, high.shifted(planes(2)).link)
    for seed in (1, 2):
        np.testing.assert_allclose(read_image(f"fused/{seed}.tif"), shifted.fuse(planes(seed)), atol=1e-6)


def test_a_share_that_is_known_is_used(logistic):
    run(*FUSE, "--base-rate", 0.01)
    np.testing.assert_allclose(read_image("fused.tif"), logistic.shifted(base_rate=0.01).fuse(planes()), atol=1e-6)
    assert "[number-range]" in run(*FUSE, "--base-rate", 1.5, code=1).stderr
    assert "[base-rate-twice]" in run(*FUSE, "--base-rate", 0.01, "--prior-shift", code=1).stderr


@pytest.mark.filterwarnings("default")
def test_a_scene_unlike_the_training_is_fused_with_a_warning(logistic):
    write_image("bright.png", np.maximum(images(1)["thermal"], 250))
    bright = ("fuse", "model.json", "bright.png", "bright.png", "--names", "thermal,grey", "-o", "b.tif")
    done = run(*bright, "--prior-shift")
    assert "[shift-unexplained]" in done.stderr
    assert "--base-rate" in done.stderr.replace("\n", " ")


def test_models_without_probabilities_cannot_be_shifted(trained):
    for flag in ("--prior-shift", "--prior-shift-batch"):
        assert "[shift-without-link]" in run(*FUSE, flag, code=1).stderr
    assert "[link-missing]" in run(*FUSE, "--base-rate", 0.01, code=1).stderr


def test_a_free_scale_is_learned_for_the_mean_alone(here):
    run(*TRAIN, "--objective", "mean", "--free-scale")
    model = BiMIChI.load("model.json")
    assert model.free_scale
    assert model.rule_.training.label_line[0] > 0
    refused = run(*TRAIN, "--objective", "bipolar", "--free-scale", code=1)
    assert "[free-scale-objective]" in refused.stderr
