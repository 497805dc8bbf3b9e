"""One meaning of a label: learning, scores, thresholds, `check` and the studio see the same labels of pixels."""

from dataclasses import replace

import numpy as np
import pytest

import bimichi.evaluate.thresholds as thresholds
from bimichi import InvalidInputError, Scene
from bimichi.evaluate.thresholds import Threshold
from bimichi.io import open_scenes, write_annotations, write_image
from bimichi.io.check import SceneViewer
from bimichi.io.labelled import LabelledDataset
from bimichi.metrics import decide
from bimichi.scenes import Disc, Labelling, Polygons, bag_scene, label_pixels, pixel_labels, scene_labels, superpixels
from bimichi.scenes.annotations import Found, ImageAnnotations, image_annotations
from bimichi.scenes.grid import Placement
from bimichi.scenes.labels import scored_pixels
from bimichi.scenes.sample import grouped_pixels
from bimichi.scenes.shapes import outline, runs_of
from bimichi.studio.labels import Shape, annotations_of, parse_shapes, shapes_of
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_workspace

SIZE = (40, 60)
ROWS, COLUMNS = np.indices(SIZE)
SOURCES = np.stack([(ROWS * SIZE[1] + COLUMNS) / ROWS.size, np.cos(ROWS / 5) * np.sin(COLUMNS / 7)], axis=-1)


def letter(x, y):
    """The corners of an L."""
    return np.array([(0, 0), (6, 0), (6, 14), (18, 14), (18, 20), (0, 20)]) + np.array([x, y])


def region(x, y):
    """The outline of the superpixel at a point."""
    segments = superpixels(SOURCES, 12, lab=False)
    (rings,) = outline(segments == segments[y, x])
    return Polygons((tuple(ring[:-1] for ring in rings),))


def stroke(x, y):
    drawn = Shape("s", "stroke", "target", ((x, y), (x + 10.0, y + 6.0)), 7.0)
    return annotations_of([drawn], SIZE).outlines[0]


def bean(x, y):
    return runs_of(np.hypot((COLUMNS - x - 8) / 9, (ROWS - y - 8) / 6) < 1, image=SIZE)


KINDS = {
    "box": lambda x, y: np.array([x, y, 13.5, 17]),
    "polygon": lambda x, y: Polygons(((letter(x, y),),)),
    "mask": bean,
    "stroke": stroke,
    "superpixel": region,
    "disc": lambda x, y: Disc(x + 8.0, y + 8.0, 7.5),
}


def drawn(kind, negative):
    objects = [Found(KINDS[kind](5, 4), "target"), Found(KINDS[kind](35, 15), "target")]
    objects += [Found(KINDS[kind](10, 12), "not")] if negative else []
    return image_annotations([*objects, Found(np.array([50.0, 0, 5, 5]), "target", ignored=True)])


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for name, plane in zip("ab", np.moveaxis(SOURCES, -1, 0), strict=True):
        write_image(folder / f"{name}.tif", plane.astype(np.float32))
    return [str(folder / "a.tif"), str(folder / "b.tif")]


class Map:
    """A model whose map is its first source, which differs from pixel to pixel."""

    def fuse(self, sources):
        return sources[..., 0]


def flags(values):
    """The pixels that have these values of the first source."""
    return np.isin(SOURCES[..., 0].astype(np.float32), np.asarray(values, np.float32))


def labels_of_bags(scene):
    found = np.zeros(SIZE, np.int8)
    for segment, positive in scene.labels.items():
        found[scene.segments == segment] = 1 if positive else -1
    return found


