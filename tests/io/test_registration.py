"""Shifts between sources: found where edges agree, unknown where they do not."""

import numpy as np
import pytest
from real import real
from refusals import refused
from scipy import ndimage

from bimichi.io import read_image
from bimichi.sources import grey
from bimichi.sources.registration import ShiftEstimator, estimate_shift


def blobs(rng, shape=(300, 420)):
    """Patches of constant brightness with sharp edges."""
    return ndimage.gaussian_filter(rng.normal(size=shape), 6) > 0


@pytest.mark.parametrize("shift", [(0, 0), (3, 0), (-2, 5), (8, -6)])
def test_known_shifts_are_found_although_the_sensors_see_things_differently(shift, rng):
    scene = blobs(rng)
    first = 200.0 * scene + rng.normal(0, 10, scene.shape)
    second = 0.3 - 0.2 * np.roll(scene, [-s for s in shift], (0, 1)) + rng.normal(0, 0.02, scene.shape)
    found = estimate_shift(first, second)
    assert found is not None
    assert (found.rows, found.columns) == shift
    assert found.tiles >= 3
    assert found.length == pytest.approx(np.hypot(*shift))
    assert estimate_shift(second, first).rows == -shift[0]


def test_unrelated_constant_missing_and_tiny_images_give_no_estimate(rng):
    one = blobs(rng) + 0.0
    for other in (blobs(rng) + 0.0, np.ones(one.shape), np.full(one.shape, np.nan), rng.normal(size=one.shape)):
        assert estimate_shift(one, other) is None
    assert estimate_shift(one[:20, :20], one[:20, :20]) is None


def test_missing_pixels_are_no_edges(rng):
    scene = blobs(rng)
    first, second = scene + 0.0, 1.0 - np.roll(scene, -4, 0)
    first[100:200, 50:150], second[100:200, 50:150] = np.nan, np.nan  # at the same place, which is no agreement
    found = estimate_shift(first, second)
    assert (found.rows, found.columns) == (4, 0)


def test_scenes_are_pooled_and_large_images_reduced(rng):
    estimator = ShiftEstimator(3)
    for _ in range(2):
        scene = blobs(rng, (700, 1300))
        estimator.add([scene + 0.0, 2.0 - scene, np.roll(scene, -6, 1) * 5.0])
    assert estimator.shift(0, 1).length == 0
    assert (estimator.shift(0, 2).rows, estimator.shift(0, 2).columns) == (0, 6)
    assert (estimator.shift(2, 1).rows, estimator.shift(2, 1).columns) == (0, -6)
    with refused("planes-shapes"):
        estimator.add([scene, scene[1:], scene])


@pytest.mark.slow
def test_night_scenes_are_aligned_and_a_shift_of_them_is_noticed():
    root = real("msrs_night")
    still, moved = ShiftEstimator(2), ShiftEstimator(2)
    for file in sorted((root / "ir").iterdir()):
        thermal, visible = read_image(file), grey(read_image(root / "vi" / file.name))
        still.add([thermal, visible])
        moved.add([thermal[8:], visible[:-8]])
    assert still.shift(0, 1) is None or still.shift(0, 1).length <= 2
    assert moved.shift(0, 1).rows == pytest.approx(-8, abs=2)
