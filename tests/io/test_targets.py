"""Which scene an annotation belongs to, and what is said of doubtful ones."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from annotation_files import BOXES, SHAPE, coco, collected, expected, geojson, text, voc
from refusals import refused, warned

from bimichi import InvalidInputError
from bimichi.errors import AnnotationWarning
from bimichi.io import write_image
from bimichi.io.annotations.match import SceneTargets
from bimichi.io.dataset import collect_scenes
from bimichi.io.labelled import LabelledDataset
from bimichi.scenes import rasterise
from bimichi.scenes.labels import Labelling


def test_unknown_pixels_are_not_scored(scenes, tmp_path):
    mask = np.zeros(SHAPE, np.int16)
    mask[5:9, 5:9], mask[20:, :] = 1, -1
    np.save(tmp_path / "truth.npy", mask)
    collection = collect_scenes([str(scenes / "vi" / "a.png")])
    path = str(tmp_path / "truth.npy")
    (scene,) = LabelledDataset(collection, Labelling(labels=path, superpixels=20), truth=path)
    np.testing.assert_array_equal(scene.truth, mask == 1)
    np.testing.assert_array_equal(scene.ignore, mask == -1)
    assert len(scene.labels) < len(np.unique(scene.segments))


def test_one_file_per_scene_by_a_pattern(scenes, tmp_path):
    voc(tmp_path)
    content = (tmp_path / "a.xml").read_text().replace("a.png", "old.png")
    text(tmp_path / "a.xml", content)
    found = SceneTargets(str(tmp_path / "*.xml"), collected(scenes), "person")
    np.testing.assert_array_equal(rasterise(found.of("a"), SHAPE, "person").targets, expected("person")["a.png"])
    assert "is about the image 'old.png'; by its own name it is taken for 'a'" in found.notes[0]


def test_images_are_matched_by_path_name_or_stem(scenes, tmp_path):
    for name in ("a", "a.png", "vi/a.png", "x\\vi\\a.png", str(scenes / "ir" / "a.tif"), "D:\\old\\a.jpg"):
        path = text(tmp_path / "b.csv", f"file,x1,y1,x2,y2\n{name},1,2,4,8\nb,1,1,2,2\n")
        found = SceneTargets(path, collected(scenes))
        assert found.of("a").boxes.tolist() == [[1, 2, 3, 6]]
        assert found.notes == [f"{path}: columns x1, y1, x2, y2 are read as two corners, in pixels; images by file."]


def test_what_fits_twice_is_an_error(scenes, tmp_path):
    path = text(tmp_path / "b.csv", "image,x,y,w,h\nset1/a.png,1,2,3,4\nset2/a.png,1,2,3,4\n")
    with refused("annotations-ambiguous", "'set1/a.png'", "'set2/a.png'", "'a'"):
        SceneTargets(path, collected(scenes))
    for place in ("p", "q"):
        (tmp_path / place).mkdir()
        write_image(tmp_path / place / "img.png", np.zeros(SHAPE, np.uint8))
    path = text(tmp_path / "c.csv", "image,x,y,w,h\nimg.png,1,2,3,4\n")
    many = collect_scenes([str(tmp_path / "*" / "img.png")])
    with refused("annotations-ambiguous", "'img.png'", "'p'", "'q'"):
        SceneTargets(path, many)
    path = text(tmp_path / "c.csv", "image,x,y,w,h\nq/img.png,1,2,3,4\n")
    assert len(SceneTargets(path, many).of("q").boxes) == 1


def test_boxes_of_other_images_are_counted(scenes, tmp_path):
    path = text(tmp_path / "b.csv", "image,x,y,w,h\na,1,2,3,4\nc,1,2,3,4\nc,5,2,3,4\nd,1,2,3,4\n")
    notes = " ".join(SceneTargets(path, collected(scenes)).notes)
    assert "left out 3 objects of 2 other images: 'c', 'd'" in notes
    assert "does not name 1 scene: 'b'; no targets" in notes
    one = collect_scenes([str(scenes / "vi" / "a.png")])
    assert "left out 3 objects of 2 other images" in " ".join(SceneTargets(path, one).notes)
    path = text(tmp_path / "b.csv", "image,x,y,w,h\nz,1,2,3,4\n")
    with warned("annotations-other-image", "'z'", "'a'", "a.png", kind=AnnotationWarning):
        SceneTargets(path, one)
    with refused("annotations-other-images", "'z'", "'a'", "'b'"):
        SceneTargets(path, collected(scenes))


def test_labels_are_named_as_found(scenes, tmp_path):
    path = coco(tmp_path)
    with refused("label-unknown", "'Person'", "'person'", "--target"):
        SceneTargets(path, collected(scenes), "Person")
    with refused("label-unknown", "'dog'", "'person'", "'car'"):
        SceneTargets(path, collected(scenes), "dog")
    assert "all labels count as targets: 'person' (3), 'car' (1)" in SceneTargets(path, collected(scenes)).notes[0]


def test_a_map_needs_a_georeference(scenes, tmp_path):
    found = SceneTargets(geojson(tmp_path), collect_scenes([str(scenes / "vi" / "a.png")]))
    with refused("annotations-units"):
        found.of("a")


def doubts_of(scenes, rows, **how):
    path = text(scenes / "rows.csv", "image,x,y,w,h\n" + "\n".join(rows))
    reader = LabelledDataset(collect_scenes([str(scenes / "vi")]), Labelling(boxes=path, superpixels=20, **how))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(reader)
    return [str(one.message) for one in caught if one.category is AnnotationWarning]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,.1,.2,.3,.1", "b,.5,.5,.1,.1"], "seem to be fractions of the image. Multiply x and width by 60"),
        (["a,30,15,50,35"], "seem to be the opposite corner. Name such columns xmin"),
        (["a,3,5,10,20", "a,8,9,12,14", "a,11,3,33,21"], "seem to be the opposite corner"),
        (["a,5,38,8,14", "a,2,45,9,10"], "seem to be swapped. Exchange x with y"),
        (
            ["a,50,30,90,90", "a,5,6,2,2"],
            "1 of 2 boxes exceed the image of 60 x 40 pixels, the first is (50, 30, 90, 90)",
        ),
        (["a,0,0,60,30"], "75% of the image are targets"),
        (["a,0,0,60,40"], "every known pixel is target"),
    ],
)
def test_doubtful_boxes(scenes, rows, message):
    assert any("rows.csv" in text and message in text for text in _warned_or_failed(scenes, rows))


def _warned_or_failed(scenes, rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = text(scenes / "rows.csv", "image,x,y,w,h\n" + "\n".join(rows))
        reader = LabelledDataset(collect_scenes([str(scenes / "vi")]), Labelling(boxes=path, superpixels=20))
        with suppress(InvalidInputError):  # a box outside the image, which the warning explains
            list(reader)
    return [str(one.message) for one in caught if one.category is AnnotationWarning]


def test_usual_boxes_are_not_doubtful(scenes):
    rows = [f"{image},{x},{y},{w},{h}" for image, rows in BOXES.items() for _, x, y, w, h in rows]
    assert doubts_of(scenes, rows) == []
    assert doubts_of(scenes, ["a,59,39,1.5,1.5", "b,0,0,10,10"]) == []


def test_masks_of_several_classes(scenes, tmp_path):
    for name in ("a", "b"):
        mask = np.zeros(SHAPE, np.uint8)
        mask[5:9, 5:9], mask[20:30, 5:9] = 1, 2
        write_image(tmp_path / f"{name}.png", mask)
    collection = collect_scenes([str(scenes / "vi")])
    reader = LabelledDataset(collection, Labelling(labels=str(tmp_path), superpixels=20))
    with warned("several-classes", "2,344", "16", "40", "--target", kind=AnnotationWarning) as seen:
        list(reader)
    assert len(seen) == 1
    list(LabelledDataset(collection, Labelling(labels=str(tmp_path), target="2", superpixels=20)))
    reader = LabelledDataset(collection, Labelling(labels=str(tmp_path), target="7", superpixels=20))
    list(reader)
    with refused("label-unknown", "--target"):
        reader.check_both()
