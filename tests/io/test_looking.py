"""The image to draw on, and where targets are."""

import numpy as np

from bimichi.io.check import Targets, photograph


def test_the_photograph_is_the_colourful_image(rng):
    thermal = np.repeat(rng.integers(0, 255, (30, 40, 1)), 3, axis=2).astype(np.uint8)
    colour = rng.integers(0, 255, (30, 40, 3)).astype(np.uint8)
    shown = photograph([thermal, colour], ["lwir", "other"])
    assert shown.shape == (30, 40, 3)
    assert np.corrcoef(shown.ravel(), colour.ravel())[0, 1] > 0.99
    assert photograph([thermal], ["lwir"]).shape == (30, 40)


def test_bands_of_colours_are_joined_and_names_decide_otherwise(rng):
    bands = {name: rng.integers(0, 3000, (30, 40)).astype(np.uint16) for name in ("B2", "B3", "B4", "B8")}
    shown = photograph(list(bands.values()), list(bands))
    assert shown.shape == (30, 40, 3)
    assert np.corrcoef(shown[..., 0].ravel(), bands["B4"].ravel())[0, 1] > 0.99
    thermal, visible = rng.normal(size=(30, 40)), rng.normal(size=(30, 40)) ** 2
    grey = photograph([thermal, visible], ["thermal", "cam_visible"])
    assert np.corrcoef(grey.ravel(), visible.ravel())[0, 1] > 0.7
    flat = photograph([thermal, np.ones((30, 40))], ["thermal", "visible"])
    assert np.corrcoef(flat.ravel(), thermal.ravel())[0, 1] > 0.9


def test_dark_images_are_stretched_and_missing_pixels_black(rng):
    dark = rng.gamma(0.5, 2, (50, 60))
    dark[3, 4] = np.nan
    shown = photograph([dark], ["ir"])
    assert shown.dtype == np.uint8
    assert shown[3, 4] == 0
    assert 50 < np.median(shown) < 110
    assert not photograph([np.full((4, 5), np.nan)], ["x"]).any()


def test_targets_are_counted():
    mask = np.zeros((10, 10), bool)
    mask[0, 0] = mask[9, 9] = True
    triangle = np.array([(5.0, 0.0), (8.0, 0.0), (8.0, 3.0)])
    assert Targets(np.array([(1.0, 1.0, 2.0, 2.0)]), [triangle], mask, mask.astype(np.int8), 0.1).count == 4
