import sys

import numpy as np
import pytest
from refusals import refused
from scipy import ndimage

from bimichi.scenes import grid_segments, superpixels


def check_segments(segments, wanted=None):
    """Numbered without gaps, each in one piece, -1 where nothing is wanted."""
    assert segments.dtype == np.int64
    found = np.unique(segments[segments >= 0])
    assert found.tolist() == list(range(len(found)))
    for bag in found:
        assert ndimage.label(segments == bag)[1] == 1
    wanted = np.ones(segments.shape, bool) if wanted is None else wanted
    assert np.array_equal(segments >= 0, wanted)
    assert segments.min() >= -1
    return len(found)


@pytest.fixture
def halves(rng):
    """A dark and a bright half whose border is no grid line, with a little noise."""
    image = np.where(np.arange(97) < 46, 60, 180)[None] + rng.integers(-9, 10, (70, 97))
    return image.astype(np.uint8)


def mixed(segments, left=46):
    """Share of the pixels that lie in a superpixel with most of it on the other side."""
    sides = [np.bincount(part.ravel(), minlength=segments.max() + 1) for part in np.split(segments, [left], axis=1)]
    return np.minimum(*sides).sum() / segments.size


@pytest.mark.parametrize("kind", ["grey", "float", "uint16", "rgb", "stack"])
def test_superpixels_follow_edges(halves, kind):
    image = {
        "grey": halves,
        "float": halves / 100 - 1,
        "uint16": halves.astype(np.uint16) * 257,
        "rgb": np.stack([halves, halves, 255 - halves], axis=-1),
        "stack": np.stack([halves / 255] * 5, axis=-1),
    }[kind]
    segments = superpixels(image, 40)
    assert 25 <= check_segments(segments) <= 55
    assert mixed(segments) < 0.02
    assert np.array_equal(segments, superpixels(image, 40))


def test_compactness(halves):
    square = superpixels(halves, 40, compactness=100.0)
    check_segments(square)
    assert mixed(square) > 0.05


def test_what_is_taken_for_rgb():
    """Colours of equal lightness are distinguished in Lab, and as bands of their own."""
    image = np.zeros((40, 60, 3), np.uint8)
    image[:, :23] = (200, 0, 0)
    image[:, 23:] = (0, 102, 0)
    assert mixed(superpixels(image, 12), 23) < 0.06 < mixed(superpixels(image, 12, compactness=1e4), 23)
    assert np.array_equal(superpixels(image, 12), superpixels(image / 255, 12, lab=True))
    assert np.array_equal(superpixels(image, 12, lab=False), superpixels(image / 255, 12))


def test_masked_and_missing_pixels(halves):
    mask = np.ones(halves.shape, bool)
    mask[:, 60:70] = False
    assert check_segments(superpixels(halves, 40, mask=mask), mask) > 20
    holed = halves / 255
    holed[20:30, 10:90] = np.nan
    both = mask & ~np.isnan(holed)
    assert check_segments(superpixels(holed, 40, mask=mask), both) > 20
    stack = np.stack([halves / 255, holed], axis=-1)
    assert check_segments(superpixels(stack, 40), ~np.isnan(holed)) > 20


def test_small_islands_are_superpixels_of_their_own(halves):
    mask = np.zeros(halves.shape, bool)
    mask[:30] = True
    mask[50:52, 5:8] = mask[60:61, 90:92] = True
    segments = superpixels(halves, 30, mask=mask)
    check_segments(segments, mask)
    assert (segments[50:52, 5:8] == segments[50, 5]).all()
    assert (segments == segments[50, 5]).sum() == 6


def test_flat_and_tiny_images():
    assert 20 <= check_segments(superpixels(np.zeros((50, 60)), 30)) <= 40
    assert check_segments(superpixels(np.ones((1, 1)), 5)) == 1
    assert check_segments(superpixels(np.array([[True, False]] * 4), 1)) == 1


def test_grid():
    for shape, size in [((7, 9), 3), ((6, 8), (2, 4)), ((5, 5), 9), ((3, 4), 1)]:
        tall, wide = (size, size) if isinstance(size, int) else size
        segments = grid_segments(shape, size)
        check_segments(segments)
        for r, c in np.ndindex(*shape):
            assert segments[r, c] == (r // tall) * -(-shape[1] // wide) + c // wide


def test_without_scikit_image_the_error_says_what_to_install(halves, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(ImportError, match=r"needs skimage.*pip install 'bimichi\[image\]'"):
        superpixels(halves)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: superpixels(np.zeros((4, 5, 6, 7))), "image-shape"),
        (lambda: superpixels(np.zeros((4, 5), complex)), "image-type"),
        (lambda: superpixels(np.full((4, 5), np.inf)), "infinite"),
        (lambda: superpixels(np.full((4, 5), np.nan)), "superpixels-empty"),
        (lambda: superpixels(np.zeros((4, 5)), mask=np.zeros((4, 5), bool)), "superpixels-empty"),
        (lambda: superpixels(np.zeros((4, 5)), mask=np.ones((5, 4), bool)), "mask-size:mask"),
        (lambda: superpixels(np.zeros((4, 5)), mask=np.ones((4, 5))), "mask-kind:mask"),
        (lambda: superpixels(np.zeros((4, 5)), 0), "whole-number:n_segments"),
        (lambda: superpixels(np.zeros((4, 5)), 2.5), "whole-number:n_segments"),
        (lambda: superpixels(np.zeros((4, 5)), compactness=0), "number-range:compactness"),
        (lambda: superpixels(np.zeros((4, 5)), sigma=-1), "number-range:sigma"),
        (lambda: superpixels(np.zeros((4, 5)), lab=True), "image-rgb"),
        (lambda: grid_segments((4, 5), 0), "window:size"),
        (lambda: grid_segments((4, 5), 2.5), "window:size"),
        (lambda: grid_segments((4, 5), (1, 2, 3)), "window:size"),
        (lambda: grid_segments((0, 5), 2), "window:shape"),
        (lambda: grid_segments(5, 2), "window:shape"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()
