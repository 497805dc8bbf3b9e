"""The registry of recipes, each of which makes a source in [-1, 1] of one image; and which recipe an image gets.

A model file names the recipes of its sources, so that the same ones are applied to new images. A recipe of your own is
one function and one call of `register_recipe`; see docs/extending.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.imaging import sources
from bimichi.imaging.bands import Image

AS_IS = "as_is"  # the recipe that changes nothing


@dataclass(frozen=True)
class Recipe:
    """A named way to make a source of an image; see `register_recipe`."""

    name: str
    function: Callable[..., Image]
    description: str
    pointwise: bool = False


_recipes: dict[str, Recipe] = {}
_functions: dict[str, Callable[..., Image]] = {}

RECIPES: Mapping[str, Recipe] = MappingProxyType(_recipes)
"""All recipes by name, `AS_IS` first."""

SOURCE_RECIPES: Mapping[str, Callable[..., Image]] = MappingProxyType(_functions)
"""The functions of all recipes but `AS_IS`, by name."""


def register_recipe(name: str, function: Callable[..., Image], description: str, *, pointwise: bool = False) -> Recipe:
    """Make a recipe known by name: to `--recipe` on the command line, to model files, and to `SOURCE_RECIPES`.

    Parameters
    ----------
    name : str
        An identifier, such as "edge_strength", that no other recipe has.
    function : callable
        ``function(image)`` takes an image of shape (height, width) or (height, width, 3), integers or floats, and
        returns an array of float32 of shape (height, width) in [-1, 1], NaN where the image is NaN.
    description : str
        One line for the documentation, without a full stop.
    pointwise : bool, default=False
        Whether each pixel of the result depends on the same pixel of the image alone, so that large images can be
        processed in parts. The function must then accept the keywords `low` and `high`, the range of the image's type,
        since parts of rasters are read as floats.

    Returns
    -------
    Recipe
        The new entry.

    Raises
    ------
    InvalidInputError
        If the name is no identifier or taken.
    """
    if not name.isidentifier():
        raise InvalidInputError(f"The name of a recipe must be an identifier such as 'edge_strength', got {name!r}.")
    if name in _recipes:
        raise InvalidInputError(f"There is a recipe {name!r} already; choose another name.")
    recipe = _recipes[name] = Recipe(name, function, description, pointwise)
    if name != AS_IS:
        _functions[name] = function
    return recipe


def as_is(image: Image, **_: float) -> Image:
    """Return the image."""
    return image


for _function, _description, _pointwise in (
    (as_is, "no change: values lie in [-1, 1] already, or `--scale` maps them there", True),
    (sources.to_bipolar, "the range of the type (floats: [0, 1]) mapped to [-1, 1]", True),
    (sources.adaptive_threshold, "-1 where brighter than the neighbourhood, +1 elsewhere", False),
    (sources.equalize, "histogram equalisation", False),
    (sources.gamma_correction, "power 1.5 of the brightness, mapped to [-1, 1]", True),
    (sources.local_contrast, "difference from the mean of the neighbourhood", False),
    (sources.edge_strength, "smoothed size of the gradient", False),
):
    register_recipe(_function.__name__, _function, _description, pointwise=_pointwise)


def find_recipe(name: str) -> Recipe:
    """Return the recipe of this name; if there is none, the error lists them all."""
    if name not in _recipes:
        raise InvalidInputError(
            f"There is no recipe {name!r}; it must be one of {', '.join(_recipes)}. A newer bimichi may know it."
        )
    return _recipes[name]


def make_source(image: Image, name: str) -> Image:
    """Return the source that a recipe makes of an image, or of a part of it if the recipe is pointwise."""
    return find_recipe(name).function(image)


def default_recipe(dtype: np.dtype[Any]) -> str:
    """Return the recipe of images for which none was chosen: `to_bipolar` for integers and bool, `AS_IS` for floats."""
    return AS_IS if dtype.kind == "f" else "to_bipolar"


def choose_recipes(recipes: Sequence[str] | None, images: Sequence[Image], names: Sequence[str]) -> list[str]:
    """Return one recipe per source: those given, one for all or one each, or by default those of `default_recipe`.

    Images have one band, or, with a given recipe, three (RGB); `names` are those of the sources, for errors.
    """
    if recipes is not None and len(recipes) not in (1, len(images)):
        raise InvalidInputError(
            f"{len(recipes)} recipes for {len(images)} sources: {', '.join(recipes)}. Name one for all, or one each."
        )
    by_type = [default_recipe(image.dtype) for image in images]
    chosen = by_type if recipes is None else list(recipes) * (len(images) // len(recipes))
    for image, recipe, name in zip(images, chosen, names, strict=True):
        find_recipe(recipe)
        if image.ndim == 3 and (image.shape[2] != 3 or recipes is None or recipe == AS_IS):
            remedy = " The recipe to_bipolar takes the lightness of RGB." if image.shape[2] == 3 else ""
            raise InvalidInputError(
                f"Source {name!r} has {image.shape[2]} bands; with several files, each must have one band.{remedy}"
            )
    return chosen
