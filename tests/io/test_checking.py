"""What `DatasetChecker` finds in sources and scenes, and what it warns of."""

import numpy as np
import pytest
from refusals import refused
from scipy import ndimage

from bimichi.io.check import DatasetChecker, Targets, separation

SHAPE = (60, 80)


def checked(*scenes, names=("a", "b")):
    checker = DatasetChecker(names, len(scenes))
    for k, scene in enumerate(scenes):
        checker.add(f"s{k}", *scene)
    return checker.result()


def inside():
    mask = np.zeros(SHAPE, bool)
    mask[10:30, 20:50] = True
    return mask


def targets(n, mask=None):
    mask = inside() if mask is None else mask
    return Targets(np.tile([20.0, 10, 30, 20], (n, 1)), [], None, np.where(mask, 1, -1).astype(np.int8), mask.mean())


def test_ranges_missing_pixels_and_separation(rng):
    a = rng.integers(10, 200, SHAPE).astype(np.uint8)
    b = rng.normal(0, 0.1, SHAPE) - 0.8 * inside()
    b[:6] = np.nan
    found = checked(([a, b], targets(1)), ([a, b], targets(2)))
    first, second = found.sources
    assert (first.low, first.high, first.dtypes, first.missing) == (a.min(), a.max(), ("uint8",), 0)
    np.testing.assert_allclose([first.percentile_1, first.percentile_99], np.percentile(a, (1, 99)), atol=1)
    assert second.missing == pytest.approx(0.1)
    assert second.auc < 0.01
    assert abs(first.auc - 0.5) < 0.1
    assert [scene.targets for scene in found.scenes] == [1, 2]
    assert found.scenes[0].covered == pytest.approx(inside().mean())
    assert (found.scenes[0].width, found.scenes[0].height) == (80, 60)
    assert found.warnings() == [
        "Lower on targets than elsewhere: b (AUC 0.00). Learn which sources to invert: --polarity learn."
    ]
    assert found.warnings(inverting=True) == []


def test_separation_counts_pairs_and_ties():
    values = np.array([3.0, 1.0, 2.0, 2.0, np.nan])
    labels = np.array([1, -1, 1, -1, 1])
    assert separation(values, labels) == (1 + 1 + 1 + 0.5) / 4
    assert separation(values, np.array([2, -1, 1, -1, 0])) == 1  # the innermost part of targets alone counts
    assert separation(values, np.zeros(5)) is None


def test_constant_duplicated_and_unknown_sources_are_reported(rng):
    a = rng.normal(size=SHAPE)
    images = [a, 3 - 2 * a, np.full(SHAPE, 7, np.uint8), np.full(SHAPE, np.nan)]
    found = checked((images,), names=("a", "b", "c", "d"))
    assert [(pair.first, pair.second) for pair in found.pairs if pair.duplicate] == [("a", "b")]
    warnings = found.warnings()
    assert any(line.startswith("b is a copy of a") for line in warnings)
    assert any(line.startswith("c is constant everywhere") for line in warnings)
    assert any(line.startswith("d has no known pixel") for line in warnings)
    assert found.sources[3].low is None


def test_colour_counts_by_its_lightness(rng):
    colour = rng.integers(0, 255, (*SHAPE, 3)).astype(np.uint8)
    found = checked(([colour, colour[..., 0]],))
    assert found.sources[0].dtypes == ("uint8",)
    assert not found.pairs[0].duplicate


def test_ranges_that_recipes_cannot_use(rng):
    kelvin = rng.integers(7000, 12100, SHAPE).astype(np.uint16)
    floats = rng.normal(300, 5, SHAPE)
    found = checked(([kelvin, floats],))
    first, second = found.warnings(["to_bipolar", "as_is"])
    assert first.startswith("Mapped to a sliver of [-1, 1]")
    assert "a (7." in first
    assert "--scale minmax" in first
    assert second.startswith("Outside [-1, 1], which train refuses: b (")
    assert found.warnings(["equalize", "as_is"], scaled=True) == []


def test_scenes_without_targets_and_with_too_many(rng):
    images = [rng.normal(size=SHAPE), rng.normal(size=SHAPE)]
    empty, most = np.zeros(SHAPE, bool), np.ones(SHAPE, bool)
    found = checked((images, targets(1)), (images, targets(0, empty)), (images, targets(1, most)))
    assert "1 of 3 scenes have no target: s1." in found.warnings()
    assert any("more than half of s2" in line for line in found.warnings())
    assert checked((images, targets(0, empty))).warnings() == [
        "No scene has a target. Check the labels, the image names in them, and --target."
    ]


def test_a_shift_is_a_warning_above_two_pixels(rng):
    scene = ndimage.gaussian_filter(rng.normal(size=(300, 420)), 6) > 0
    for shift, expected in ((2, 0), (3, 1)):
        found = checked(([scene * 9.0, 1.0 - np.roll(scene, shift, 0)],))
        warned = [line for line in found.warnings() if "seems misregistered" in line]
        assert len(warned) == expected
    assert f"moved by -{shift} rows and +0 columns" in warned[0]


def test_types_that_differ_and_sizes_that_do_not_fit(rng):
    a = rng.integers(0, 255, SHAPE)
    found = checked(([a.astype(np.uint8), a], None), ([a.astype(np.uint16), a], None))
    assert any("a is uint8 and uint16 in different scenes" in line for line in found.warnings())
    with refused("image-sizes"):
        checked(([a, a[1:]],))
    with refused("scenes-empty"):
        DatasetChecker(["a"]).result()
