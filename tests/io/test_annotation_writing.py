"""Annotations written and read again."""

import numpy as np
import pytest
from annotation_files import PLACES, SHAPE
from refusals import refused

from bimichi.io import read_annotations, write_annotations
from bimichi.scenes import Disc, ImageAnnotations, Placement, Polygons, in_pixels, rasterise


def test_round_trips_are_exact(tmp_path):
    rng = np.random.default_rng(3)
    boxes = {
        image: ImageAnnotations(rng.uniform(1, 15, (4, 4)), ["person", None, "a,b", "car"], [False, True, False, False])
        for image in ("a.png", "sub/b.png")
    }
    boxes["empty.png"] = ImageAnnotations(np.empty((0, 4)), [])
    for suffix in (".json", ".csv", ".geojson"):
        path = tmp_path / f"out{suffix}"
        write_annotations(path, boxes)
        again = read_annotations(path)
        assert sorted(again) == sorted(boxes)
        for image, one in boxes.items():
            np.testing.assert_array_equal(again[image].boxes, one.boxes)
            assert list(again[image].labels) == list(one.labels)
            assert again[image].is_ignored.tolist() == one.is_ignored.tolist()


def shapes():
    ring, hole = rng_ring(0), np.array([[20, 15], [24, 15], [24, 19], [20, 19]], float)
    outlines = [Polygons(((ring,),)), Polygons(((ring * 0.9, hole), (rng_ring(1),))), Disc(12.3, 30.1, 4.7), None]
    box = np.array([2, 3, 7.5, 4])
    boxes = np.array([box if one is None else one.box for one in outlines])
    return {None: ImageAnnotations(boxes, ["a", "b", "c", "d"], shapes=outlines)}


def rng_ring(seed):
    angles = np.sort(np.random.default_rng(seed).uniform(0, 2 * np.pi, 9))
    return np.stack([25 + 12 * np.cos(angles), 18 + 12 * np.sin(angles)], axis=1)


@pytest.mark.parametrize("suffix", [".json", ".geojson"])
@pytest.mark.parametrize("place", [Placement(SHAPE), PLACES["a.png"]])
def test_shapes_keep_their_pixels(suffix, place, tmp_path):
    found = shapes()
    write_annotations(tmp_path / f"out{suffix}", found, place)
    again = in_pixels(read_annotations(tmp_path / f"out{suffix}")[None], place)
    for label in "abcd":
        np.testing.assert_array_equal(
            rasterise(again, SHAPE, label).targets, rasterise(found[None], SHAPE, label).targets
        )


def test_what_cannot_be_written(tmp_path):
    with refused("annotations-boxes-only"):
        write_annotations(tmp_path / "a.csv", shapes())
    with refused("annotations-size"):
        write_annotations(tmp_path / "a.json", shapes())
    with refused("annotations-suffix"):
        write_annotations(tmp_path / "a.xml", {})
    mask = ImageAnnotations(np.empty((0, 4)), [], mask=np.array([[0, 1], [2, -1]]))
    write_annotations(tmp_path / "m.json", {"m": mask})
    again = read_annotations(tmp_path / "m.json")["m"]
    assert rasterise(again, (2, 2), "2").targets.tolist() == [[False, False], [True, False]]
    assert rasterise(again, (2, 2)).ignored.tolist() == [[False, False], [False, True]]
