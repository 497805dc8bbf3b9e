import numpy as np
import pytest
from refusals import refused

from bimichi import Bags
from bimichi.io import read_boxes
from bimichi.scenes import box_mask, boxes_of, grid_segments, label_bags, polygon_mask


def overlap(start, stop, pixel):
    return min(stop, pixel + 1) - max(start, pixel)


def test_box_mask_against_loops(rng):
    for _ in range(50):
        boxes = np.column_stack([rng.uniform(-3, 8, (3, 2)), rng.uniform(3.1, 9, (3, 2))])
        if rng.random() < 0.5:
            boxes = np.round(boxes)
        expected = np.zeros((9, 10), bool)
        for x, y, w, h in boxes:
            for r, c in np.ndindex(9, 10):
                expected[r, c] |= overlap(x, x + w, c) > 1e-6 and overlap(y, y + h, r) > 1e-6
        assert np.array_equal(box_mask(boxes, (9, 10)), expected)


def test_box_edges():
    assert box_mask([(1, 1, 2, 1)], (3, 4)).nonzero()[1].tolist() == [1, 2]  # what touches does not overlap
    assert box_mask([(0.1, 0, 0.2 + 0.7, 1)], (1, 3)).tolist() == [[True, False, False]]  # 1.0000000000000002
    assert box_mask([(1.5, 0.5, 1e-9, 1e-9)], (1, 3)).tolist() == [[False, True, False]]
    assert box_mask([(-5, -5, 100, 100)], (3, 4)).all()
    assert box_mask([(-1e300, -1e9, 1.7e308, 1e10)], (3, 4)).all()
    assert not box_mask([], (3, 4)).any()
    assert not box_mask(np.empty((0, 4)), (3, 4)).any()


def corners(x, y, w, h):
    return [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]


def test_a_rectangle_is_the_same_as_box_and_polygon(rng):
    for _ in range(60):
        box = [*rng.uniform(-2, 6, 2), *rng.uniform(2.1, 8, 2)]
        if rng.random() < 0.5:
            box = np.round(box)
        polygon = corners(*box)
        for shown in (polygon, polygon[::-1], np.roll(polygon, 2, axis=0)):
            assert np.array_equal(polygon_mask([shown], (9, 10)), box_mask([box], (9, 10)))


def test_polygons_against_fine_sampling(rng):
    """A pixel belongs to a triangle if any of its sub-pixels does; slivers between samples may be missed by these."""
    fine = 40
    y, x = (np.indices((8 * fine, 9 * fine)) + 0.5) / fine
    missed = 0
    for _ in range(20):
        a, b, c = triangle = rng.uniform(-1, 9, (3, 2))
        sides = [(q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]) for p, q in ((a, b), (b, c), (c, a))]
        inside = np.all([s > 0 for s in sides], axis=0) | np.all([s < 0 for s in sides], axis=0)
        sampled = inside.reshape(8, fine, 9, fine).any(axis=(1, 3))
        mask = polygon_mask([triangle], (8, 9))
        assert not (sampled & ~mask).any()
        missed += (mask & ~sampled).sum()
    assert missed < 10


def test_polygon_within_one_pixel_and_several():
    tiny = [(2.2, 1.3), (2.3, 1.3), (2.2, 1.4)]
    assert np.argwhere(polygon_mask([tiny], (4, 5))).tolist() == [[1, 2]]
    both = polygon_mask([tiny, corners(0, 3, 1, 1)], (4, 5))
    assert np.argwhere(both).tolist() == [[1, 2], [3, 0]]
    assert polygon_mask([[(-1e12, -1e12), (1e12, -1e12), (0, 1e12)]], (4, 5)).all()
    ring = [(0, 0), (5, 0), (5, 5), (0, 5), (0, 0), (1, 1), (1, 4), (4, 4), (4, 1), (1, 1)]
    assert not polygon_mask([ring], (5, 5))[2, 2]


