"""Labels of pixels from the cores of regions, and bags of them."""

import numpy as np
import pytest
from refusals import refused

from bimichi import Bags, BiMIChI, Scene, join_bags
from bimichi.scenes import bag_sizes, box_mask, core_bags, label_pixels


def naive_labels(shape, boxes, core):
    """Pixels whose square overlaps the middle of a box."""
    labels = np.where(box_mask(boxes, shape), 0, -1)
    for x, y, w, h in boxes:
        axes = []
        for start, length, share, extent in ((y, h, core[1], shape[0]), (x, w, core[0], shape[1])):
            middle, half = start + length / 2, share * length / 2
            inside = [k for k in range(-99, 99) if k + 1 > middle - half + 1e-6 and k < middle + half - 1e-6]
            axes.append([k for k in inside if 0 <= k < extent])
        labels[np.ix_(*axes)] = 1
    return labels


def test_boxes_against_loops(rng):
    for _ in range(60):
        boxes = np.column_stack([rng.uniform(-3, 9, (3, 2)), rng.uniform(3.1, 9, (3, 2))])
        if rng.random() < 0.5:
            boxes = np.round(boxes)
        core = tuple(rng.uniform(0.05, 1, 2))
        np.testing.assert_array_equal(label_pixels((11, 13), boxes, core), naive_labels((11, 13), boxes, core))


def test_the_default_core_of_a_person():
    labels = label_pixels((100, 60), [(10, 20, 20, 60)])
    assert np.argwhere(labels == 1).min(axis=0).tolist() == [23, 14]
    assert np.argwhere(labels == 1).max(axis=0).tolist() == [76, 25]
    assert (labels == 1).sum() == 12 * 54
    assert (labels >= 0).sum() == 20 * 60


def test_tiny_boxes_and_boxes_over_the_border():
    labels = label_pixels((10, 10), [(3.2, 4.1, 0.3, 0.2), (7, 7, 1, 2)])
    assert labels[4, 3] == 1
    assert (labels[7:9, 7] == 1).all()
    left = label_pixels((10, 10), [(-6, 2, 10, 6)], core=(0.6, 1))  # whose core is from -4 to 2
    assert (left[2:8, :2] == 1).all()
    assert (left[2:8, 2:4] == 0).all()
    mostly_outside = label_pixels((10, 10), [(-18, 2, 20, 6)])
    assert set(np.unique(mostly_outside)) == {-1, 0}


def test_a_core_wins_over_the_rest_of_another_box_and_over_ignored_pixels():
    boxes = [(0, 0, 10, 10), (8, 0, 5, 10)]
    labels = label_pixels((10, 14), boxes, core=(0.6, 1), ignore=np.ones((10, 14), bool))
    assert (labels[:, 2:8] == 1).all()
    assert (labels[:, 9:12] == 1).all()
    assert set(labels[0, [0, 1, 8, 12, 13]]) == {0}
    assert label_pixels((10, 14), boxes, ignore=[(13, 0, 1, 1)])[0, 13] == 0


def test_masks_and_polygons_of_boxes_have_the_core_of_boxes():
    box = (5, 4, 20, 20)
    expected = label_pixels((40, 50), [box], core=(0.6, 0.8))
    np.testing.assert_array_equal(label_pixels((40, 50), mask=box_mask([box], (40, 50)), core=(0.6, 0.8)), expected)
    corners = [(5, 4), (25, 4), (25, 24), (5, 24)]
    np.testing.assert_array_equal(label_pixels((40, 50), polygons=[corners], core=(0.6, 0.8)), expected)


def test_every_region_of_a_mask_keeps_a_core(rng):
    from scipy import ndimage

    for _ in range(20):
        mask = rng.random((30, 30)) < rng.uniform(0.05, 0.8)
        labels = label_pixels((30, 30), mask=mask, core=(0.3, 0.2))
        assert ((labels >= 0) == mask).all()
        regions, n = ndimage.label(mask, np.ones((3, 3)))
        assert len(np.unique(regions[labels == 1])) == n
    assert (label_pixels((6, 7), mask=np.ones((6, 7), bool)) == 1).all()
    ring = np.zeros((60, 60), bool)
    ring[10:50, 10:50] = True
    ring[20:40, 20:40] = False
    core = label_pixels((60, 60), mask=ring, core=(0.5, 0.5)) == 1
    assert core[15, 15:45].all()  # the middle of each side
    assert core[15:45, 44].all()
    assert not core[11].any()