@pytest.mark.parametrize("rest", ["negative", "unknown"])
@pytest.mark.parametrize("negative", [False, True], ids=["targets", "and not targets"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_see_the_same_labels(kind, negative, rest, images, tmp_path, monkeypatch):
    annotations = drawn(kind, negative)
    how = Labelling(tmp_path / "labels.json", bags="boxes", target="target", negative="not", rest=rest)
    labels = pixel_labels(annotations, SIZE, how)
    assert set(np.unique(labels)) == ({-1, 0, 1, 2} if negative or rest == "negative" else {0, 1, 2})
    write_annotations(how.boxes, {"a.tif": annotations}, Placement(SIZE))

    scene = LabelledDataset(open_scenes(images), how)[0]  # learning, by the command line
    np.testing.assert_array_equal(scene_labels(scene), labels)
    np.testing.assert_array_equal(labels_of_bags(scene), np.sign(labels))
    (sample,) = grouped_pixels(scene, scene.sources, labels, None)  # choosing, and scores
    np.testing.assert_array_equal(flags(sample.targets[:, 0]), labels > 0)
    np.testing.assert_array_equal(flags(sample.targets[sample.sure, 0]), scored_pixels(labels)[0])
    np.testing.assert_array_equal(flags(sample.others[:, 0]), scored_pixels(labels)[1])

    seen = []
    monkeypatch.setattr(thresholds, "choose_threshold", lambda *given, **_: seen.extend(given) or Threshold(0, 1, 1, 1))
    decide(Map(), [scene])
    values, positive = seen
    np.testing.assert_array_equal(flags(values[positive]), labels > 0)
    np.testing.assert_array_equal(flags(values[~positive]), labels < 0)

    viewed = SceneViewer(open_scenes(images), how).view(scene.name)  # `check`, and pictures of bags
    np.testing.assert_array_equal(viewed.targets.labels, labels)
    np.testing.assert_array_equal(viewed.scene.segments, scene.segments)

    work = open_workspace(images, Options())
    work.settings = replace(work.settings, rest=rest)
    shapes = parse_shapes([shape.to_json() for shape in shapes_of(annotations, SIZE, "s")], SIZE)
    work.draw(0, 1, [shape.to_json() for shape in shapes])
    (own,) = Learner(work.store, 1).scenes(work.task())
    np.testing.assert_array_equal(scene_labels(own), labels)
    np.testing.assert_array_equal(own.segments, scene.segments)


def test_masks_of_files_mean_the_same_as_masks_among_objects():
    mask = np.where(bean(5, 4).array() | bean(35, 15).array(), 1, 0)
    mask[:5, 50:55] = -1
    given = ImageAnnotations(np.empty((0, 4)), [], mask=mask)
    np.testing.assert_array_equal(pixel_labels(given, SIZE), pixel_labels(drawn("mask", False), SIZE))


@pytest.mark.parametrize("bags", ["superpixels", "boxes"])
@pytest.mark.parametrize("kind", KINDS)
def test_bags_do_not_change_what_pixels_mean(kind, bags):
    annotations = drawn(kind, False)
    scene, _ = bag_scene(Scene(SOURCES, "s"), annotations, Labelling(bags=bags))
    np.testing.assert_array_equal(scene_labels(scene), pixel_labels(annotations, SIZE))


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_says_what_was_so_changes_nothing(kind):
    """A score once changed by itself when something outside of targets was marked as no target."""
    how = Labelling(bags="boxes", target="target", negative="not")
    annotations = drawn(kind, False)
    more = image_annotations([*annotations.objects, Found(np.array([50.0, 36, 8, 4]), "not")])
    np.testing.assert_array_equal(pixel_labels(more, SIZE, how), pixel_labels(annotations, SIZE, how))


def test_scenes_with_boxes_alone_mean_the_same():
    annotations = image_annotations([Found(KINDS["box"](5, 4), "target"), Found(KINDS["box"](35, 15), "target")])
    scene, _ = bag_scene(Scene(SOURCES, "s"), annotations, Labelling())
    bare = Scene(SOURCES, "s", boxes=annotations.boxes).with_bags(scene.segments, scene.labels)
    np.testing.assert_array_equal(scene_labels(bare), scene_labels(scene))
    holes = SOURCES.copy()
    holes[4:12, 5:12] = np.nan
    known = scene_labels(replace(bare, sources=holes, ignore=ROWS > 30))
    np.testing.assert_array_equal(known == 0, (scene_labels(bare) == 0) | np.isnan(holes[..., 0]) | (ROWS > 30))
    assert scene_labels(Scene(SOURCES, "s")) is None
    assert scene_labels(replace(bare, boxes=np.empty((0, 4)))) is None


def test_the_innermost_part_lies_in_the_core_and_is_scored():
    labels = label_pixels((20, 30), [(0, 0, 20, 20)], inner=(0.4, 0.7))
    np.testing.assert_array_equal(labels > 0, label_pixels((20, 30), [(0, 0, 20, 20)]) > 0)
    assert (labels == 2).sum() == 8 * 14
    narrow = label_pixels((20, 30), [(0, 0, 20, 20)], core=(0.2, 0.2), inner=(0.4, 0.7))
    assert (narrow > 0).sum() == (narrow == 2).sum() == 4 * 4
    both = label_pixels((20, 30), [(0, 0, 20, 20), (2, 0, 20, 20)], inner=(0.4, 0.7))
    assert both.max() == 2
    assert scored_pixels(labels)[0].sum() == 8 * 14
    assert scored_pixels(np.minimum(labels, 1))[0].sum() == (labels > 0).sum()


def test_thresholds_take_polygons_as_they_were_drawn():
    """What lies between the arms of an L was once a target, as its bounding box holds it."""
    places = [(3, 3), (33, 15)]
    annotations = image_annotations([Found(Polygons(((letter(x, y),),)), "target") for x, y in places])
    scene, _ = bag_scene(Scene(SOURCES, "s"), annotations, Labelling())
    values = np.zeros(SIZE)
    for x, y in places:
        values[y : y + 20, x : x + 18] = 0.9
    inside = pixel_labels(annotations, SIZE, Labelling(bags="boxes", core=(1.0, 1.0))) > 0
    values[inside] = 0.8
    with pytest.raises(InvalidInputError):
        decide(Map(), [replace(scene, sources=values[..., None], source_names=())], precision=0.9)
    values[~inside] = 0.0
    assert decide(Map(), [replace(scene, sources=values[..., None], source_names=())], precision=0.9).threshold == 0.8


def test_negative_points_have_the_radius_of_others():
    annotations = image_annotations([Found(KINDS["box"](5, 4), "target"), Found(Disc(10, 10), "not")])
    how = Labelling(bags="boxes", target="target", negative="not", point_radius=2)
    assert (pixel_labels(annotations, SIZE, how)[9:11, 9:11] == -1).all()
