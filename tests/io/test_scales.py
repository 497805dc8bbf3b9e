import numpy as np
import pytest
from refusals import refused

from bimichi.sources import edge_strength, local_difference, quantile, rarity, vertical_edges


def naive_rarity(image):
    known = [value for value in image.ravel().tolist() if value == value]
    plane = np.full(image.shape, np.nan)
    for where, value in np.ndenumerate(image):
        if value == value:
            share = sum(other >= value for other in known) / len(known)
            plane[where] = min(max(-(2 / 3) * np.log10(share) - 1, -1), 1)
    return plane


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64, np.float32, np.float64])
def test_rarity_against_loops_with_ties_and_nan(kind, rng):
    image = rng.integers(0, 30, (12, 15)).astype(kind)
    if np.dtype(kind).kind == "f":
        image = image * kind(1e-3) - 5
        image[rng.random(image.shape) < 0.2] = np.nan
    np.testing.assert_allclose(rarity(image), naive_rarity(image), atol=1e-6)


def test_rarity_keeps_ties_and_digits_of_wide_types():
    large = 2**60
    image = np.array([[large, large + 4096, large + 4096, 0.0]])
    assert len(np.unique(rarity(image))) == 3
    near = 1 + np.array([[0, 1e-12, 2e-12]])
    assert len(np.unique(rarity(near))) == 3  # which float32 would make equal


def test_rarity_by_hand():
    image = np.arange(1000.0).reshape(20, 50)
    plane = rarity(image)
    assert plane[0, 0] == -1
    assert plane[-1, -1] == 1  # one of a thousand
    assert plane.ravel()[-30:-10].min() > 0 > plane.ravel()[:-40].max()  # 3 of 100 are above 0
    assert (rarity(np.zeros((3, 4))) == -1).all()
    assert np.isnan(rarity(np.full((3, 4), np.nan))).all()


def test_rarity_forgets_gain_and_offset(rng):
    image = rng.normal(size=(30, 40))
    np.testing.assert_array_equal(rarity(image), rarity(37 * image - 500))
    np.testing.assert_array_equal(rarity(image), rarity(np.exp(image)))


def test_quantile(rng):
    image = rng.normal(300, 20, (50, 60))
    image[0, 0], image[1, 1] = 1e6, np.nan
    plane = quantile(image)
    low, high = np.nanpercentile(image, (1, 99))
    np.testing.assert_allclose(plane, np.clip(2 * (image - low) / (high - low) - 1, -1, 1), atol=1e-6)
    assert plane.dtype == np.float32
    rare = np.full((20, 20), 7.0)
    rare[0, :2] = 5, 9
    assert quantile(rare)[0, :3].tolist() == [-1, 1, 0]  # both percentiles are 7
    for pair in ((50, 50), (-1, 99), ("1", 99), (99, 1)):
        with refused("percentiles"):
            quantile(image, *pair)


def test_local_difference_is_that_of_means(rng):
    image = rng.normal(300, 5, (14, 16))
    padded = np.pad(image, 2, mode="symmetric")
    means = np.array([[padded[r : r + 5, c : c + 5].mean() for c in range(16)] for r in range(14)])
    np.testing.assert_allclose(local_difference(image, 5), image - means, atol=1e-3)
    assert np.abs(local_difference(rng.integers(0, 256, (14, 16)).astype(np.uint8), 5)).max() <= 1


def test_vertical_edges_see_poles_not_kerbs():
    image = np.zeros((60, 80))
    image[10:50, 20:24] = 1  # a pole
    image[30:34, 40:76] = 1  # a kerb
    plane = vertical_edges(image)
    assert plane[30, 22] > 0.9
    assert plane[32, 58] < -0.9
    assert edge_strength(image)[32, 58] > 0
    np.testing.assert_allclose(vertical_edges(image.T[::-1]), vertical_edges(image.T)[::-1], atol=1e-6)