def test_bags_of_cores_and_blocks():
    segments, labels = core_bags((40, 60), [(5, 5, 10, 20), (30, 10, 10, 20)], n_blocks=6)
    known = label_pixels((40, 60), [(5, 5, 10, 20), (30, 10, 10, 20)])
    np.testing.assert_array_equal(segments >= 0, known != 0)
    assert [name for name, positive in labels.items() if positive] == [0, 1]
    assert sorted(labels) == sorted(np.unique(segments[segments >= 0]))
    assert len(labels) == 2 + 6
    for name, positive in labels.items():
        assert (known[segments == name] == (1 if positive else -1)).all()
    assert bag_sizes(segments) == dict(enumerate(np.bincount(segments[segments >= 0])))


def test_each_pixel_counts_once_in_the_mean_objective(rng):
    boxes = [(5, 5, 10, 20), (30, 10, 6, 8)]
    X = rng.uniform(-0.8, 0.8, (40, 60, 2))
    known = label_pixels((40, 60), boxes)
    X[known == 1] += 0.2
    segments, labels = core_bags((40, 60), boxes)
    scene = Scene(X, "s").with_bags(segments, labels, bag_sizes(segments))
    by_bags = BiMIChI("mean").fit(scene.bags())
    pixels = known != 0
    by_pixels = BiMIChI("mean").fit(Bags.from_instances(X[pixels], known[pixels]))
    np.testing.assert_allclose(by_bags.bicapacity_.values, by_pixels.bicapacity_.values, atol=1e-6)
    other = Scene(X[::-1], "t").with_bags(segments, labels, bag_sizes(segments))
    joined = join_bags([scene, other])
    np.testing.assert_array_equal(joined.weights, np.concatenate([scene.bags().weights, other.bags().weights]))
    np.testing.assert_allclose(
        BiMIChI("mean").fit([scene, other]).bicapacity_.values,
        BiMIChI("mean").fit(joined).bicapacity_.values,
        atol=1e-6,
    )


@pytest.mark.parametrize("objective", ["bipolar", "magnitude", "mean"])
def test_every_objective_learns_from_them(objective, rng):
    X = rng.uniform(-1, 0, (40, 60, 3))
    X[10:30, 10:20] += 1
    scene = Scene(X, "s").with_bags(*core_bags((40, 60), [(9, 9, 12, 22)]))
    model = BiMIChI(objective, random_state=0).fit([scene])
    fused = model.fuse(X)
    assert fused[12:28, 12:18].mean() > fused[:, 30:].mean() + 0.2


def test_invalid_pixels_are_in_no_bag_and_scenes_without_targets_are_negative():
    valid = np.ones((20, 30), bool)
    valid[:5] = False
    segments, labels = core_bags((20, 30), [(5, 0, 4, 4)], valid=valid, n_blocks=6)
    assert (segments[:5] == -1).all()
    assert not any(labels.values())  # the only core is invalid
    segments, labels = core_bags((20, 30), [])
    assert not any(labels.values())
    assert (segments >= 0).all()


def test_weights_are_saved_with_a_scene(tmp_path):
    segments, labels = core_bags((20, 30), [(5, 4, 6, 8)])
    scene = Scene(np.zeros((20, 30, 2)), "s").with_bags(segments, labels, bag_sizes(segments))
    scene.save(tmp_path / "s.npz")
    assert Scene.load(tmp_path / "s.npz").weights == scene.weights
    Scene(np.zeros((2, 2)), "t").save(tmp_path / "t.npz")
    assert Scene.load(tmp_path / "t.npz").weights is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: label_pixels((4, 5)), "targets-unnamed"),
        (lambda: label_pixels((4, 5), [(0, 0, 1, 1)], core=(0, 1)), "core:core"),
        (lambda: label_pixels((4, 5), [(0, 0, 1, 1)], core=0.6), "core:core"),
        (lambda: label_pixels((4, 5), [(0, 0, 1)]), "boxes-shape:boxes"),
        (lambda: label_pixels((4, 5), [(9, 0, 1, 1)]), "shape-outside"),
        (lambda: label_pixels((4, 5), mask=np.ones((4, 4), bool)), "mask-size:mask"),
        (lambda: core_bags((4, 5), [], n_blocks=0), "whole-number:n_blocks"),
        (lambda: core_bags((4, 5), [], valid=np.ones((4, 5))), "mask-kind:valid"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()
