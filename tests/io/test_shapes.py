"""Which pixels shapes, runs and masks mark."""

import json

import numpy as np
from annotation_files import PLACES, SHAPE, expected, geojson, text

from bimichi.io import read_annotations
from bimichi.scenes import Disc, ImageAnnotations, Polygons, box_mask, in_pixels, rasterise
from bimichi.scenes.shapes import corners_of, decode_brush, decode_coco, encode_coco, runs_of


def test_a_hole_leaves_the_pixels_that_it_covers_whole():
    outer, hole = np.array([[1, 1], [9, 1], [9, 9], [1, 9]], float), np.array([[3.5, 3], [6, 3], [6, 6], [3.5, 6]])
    mask = np.zeros((10, 10), bool)
    Polygons(((outer, hole),)).paint(mask)
    truth = box_mask([(1, 1, 8, 8)], (10, 10))
    truth[3:6, 4:6] = False
    np.testing.assert_array_equal(mask, truth)


def test_a_disc_marks_the_pixels_that_it_overlaps():
    mask = np.zeros((7, 7), bool)
    Disc(3.5, 3.5, 1.5).paint(mask)
    assert mask.sum() == 9  # the corners of the 3 x 3 pixels reach into it, the next pixels touch it only
    assert mask[2:5, 2:5].all()
    mask[:] = False
    Disc(3.2, 3.9).paint(mask)
    assert np.argwhere(mask).tolist() == [[3, 3]]


def test_runs_of_masks_are_those_of_coco():
    rng = np.random.default_rng(1)
    for _ in range(20):
        mask = rng.random((7, 5)) < rng.choice([0.1, 0.5, 0.95])
        runs = runs_of(mask)
        np.testing.assert_array_equal(runs.array(), mask)
        np.testing.assert_array_equal(decode_coco(encode_coco(runs.counts)), runs.counts)
        if mask.any():
            rows, columns = np.nonzero(mask)
            height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
            assert runs.box.tolist() == [columns.min(), rows.min(), width, height]
    assert encode_coco([6, 1, 40, 4, 5, 4, 5, 4, 21]) == "61X13mN000`0"  # of the reference implementation


def test_the_brush_of_label_studio():
    height, width = 2, 3
    alpha = np.array([[0, 1, 1], [0, 0, 1]], bool)
    values = np.zeros((height, width, 4), np.uint8)
    values[..., 3] = 255 * alpha
    bits = [f"{values.size:032b}", f"{7:05b}", *(f"{size - 1:04b}" for size in (3, 4, 8, 16))]
    flat = values.ravel().tolist()
    bits += ["0", "10", f"{11:08b}", *(f"{value:08b}" for value in flat[:12])]  # twelve values as they are
    for value in flat[12:]:
        bits += ["1", "00", f"{0:03b}", f"{value:08b}"]  # and twelve runs of one
    joined = "".join(bits)
    content = [int(joined[k : k + 8].ljust(8, "0"), 2) for k in range(0, len(joined), 8)]
    np.testing.assert_array_equal(decode_brush(content, height, width), alpha)


def test_points_take_a_radius():
    found = ImageAnnotations(np.array([[3, 3, 1, 1.0]]), [None], shapes=[Disc(3.5, 3.5)])
    assert rasterise(found, (7, 7)).targets.sum() == 1
    assert rasterise(found, (7, 7), point_radius=1.5).targets.sum() == 9


def test_unknown_pixels_of_a_mask_are_ignored(tmp_path):
    np.save(tmp_path / "m.npy", np.array([[-1, 0, 1]], np.int16))
    regions = rasterise(read_annotations(tmp_path / "m.npy")[None], (1, 3))
    assert regions.targets.tolist() == [[False, False, True]]
    assert regions.ignored.tolist() == [[True, False, False]]


def test_polygons_of_boxes_cover_the_same_pixels():
    rng = np.random.default_rng(0)
    for k in range(200):
        box = rng.uniform(-5, 25, 4)
        box[2:] = np.abs(box[2:]) + 5.01
        box = np.round(box) + 1e-9 if k % 2 else box
        mask = np.zeros((20, 30), bool)
        Polygons(((corners_of(box),),)).paint(mask)
        if (box[:2] + box[2:] > 0.1).all() and (box[:2] < [29.9, 19.9]).all():
            np.testing.assert_array_equal(mask, box_mask([box], (20, 30)))
            found = ImageAnnotations(box[None], ["a"])
            np.testing.assert_array_equal(rasterise(found, (20, 30)).targets, mask)


def test_places_beyond_the_system_of_the_image_are_outside_it(tmp_path):
    data = json.loads(geojson(tmp_path, None).read_text())
    far = {"type": "Polygon", "coordinates": [[[170, 95], [171, 95], [171, 96], [170, 95]]]}
    data["features"].append({"type": "Feature", "properties": {"label": "person"}, "geometry": far})
    found = read_annotations(text(tmp_path / "far.geojson", json.dumps(data)))[None]
    assert len(found.boxes) == 5
    placed = in_pixels(found, PLACES["b.png"])
    np.testing.assert_array_equal(rasterise(placed, SHAPE).targets, expected()["b.png"])
