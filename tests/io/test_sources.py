import subprocess
import sys

import numpy as np
import pytest
from refusals import refused

from bimichi.datasets.public import pedestrian_sources
from bimichi.sources import RECIPES as EVERY, operators as make

FUNCTIONS = {name: recipe.function for name, recipe in EVERY.items() if name != "as_is"}
RECIPES = pytest.mark.parametrize("recipe", FUNCTIONS.values(), ids=FUNCTIONS.keys())


@pytest.fixture
def scene(rng):
    """Noise, a bright lamp and a dark hole."""
    image = rng.integers(40, 90, (30, 44)).astype(np.uint8)
    image[5:9, 6:12] = 250
    image[20:26, 30:34] = 3
    return image


def naive_means(image, radius):
    """Means of squares, mirrored at the border, of what is not NaN."""
    padded = np.pad(np.asarray(image, np.float64), radius, mode="symmetric")
    means = np.empty(image.shape)
    for r, c in np.ndindex(*image.shape):
        means[r, c] = np.nanmean(padded[r : r + 2 * radius + 1, c : c + 2 * radius + 1])
    return means


def test_importing_needs_no_extra():
    script = "import sys, bimichi.io; print([m for m in ('skimage', 'PIL', 'tifffile') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@RECIPES
def test_every_recipe_gives_a_bipolar_plane(recipe, scene):
    plane = recipe(scene)
    assert plane.dtype == np.float32
    assert plane.shape == scene.shape
    assert plane.min() >= -1
    assert plane.max() <= 1
    assert plane.min() < plane.max()


@RECIPES
def test_uint8_and_uint16_and_unit_floats_give_the_same(recipe, scene):
    plane = recipe(scene)
    np.testing.assert_allclose(recipe(scene.astype(np.uint16) * 257), plane, atol=2e-6)
    np.testing.assert_allclose(recipe(scene / 255), plane, atol=2e-6)


@RECIPES
def test_rgb_is_taken_as_its_grey(recipe, rng):
    rgb = rng.integers(0, 256, (12, 15, 3)).astype(np.uint8)
    np.testing.assert_allclose(recipe(rgb), recipe(make.grey(rgb)), atol=1e-5)


@RECIPES
def test_nan_stays_and_does_not_spread(recipe, scene):
    image = scene / 255
    image[10:20, 10:25] = np.nan
    plane = recipe(image)
    assert np.array_equal(np.isnan(plane), np.isnan(image))
    assert np.isnan(recipe(np.full((4, 5), np.nan))).all()


@RECIPES
def test_images_are_not_changed(recipe, scene):
    image = (scene / 255).astype(np.float32)
    before = image.copy()
    recipe(image)[:] = 7
    make.grey(image)[:] = 7
    assert np.array_equal(image, before)


@pytest.mark.parametrize("recipe", [make.adaptive_threshold, make.equalize, make.local_contrast, make.edge_strength])
def test_units_of_floats_do_not_matter(recipe, scene):
    kelvin = 290 + scene * 0.25
    np.testing.assert_allclose(recipe(kelvin), recipe(scene), atol=1e-3)