def test_boxes_of_regions():
    mask = np.zeros((8, 9), bool)
    mask[0, 0] = mask[1, 1] = True  # meet at a corner
    mask[4:6, 3:8] = True
    assert boxes_of(mask).tolist() == [[0, 0, 2, 2], [3, 4, 5, 2]]
    assert boxes_of(np.zeros((3, 3), bool)).shape == (0, 4)
    again = box_mask(boxes_of(mask), mask.shape)
    assert (again | ~mask).all()
    assert again.sum() == 4 + 10


def naive_labels(segments, region, min_overlap, ignore):
    labels = {}
    for bag in np.unique(segments[segments >= 0]):
        pixels = segments == bag
        hits = (pixels & region).sum()
        if hits > 0 and hits / pixels.sum() >= min_overlap:
            labels[int(bag)] = True
        elif not (pixels & ignore).any():
            labels[int(bag)] = False
    return labels


@pytest.mark.parametrize("min_overlap", [0.0, 0.25, 0.5, 1.0])
def test_labels_against_loops(rng, min_overlap):
    for _ in range(30):
        segments = rng.integers(-1, 14, (10, 12))
        region = rng.random((10, 12)) < rng.uniform(0.02, 0.6)
        ignore = rng.random((10, 12)) < rng.uniform(0, 0.1)
        labels = label_bags(segments, mask=region, min_overlap=min_overlap, ignore=ignore, require_both=False)
        assert labels == naive_labels(segments, region, min_overlap, ignore)
        assert all(type(bag) is int and type(label) is bool for bag, label in labels.items())


def test_regions_add_up_and_labels_make_bags(rng):
    segments = grid_segments((8, 12), 4)
    mask = np.zeros((8, 12), bool)
    mask[7, 11] = True
    triangle = [(5, 0.5), (6, 0.5), (5, 1.5)]
    labels = label_bags(segments, boxes=[(0, 0, 4, 4)], polygons=[triangle], mask=mask, ignore=[(8, 0, 1, 1)])
    assert labels == {0: True, 1: True, 3: False, 4: False, 5: True}
    bags = Bags.from_image(rng.uniform(-1, 1, (8, 12, 2)), segments, labels)
    assert bags.ids == [0, 1, 3, 4, 5]
    assert bags.labels.tolist() == [True, True, False, False, True]
    few = label_bags(segments, boxes=[(0, 0, 5, 4)], min_overlap=0.5)
    assert few == {0: True, 1: False, 2: False, 3: False, 4: False, 5: False}
    assert label_bags(segments, boxes=[(0, 0, 5, 4)], min_overlap=0.5, ignore=[(0, 0, 5, 4)]).keys() == {0, 2, 3, 4, 5}


