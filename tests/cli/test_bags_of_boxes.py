"""`--bags boxes`: bags from the cores of boxes on the command line."""

import json

import numpy as np
from program import BOX, PAPER, run

from bimichi import BiMIChI, Scene
from bimichi.io import read_image
from bimichi.scenes import bag_sizes, core_bags
from bimichi.sources import to_bipolar

TRAIN = ("train", *PAPER, "thermal.png", "grey.png", "-o", "model.json", "--superpixels", 40)


def test_cores_of_boxes_are_the_bags(here):
    run(*TRAIN, "--boxes", "boxes.csv", "--bags", "boxes", "--objective", "mean")
    X = np.stack([to_bipolar(read_image(f"{name}.png")) for name in ("thermal", "grey")], axis=-1)
    segments, labels = core_bags(X.shape[:2], [BOX], n_blocks=40)
    scene = Scene(X, "s").with_bags(segments, labels, bag_sizes(segments))
    model = BiMIChI("mean", random_state=0).fit(scene.bags())
    np.testing.assert_allclose(BiMIChI.load("model.json").bicapacity_.values, model.bicapacity_.values)
    found = json.loads(
        run("bags", *TRAIN[3:5], "--boxes", "boxes.csv", "--bags", "boxes", "-o", "b.png", "--json").stdout
    )
    assert found["scenes"][0]["positive"] == 1
    run(*TRAIN, "--labels", "mask.png", "--bags", "boxes", "--objective", "auto")


def test_superpixels_by_name_and_a_file_called_boxes(here):
    run(*TRAIN, "--boxes", "boxes.csv", "--bags", "superpixels")
    named = BiMIChI.load("model.json").bicapacity_.values
    run(*TRAIN, "--boxes", "boxes.csv")
    np.testing.assert_array_equal(BiMIChI.load("model.json").bicapacity_.values, named)
    run(*TRAIN, "--boxes", "boxes.csv", "--bags", "segments.png")
    numbered = BiMIChI.load("model.json").bicapacity_.values
    (here / "segments.png").rename(here / "boxes")
    run(*TRAIN, "--boxes", "boxes.csv", "--bags", "./boxes")
    np.testing.assert_array_equal(BiMIChI.load("model.json").bicapacity_.values, numbered)


def test_many_scenes(many):
    run("train", "thermals", "greys", "--boxes", "all.csv", "--bags", "boxes", "-o", "model.json")
