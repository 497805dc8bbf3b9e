"""The registry of recipes: what follows from it, and what every entry must do."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from program import program
from refusals import refused
from registries import check_description, restored

from bimichi.sources import RECIPES, register_recipe
from bimichi.sources.recipes import AS_IS, choose_recipes, default_recipe, find_recipe, suited_recipes

EVERY = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())


@pytest.fixture
def registry():
    with restored(RECIPES):
        yield


@EVERY
def test_entries(recipe, rng):
    check_description(recipe.description)
    assert RECIPES[recipe.name] is recipe
    image = rng.uniform(-1, 1, (6, 7)) if recipe.name == AS_IS else rng.integers(0, 256, (6, 7)).astype(np.uint8)
    source = recipe.function(image)
    assert source.shape == (6, 7)
    assert np.abs(source).max() <= 1


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES.values() if recipe.pointwise], ids=lambda r: r.name)
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16])
def test_pointwise_recipes_give_the_same_in_parts_and_of_floats_with_a_range(recipe, kind, rng):
    image = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (9, 5)).astype(kind)
    whole = recipe.function(image)
    np.testing.assert_array_equal(np.concatenate([recipe.function(image[:4]), recipe.function(image[4:])]), whole)
    window = image[2:6].astype(np.float32)
    bounds = {"low": float(np.iinfo(kind).min), "high": float(np.iinfo(kind).max)}
    np.testing.assert_allclose(recipe.function(window, **bounds), whole[2:6], atol=1e-6)


def test_others_are_not_pointwise(rng):
    image = rng.integers(0, 256, (40, 30)).astype(np.uint8)
    for recipe in RECIPES.values():
        if not recipe.pointwise:
            assert not np.array_equal(recipe.function(image)[:5], recipe.function(image[:5]))


def test_a_new_recipe_is_one_call(registry):
    entry = register_recipe("half", lambda image: image / np.float32(2), "half of it", pointwise=False)
    assert RECIPES["half"] is entry
    assert list(RECIPES)[-1] == "half"
    np.testing.assert_array_equal(find_recipe("half").function(np.ones((2, 2), np.float32)), np.full((2, 2), 0.5))
    for name, message in (("half", "recipe-taken"), ("a,b", "recipe-name")):
        with refused(message):
            register_recipe(name, abs, "")


def test_an_unknown_recipe_is_named_with_the_known_ones():
    with refused("recipe-unknown", "'soup'"):
        find_recipe("soup")


def test_recipes_by_type_or_as_asked_for():
    grey, floats, colour = np.zeros((2, 3), np.uint8), np.zeros((2, 3)), np.zeros((2, 3, 3), np.uint8)
    assert default_recipe(np.dtype(bool)) == "to_bipolar"
    assert choose_recipes(None, [grey, floats], "ab") == ["to_bipolar", AS_IS]
    assert choose_recipes(["equalize"], [grey, colour], "ab") == ["equalize", "equalize"]
    assert choose_recipes(None, [colour, colour.astype(float)], "ab") == ["to_bipolar", "quantile"]
    assert suited_recipes([AS_IS, AS_IS], [floats, floats - 39]) == [AS_IS, "quantile"]
    for asked, images, message in (
        ([AS_IS], [colour, grey], "bands-many"),
        (["equalize"], [np.zeros((2, 3, 4))], "bands-many"),
        (["equalize"] * 3, [grey, grey], "recipes-number"),
        (["soup"], [grey], "recipe-unknown"),
    ):
        with refused(message):
            choose_recipes(asked, images, "ab"[: len(images)])


def test_the_docs_list_them_and_the_annotation_formats():
    folder = Path(__file__).parents[2] / "docs"
    page = (folder / "command-line.md").read_text(encoding="utf-8")
    with_table = runpy.run_path(str(folder / "tables.py"))["with_table"]
    assert with_table(page) == page, "run python docs/tables.py"
    with restored(RECIPES):
        register_recipe("new", abs, "a new one")
        assert "| `new` | a new one | no |" in with_table(page)


def test_their_names_are_known_without_slow_packages():
    script = (
        "import sys; from bimichi.sources import RECIPES; print([m for m in ('scipy', 'skimage') if m in sys.modules])"
    )
    assert program(script=script).stdout.strip() == "[]"