SEGMENTS = grid_segments((4, 6), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: box_mask([(0, 0, 2, 2), (6, 0, 2, 2)], (4, 6)), "shape-outside"),
        (lambda: box_mask([(-2, 0, 2, 2)], (4, 6)), "shape-outside"),
        (lambda: box_mask([(0, 4.5, 2, 2)], (4, 6)), "shape-outside"),
        (lambda: box_mask([(-2, 0, 2 + 1e-9, 2)], (4, 6)), "shape-outside"),
        (lambda: box_mask([(1, 1, 0, 2)], (4, 6)), "box-size"),
        (lambda: box_mask([(1, 1, 2, -2)], (4, 6)), "box-size"),
        (lambda: box_mask([(1, 1, 2)], (4, 6)), "boxes-shape"),
        (lambda: box_mask((1, 1, 2, 2), (4, 6)), "boxes-shape"),
        (lambda: box_mask([(1, 1, np.nan, 2)], (4, 6)), "finite"),
        (lambda: box_mask([(1, 1, 2, 2), (1, 1)], (4, 6)), "rows-length"),
        (lambda: box_mask([("a", 1, 2, 2)], (4, 6)), "rows-length"),
        (lambda: box_mask([], (4, 6, 3)), "window:shape"),
        (lambda: polygon_mask([[(0, 0), (1, 1)]], (4, 6)), "polygon-points"),
        (lambda: polygon_mask([corners(9, 9, 2, 2)], (4, 6)), "shape-outside"),
        (lambda: polygon_mask([[(0, 0), (4, 0), (2, 0)]], (4, 6)), "shape-outside"),
        (lambda: boxes_of(np.zeros((3, 3), int)), "mask-kind:mask"),
        (lambda: label_bags(SEGMENTS), "targets-unnamed"),
        (
            lambda: label_bags(SEGMENTS, [(0, 0, 1, 1)], min_overlap=1.5),
            "number-range:min_overlap",
        ),
        (lambda: label_bags(SEGMENTS, []), "one-class"),
        (lambda: label_bags(SEGMENTS, [(0, 0, 6, 4)]), "one-class"),
        (
            lambda: label_bags(SEGMENTS, [(0, 0, 2, 2)], ignore=np.ones((4, 6), bool)),
            "one-class",
        ),
        (lambda: label_bags(SEGMENTS / 2, [(0, 0, 1, 1)]), "segments-shape:segments"),
        (lambda: label_bags(SEGMENTS - 9, [(0, 0, 1, 1)]), "segments-empty"),
        (lambda: label_bags(SEGMENTS, mask=np.ones((4, 5), bool)), "mask-size:mask"),
        (lambda: label_bags(SEGMENTS, mask=np.ones((4, 6))), "mask-kind:mask"),
        (lambda: label_bags(SEGMENTS, [(0, 0, 1, 1)], ignore=np.ones((4, 5), bool)), "mask-size:ignore"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()


def test_boxes_from_csv(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_bytes(b"\xef\xbb\xbfX, y ,w,h\r\n1,2,3.5,4\r\n\r\n 5,6,7,8\r\n")
    assert read_boxes(path).tolist() == [[1, 2, 3.5, 4], [5, 6, 7, 8]]
    path.write_text('label,h,w,y,x,image,score\nperson,4,3,2,1,"a, b",0.5\npeople,8,7,6,5,c,1\nperson,1,1,0,0,c,1\n')
    assert read_boxes(path, "a, b").tolist() == [[1, 2, 3, 4]]
    assert read_boxes(path, image="c", label="person").tolist() == [[0, 0, 1, 1]]
    assert read_boxes(path, image="c", label="bicycle").shape == (0, 4)
    with refused("image-unnamed", "'a, b'", "'c'"):
        read_boxes(path)
    with refused("image-unnamed", "'a, b'", "'c'", "'d'"):
        read_boxes(path, "d")
    path.write_text("x,y,w,h\n")
    assert read_boxes(path).shape == (0, 4)
    with refused("image-unnamed"):
        read_boxes(path, image="a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "csv-header"),
        (b"1,2,3,4\n", "csv-header"),
        (b"x|y|w|h\n", "csv-header"),
        (b"x,y,w,h,x\n1,2,3,4,5\n", "csv-header"),
        (b"x,y,w,h,label,label\n1,2,3,4,a,b\n", "csv-columns"),
        (b"x,y,w,h\n1,2,3,4\n1,2,3\n", "csv-fields"),
        (b"x,y,w,h\n1,2,3,4,5\n", "csv-fields"),
        (b"x,y,w,h\n\n1,2,three,4\n", "number:w"),
        (b"x,y,w,h\n1,nan,3,4\n", "number:y"),
        (b"x,y,w,h\n1,2,0,4\n", "box-size"),
        (b"x,y,w,h\n1,2,3,\xff\n", "number:h"),
        (b'x,y,w,h\n1,2,3,"4\n', "file-unreadable"),
    ],
)
def test_wrong_csv(content, message, tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_bytes(content)
    with refused(message):
        read_boxes(path)


def test_missing_csv(tmp_path):
    with refused("file-unreadable", "none.csv"):
        read_boxes(tmp_path / "none.csv")
    for path, code in ((None, "image-damaged"), ("a\0b", "file-unreadable")):
        with refused(code):
            read_boxes(path)