@pytest.mark.parametrize("value", [0, 0.1, 0.7, 1, 293.15])
def test_flat_images(value):
    image = np.full((40, 50), value)
    assert (make.adaptive_threshold(image) == 1).all()
    assert (make.equalize(image) == 0).all()
    assert (make.local_contrast(image, 5) == 0).all()
    assert (make.edge_strength(image) == -1).all()
    assert (make.to_bipolar(image, percentiles=(1, 99)) == 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
@RECIPES
def test_tiny_images(recipe, shape):
    image = np.linspace(0, 1, 9)[: max(shape)].reshape(shape)
    assert np.isfinite(recipe(image)).all()


def test_grey(rng):
    rgb = rng.integers(0, 256, (5, 6, 3)).astype(np.uint8)
    expected = (0.299 * rgb[..., 0] + 0.587 * rgb[..., 1] + 0.114 * rgb[..., 2]) / 255
    np.testing.assert_allclose(make.grey(rgb), expected, atol=1e-6)
    np.testing.assert_allclose(make.grey(rgb / 255), expected, atol=1e-6)
    assert make.grey(np.array([[True, False]])).tolist() == [[1, 0]]
    assert make.grey(np.array([[-128, 127]], np.int8)).tolist() == [[0, 1]]
    for kind in (np.uint8, np.uint16):
        white = np.full((2, 2, 3), np.iinfo(kind).max, kind)
        assert (make.to_bipolar(make.grey(white)) == 1).all()
    assert (make.to_bipolar(np.ones((2, 2, 3), np.float32)) == 1).all()


def test_to_bipolar():
    image = np.array([[0, 51, 255]], np.uint8)
    np.testing.assert_allclose(make.to_bipolar(image), [[-1, -0.6, 1]], atol=1e-6)
    np.testing.assert_allclose(make.to_bipolar(image, 51, 153), [[-1, -1, 1]])
    np.testing.assert_allclose(make.to_bipolar(np.array([[-30.0, 0.0, 15.0, 99.0]]), -30, 30), [[-1, 0, 0.5, 1]])
    many = np.arange(101.0)[None]
    np.testing.assert_allclose(make.to_bipolar(many, percentiles=(10, 90)), np.clip((many - 50) / 40, -1, 1), atol=1e-6)
    np.testing.assert_allclose(make.to_bipolar(many * 2**22, percentiles=(0, 100)), many / 50 - 1, atol=1e-6)


@pytest.mark.parametrize("block_size", [3, 9, 71])
@pytest.mark.parametrize("holes", [False, True])
def test_adaptive_threshold_against_loops(scene, block_size, holes):
    image = (scene / 255).astype(np.float32)
    if holes:
        image[::4, 3:30:5] = np.nan
    for offset in (0.0, 0.1):
        margin = image - naive_means(image, block_size // 2) - offset
        decided = np.abs(margin) > 1e-5  # which NaN is not
        expected = np.where(margin > 0, -1, 1)
        assert np.array_equal(make.adaptive_threshold(image, block_size, offset)[decided], expected[decided])
        assert decided.sum() > 0.7 * image.size


def test_bright_areas_are_negative(scene):
    plane = make.adaptive_threshold(scene, 15)
    assert (plane[5:9, 6:12] == -1).all()
    assert (plane[20:26, 30:34] == 1).all()


def test_equalize_against_counting(scene):
    image = scene / 255
    image[0, :5] = np.nan
    known = image[~np.isnan(image)]
    least = (known == known.min()).sum()
    plane = make.equalize(image)
    for value in np.unique(known):
        share = ((known <= value).sum() - least) / (known.size - least)
        np.testing.assert_allclose(plane[image == value], 2 * share - 1, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.4, 1.0, 2.2])
def test_gamma_correction(scene, gamma):
    np.testing.assert_allclose(make.gamma_correction(scene, gamma), 2 * (scene / 255) ** gamma - 1, atol=1e-5)
    stretched = (make.to_bipolar(scene, percentiles=(2, 98)) + 1) / 2
    np.testing.assert_allclose(
        make.gamma_correction(scene, gamma, percentiles=(2, 98)), 2 * stretched**gamma - 1, atol=1e-5
    )


@pytest.mark.parametrize("holes", [False, True])
def test_local_contrast_against_loops(scene, holes):
    image = (scene / 255).astype(np.float32)
    if holes:
        image[::4, 3:30:5] = np.nan
    above = image - naive_means(image, 6)
    full = np.nanpercentile(np.abs(above), 99.9)
    np.testing.assert_allclose(make.local_contrast(image, 6), np.clip(above / full, -1, 1), atol=1e-4)


def test_edges_are_where_the_image_changes():
    image = np.zeros((40, 60))
    image[:, 30:] = 0.2
    edges = make.edge_strength(image, spread=0)
    assert (edges[:, 29:31] == 1).all()
    assert (edges[:, :20] == -1).all()
    assert (edges[:, 40:] == -1).all()
    np.testing.assert_allclose(edges, make.edge_strength(image.T, spread=0).T, atol=1e-6)
    assert (make.edge_strength(image, spread=3)[:, 35] > edges[:, 35]).all()
    holed = image.copy()
    holed[10:15, 5:15] = np.nan  # where nothing changes
    known = ~np.isnan(holed)
    np.testing.assert_allclose(make.edge_strength(holed)[known], make.edge_strength(image)[known], atol=0.05)


def test_edges_without_smoothing_are_differences(rng):
    image = rng.random((7, 9)).astype(np.float32)
    padded = np.pad(image, 1, mode="edge")
    down, right = (padded[2:] - padded[:-2])[:, 1:-1] / 2, (padded[:, 2:] - padded[:, :-2])[1:-1] / 2
    strength = np.hypot(down, right)
    expected = np.clip(2 * strength / np.percentile(strength, 99.9) - 1, -1, 1)
    np.testing.assert_allclose(make.edge_strength(image, 0, 0), expected, atol=1e-5)


def test_difference(rng):
    first, second = rng.integers(0, 256, (2, 8, 9)).astype(np.uint8)
    np.testing.assert_allclose(make.difference(first, second), (first / 255) - (second / 255), atol=1e-6)
    np.testing.assert_allclose(make.difference(first, second), -make.difference(second, first), atol=1e-6)
    assert (make.difference(first, first // 2, percentiles=(0, 100)) != 0).any()
    holed = first / 255
    holed[2, 3] = np.nan
    assert np.argwhere(np.isnan(make.difference(second, holed))).tolist() == [[2, 3]]


def test_pedestrian_sources(rng):
    rgb = rng.integers(0, 256, (40, 50, 3)).astype(np.uint8)
    thermal = rng.integers(0, 90, (40, 50)).astype(np.uint8)
    thermal[10:25, 20:26] = 110
    three, names = pedestrian_sources(rgb, thermal)
    assert names == ["adaptive threshold", "equalised grey", "gamma thermal"]
    six, more = pedestrian_sources(rgb, thermal, 6)
    assert more[:3] == names
    assert len(set(more)) == len(more) == 6
    for plane, again in zip(three, six, strict=False):
        assert np.array_equal(plane, again)
    for plane in six:
        assert plane.dtype == np.float32
        assert plane.shape == (40, 50)
        assert np.abs(plane).max() <= 1
    assert np.array_equal(three[1], make.equalize(rgb))
    assert three[2][12:24, 21:25].min() == 1  # the warmest
    assert six[3][12:24, 21:25].min() > 0
    for plane, other in zip(six, pedestrian_sources(rgb, thermal.astype(np.uint16) * 40, 6)[0], strict=True):
        np.testing.assert_allclose(plane, other, atol=1e-5)  # whatever part of its range the camera uses
    colours = np.repeat(thermal[..., None], 3, axis=2)
    np.testing.assert_allclose(pedestrian_sources(rgb, colours)[0][2], three[2], atol=1e-4)


IMAGE = np.linspace(0, 1, 20).reshape(4, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: make.to_bipolar(IMAGE * 300),
            "image-range",
        ),
        (lambda: make.to_bipolar(IMAGE, 1, 0), "low-high"),
        (lambda: make.to_bipolar(IMAGE, 0, np.inf), "low-high"),
        (lambda: make.to_bipolar(IMAGE, low=0), "low-high"),
        (lambda: make.to_bipolar(IMAGE, 0, 1, (1, 99)), "low-high"),
        (lambda: make.to_bipolar(IMAGE, percentiles=(99, 1)), "percentiles"),
        (lambda: make.to_bipolar(IMAGE, percentiles=5), "percentiles"),
        (lambda: make.to_bipolar(IMAGE, percentiles=(0, 101)), "percentiles"),
        (lambda: make.to_bipolar(IMAGE[0]), "image-shape"),
        (lambda: make.to_bipolar(IMAGE[:0]), "image-shape"),
        (lambda: make.equalize(np.zeros((4, 5, 4))), "image-shape"),
        (lambda: make.equalize(IMAGE.astype(complex)), "image-type"),
        (lambda: make.equalize(np.array([[0, np.inf]])), "infinite"),
        (lambda: make.equalize(np.ma.masked_less(IMAGE, 0.5)), "masked-array"),
        (lambda: make.adaptive_threshold(IMAGE, 4), "window"),
        (lambda: make.adaptive_threshold(IMAGE, 5.0), "window"),
        (lambda: make.adaptive_threshold(IMAGE, 5, np.nan), "number-range:offset"),
        (lambda: make.gamma_correction(IMAGE, 0), "number-range:gamma"),
        (lambda: make.gamma_correction(IMAGE, np.nan), "number-range:gamma"),
        (lambda: make.gamma_correction(-IMAGE), "image-range"),
        (lambda: make.local_contrast(IMAGE, 0), "whole-number:radius"),
        (lambda: make.local_contrast(IMAGE, 2.5), "whole-number:radius"),
        (lambda: make.edge_strength(IMAGE, -1), "number-range:sigma"),
        (lambda: make.edge_strength(IMAGE, 1, np.nan), "number-range:spread"),
        (lambda: make.difference(IMAGE, IMAGE[:3]), "image-sizes:first"),
        (lambda: make.difference(IMAGE, 2 * IMAGE), "image-range"),
        (lambda: pedestrian_sources(IMAGE, IMAGE, 4), "choice:n_sources"),
        (lambda: pedestrian_sources(IMAGE, IMAGE[:3]), "image-sizes:rgb"),
    ],
)
def test_bad_input(call, message):
    with refused(message):
        call()
