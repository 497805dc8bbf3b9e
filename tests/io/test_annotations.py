"""The registry of annotation formats: what follows from it, and what every entry must do."""

import numpy as np
import pytest
from annotation_files import WRITERS
from refusals import refused
from registries import check_description, restored

from bimichi.io import (
    ANNOTATION_FORMATS,
    read_annotations,
    read_boxes,
    register_annotation_format,
    write_image,
)
from bimichi.io.annotations import START
from bimichi.scenes import AnnotationFormat, ImageAnnotations

MASK = np.array([[0, 0, 2], [0, 1, 2]], np.uint8)
BBGT = """% bbGt version=3
person 4 5 10 20 0 0 0 0 0 0 0
person? 1 2 3 4 0 0 0 0 0 1 0
"""
SAMPLES = {
    "csv": lambda path: path.with_suffix(".csv").write_text("x,y,w,h,label\n4,5,10,20,person\n"),
    "bbgt": lambda path: path.with_suffix(".txt").write_text(BBGT),
    "mask": lambda path: write_image(path.with_suffix(".png"), MASK),
}


@pytest.fixture
def registry():
    with restored(ANNOTATION_FORMATS):
        yield


def sample(name, folder):
    SAMPLES[name](folder / "sample")
    return next(folder.iterdir())


@pytest.mark.parametrize("entry", ANNOTATION_FORMATS.values(), ids=ANNOTATION_FORMATS.keys())
def test_entries(entry, tmp_path):
    check_description(entry.description)
    path = sample(entry.name, tmp_path) if entry.name in SAMPLES else WRITERS[entry.name][0](tmp_path)
    path = next(file for file in sorted(path.iterdir()) if file.stem == "a") if path.is_dir() else path
    with path.open("rb") as file:
        start = file.read(START)
    assert [other.name for other in ANNOTATION_FORMATS.values() if other.recognises(path, start)] == [entry.name]
    for image, found in read_annotations(path).items():
        assert image is None or isinstance(image, str)
        assert isinstance(found, ImageAnnotations)
        assert found.boxes.shape == (len(found.labels), 4)
        assert found.is_ignored.shape == (len(found.labels),)
        assert (found.mask is None) == (entry.name != "mask")


def test_content_decides_where_the_suffix_does_not(tmp_path):
    path = tmp_path / "boxes.txt"
    path.write_bytes(b"\xef\xbb\xbfImage, X,y,w,h\na,1,2,3,4\n")
    assert read_boxes(path, "a").tolist() == [[1, 2, 3, 4]]
    path.write_text(BBGT)
    assert read_boxes(path).tolist() == [[4, 5, 10, 20]]
    path.write_text("neither the one nor the other")
    with refused("annotations-format"):
        read_annotations(path)


def test_boxes_to_be_ignored_are_no_targets(tmp_path):
    found = read_annotations(sample("bbgt", tmp_path))[None]
    assert found.labels == ["person", "person?"]
    assert found.boxes[found.is_ignored].tolist() == [[1, 2, 3, 4]]
    assert found.boxes_of(None).tolist() == found.boxes_of("person").tolist() == [[4, 5, 10, 20]]
    assert found.boxes_of("person?").shape == (0, 4)
    assert found.mask_of(None) is None


def test_classes_of_masks(tmp_path):
    found = read_annotations(sample("mask", tmp_path))[None]
    np.testing.assert_array_equal(found.mask_of(None), MASK > 0)
    np.testing.assert_array_equal(found.mask_of("2"), MASK == 2)
    with refused("target-number", "'car'"):
        found.mask_of("car")
    with refused("mask-without-boxes"):
        read_boxes(tmp_path / "sample.png")
    write_image(tmp_path / "rgb.png", np.zeros((2, 3, 3), np.uint8))
    with refused("mask-bands", "rgb.png"):
        read_annotations(tmp_path / "rgb.png")


def test_labels_that_a_file_does_not_give(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text("x,y,w,h\n1,2,3,4\n")
    with refused("label-unused", "'car'"):
        read_boxes(path, label="car")


def test_a_new_format_is_one_call(registry, tmp_path):
    boxes = np.array([[1.0, 2, 3, 4]])
    new = AnnotationFormat("mine", "mine alone", lambda path, start: start[:1] == b"!", lambda path: {"a": found})
    found = ImageAnnotations(boxes, ["car"])
    assert register_annotation_format(new) is new
    assert next(iter(ANNOTATION_FORMATS)) == "mine"
    path = tmp_path / "boxes.csv"  # which the format of CSV would recognise, too
    path.write_text("!")
    np.testing.assert_array_equal(read_boxes(path, "a", "car"), boxes)
    with refused("format-taken", "'mine'"):
        register_annotation_format(new)
