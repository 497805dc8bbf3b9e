"""Bags of a scene: objects that are no targets, what is unknown, cores, and scenes that files do not name."""

import numpy as np
from refusals import refused

from bimichi.io import write_image
from bimichi.io.dataset import open_scenes
from bimichi.io.labelled import LabelledDataset
from bimichi.scenes import label_pixels
from bimichi.scenes.annotations import Found, image_annotations
from bimichi.scenes.labels import Labelling, bag_scene
from bimichi.scenes.scene import Scene

SHAPE = (8, 20)


def scene():
    return Scene(np.random.default_rng(0).uniform(-1, 1, (*SHAPE, 2)), "one", ("a", "b"))


def labels_of(bagged):
    """1 in positive bags, -1 in negative ones, 0 elsewhere."""
    found = np.zeros(SHAPE, int)
    for segment, positive in bagged.labels.items():
        found[bagged.segments == segment] = 1 if positive else -1
    return found


def annotations(*extra):
    return image_annotations([Found(np.array([2.0, 1, 10, 6]), "target"), *extra])


NOT = Found(np.array([4.0, 0, 4, 8]), "not")


def test_objects_that_are_no_targets_are_negative_also_within_others():
    how = Labelling(bags="boxes", target="target", negative="not")
    bagged, counts = bag_scene(scene(), annotations(NOT), how)
    found = labels_of(bagged)
    assert (found[:, 4:8] == -1).all()
    assert (found[1:7, 8:10] == 1).all()
    assert found[1, 2] == 0  # in the box, but not in its core
    assert (found[:, 13:] == -1).all()
    assert counts.positive == 1
    assert np.array_equal(found, np.sign(bagged.pixels))
    assert len(bagged.boxes) == 1


def test_the_rest_may_be_unknown():
    how = Labelling(bags="boxes", target="target", negative="not", rest="unknown")
    found = labels_of(bag_scene(scene(), annotations(NOT), how)[0])
    assert (found[:, 13:] == 0).all()
    assert (found[:, 4:8] == -1).all()
    assert (found == 1).any()


def test_cores_may_be_larger():
    wide = labels_of(bag_scene(scene(), annotations(), Labelling(bags="boxes", core=(1, 1)))[0])
    assert (wide[1:7, 2:12] == 1).all()
    assert (wide == 1).sum() == 60


def test_what_is_about_pixels_of_regions_needs_bags_of_them():
    for wrong in ({"negative": "not"}, {"rest": "unknown"}, {"core": (1, 1)}):
        with refused("regions-options", "--bags"):
            Labelling(**wrong)
    with refused("labels-same"):
        Labelling(bags="boxes", target="a", negative="a")
    with refused("choice:rest"):
        Labelling(bags="boxes", rest="other")


def test_negative_pixels_of_a_mask_win():
    negative = np.zeros((2, 6), bool)
    negative[:, 2] = True
    found = label_pixels((2, 6), [(0, 0, 4, 2)], (1, 1), ignore=np.ones((2, 6), bool), negative=negative)
    assert found.tolist() == [[1, 1, -1, 1, 0, 0]] * 2


def test_scenes_that_a_file_does_not_name_may_be_left_out(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("one", "two", "three"):
        (tmp_path / "a").mkdir(exist_ok=True)
        write_image(tmp_path / "a" / f"{name}.png", rng.integers(0, 255, SHAPE).astype(np.uint8))
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("image,x,y,w,h\none,2,1,10,6\ntwo,,,,\n")
    collection = open_scenes([str(tmp_path / "a")])
    reader = LabelledDataset(collection, Labelling(boxes=boxes, bags="boxes", labelled_only=True))
    assert reader.names == ("one", "two")
    assert "they are left out" in " ".join(reader.notes)
    everything = LabelledDataset(collection, Labelling(boxes=boxes, bags="boxes"))
    assert everything.names == ("one", "three", "two")
    assert "no targets" in " ".join(everything.notes)
