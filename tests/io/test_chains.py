"""Chains of recipes by name, and functions by import path."""

import sys

import numpy as np
import pytest
from refusals import refused
from registries import unimported

from bimichi.sources import (
    edge_strength,
    gamma_correction,
    inverted,
    load_recipe,
    local_difference,
    quantile,
    rarity,
    to_bipolar,
)
from bimichi.sources.recipes import RECIPES, choose_recipes, find_recipe, make_plane, parse_chain, split_names


def make_source(image, name):
    return make_plane(image, name, image.dtype)


@pytest.fixture
def image(rng):
    return rng.integers(0, 256, (30, 40)).astype(np.uint8)


@pytest.fixture
def kelvin(rng):
    return rng.uniform(280, 320, (30, 40))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's own that writes down that it was imported."""
    code = "from pathlib import Path\nimport numpy as np\nPath(__file__).with_name('ran').touch()\n"
    code += "def half(image, of=2):\n    return np.asarray(image, float) / 255 / of\n"
    code += "def flat(image):\n    return np.zeros(3)\ndef far(image):\n    return np.asarray(image, float)\nsize = 3\n"
    (tmp_path / "own_recipes.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("bimichi.sources.recipes._loaded", {})  # by other tests
    with unimported():
        yield tmp_path
    sys.modules.pop("own_recipes", None)


def test_a_chain_applies_its_steps_in_order(image):
    for name, expected in (
        ("edge_strength|rarity", rarity(edge_strength(image))),
        ("edge_strength(2, 0.5) | quantile(5,95)", quantile(edge_strength(image, 2, 0.5), 5, 95)),
        ("local_difference(9)|rarity", rarity(local_difference(image, 9))),
        ("to_bipolar|gamma_correction", gamma_correction(to_bipolar(image), low=-1, high=1)),
        ("to_bipolar|inverted", -to_bipolar(image)),
        ("as_is|to_bipolar", to_bipolar(image)),
        ("gamma_correction(2,0,100)", gamma_correction(image, 2, 0, 100)),
    ):
        np.testing.assert_array_equal(make_source(image, name), expected)


def test_a_single_recipe_is_the_registered_one():
    for name, recipe in RECIPES.items():
        assert find_recipe(name) is recipe


def test_names_are_kept_in_one_spelling(image):
    chosen = choose_recipes([" edge_strength( 2,1.50 ) |rarity", "equalize"], [image, image], "ab")
    assert chosen == ["edge_strength(2,1.5)|rarity", "equalize"]
    assert find_recipe(chosen[0]).name == chosen[0]
    assert split_names("edge_strength(2, 1), equalize|rarity,x") == ["edge_strength(2, 1)", "equalize|rarity", "x"]
    assert [step.numbers for step in parse_chain("a(1,-2.5)|b.c:d(1e3)|e")] == [(1, -2.5), (1000.0,), ()]


def test_a_chain_is_pointwise_if_all_parts_are(image):
    chain = find_recipe("to_bipolar|gamma_correction(2)")
    assert chain.pointwise
    whole = chain.function(image)
    window = chain.function(image[3:9].astype(np.float32), low=0.0, high=255.0)  # as rasters are read
    np.testing.assert_allclose(window, whole[3:9], atol=1e-6)
    np.testing.assert_allclose(
        find_recipe("as_is|to_bipolar").function(image.astype(np.float32), low=0.0, high=255.0), to_bipolar(image)
    )
    assert not find_recipe("to_bipolar|rarity").pointwise


@pytest.mark.parametrize("scale", ["rarity", "quantile", "equalize"])
@pytest.mark.parametrize(
    "first", ["to_bipolar", "gamma_correction", "local_difference(9)", "edge_strength", "inverted"]
)
def test_floats_of_any_range_work_before_a_relative_scale(first, scale, kelvin):
    source = make_source(kelvin, f"{first}|{scale}")
    assert np.abs(source).max() == 1
    if first == "to_bipolar":
        np.testing.assert_allclose(source, make_source(kelvin, scale), atol=0.03)


def test_nan_and_constant_images_go_through(kelvin):
    kelvin[4, 5] = np.nan
    source = make_source(kelvin, "to_bipolar|rarity")
    assert np.isnan(source[4, 5])
    assert np.isnan(source).sum() == 1
    np.testing.assert_array_equal(make_source(np.full((4, 5), 300.0), "to_bipolar|rarity"), np.full((4, 5), -1.0))
    assert np.isnan(make_source(np.full((4, 5), np.nan), "inverted|quantile")).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("soup|rarity", "recipe-unknown"),
        ("rarity|", "recipe-unknown"),
        ("", "recipe-unknown"),
        ("|".join(["rarity"] * 9), "recipe-unknown"),
        ("rarity(__import__('os'))", "recipe-unknown"),
        ("equalize(3)", "recipe-numbers"),
        ("edge_strength(1,2,3)", "recipe-numbers"),
        ("local_difference(90)", "window:window"),
        ("local_difference", "no error"),
        ("as_is|local_difference", "recipe-range"),
        ("local_difference(9)|to_bipolar", "recipe-range"),
        ("to_bipolar", "image-range"),
        ("json:loads", "recipe-untrusted"),
        ("a:b:c", "recipe-unknown"),
    ],
)
def test_bad_names_and_ranges(name, message, kelvin):
    if message == "no error":
        assert np.abs(make_source(kelvin, name)).max() > 1  # as for as_is, --scale may map it
        return
    with refused(message):
        make_source(kelvin, name)


def test_a_function_of_ones_own_runs_only_after_it_is_named(own, image):
    name = "own_recipes:half(4)|rarity"
    with refused("recipe-untrusted"):
        choose_recipes([name], [image], "a")
    assert not (own / "ran").exists()
    assert load_recipe(name).name == name
    assert (own / "ran").exists()
    np.testing.assert_array_equal(make_source(image, name), rarity((image / 255 / 4).astype(np.float32)))
    alone = make_source(image, "own_recipes:half")
    assert alone.dtype == np.float32
    np.testing.assert_allclose(alone, image / 510, atol=1e-7)
    assert not find_recipe(name).pointwise


def test_functions_that_cannot_be_used(own, image):
    for name, message in (
        ("own_recipes:none", "recipe-unloadable"),
        ("no_such_module:half", "recipe-unloadable"),
        ("own_recipes:size", "recipe-kind"),
    ):
        with refused(message):
            load_recipe(name)
    load_recipe("own_recipes:flat|rarity")
    with refused("recipe-result", "30", "40"):
        make_source(image, "own_recipes:flat")
    load_recipe("own_recipes:far")
    with refused("recipe-range"):
        make_source(image, "own_recipes:far|as_is")


def test_inverted_targets(image):
    np.testing.assert_array_equal(make_source(image, "inverted|rarity"), rarity(inverted(image)))
    darkest = image == image.min()
    assert make_source(image, "inverted|rarity")[darkest].min() == make_source(image, "inverted|rarity").max()
