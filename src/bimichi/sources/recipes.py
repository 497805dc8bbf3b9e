"""The registry of recipes, each of which makes a source in [-1, 1] of one image; and which recipe an image gets.

A model file names the recipes of its sources, so that the same ones are applied to new images. Names may be chains such
as ``local_difference(91)|rarity``. A recipe is one function, described by `recipe`; see docs/extending.md.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.registry import Registry
from bimichi.sources.bands import ROUNDING, Image, float_type, type_range

AS_IS = "as_is"  # the recipe that changes nothing
MAX_STEPS = 8
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
STEP = re.compile(rf"([^\W\d]\w*(?:\.[^\W\d]\w*)*(?::[^\W\d]\w*)?)\s*(?:\(\s*({NUMBER}(?:\s*,\s*{NUMBER})*)\s*\))?")


Function = TypeVar("Function", bound=Callable[..., Image])


@dataclass(frozen=True)
class Recipe:
    """A named way to make a source of an image; see `bimichi.sources.register_recipe`."""

    name: str
    function: Callable[..., Image]
    description: str
    pointwise: bool = False
    relative: bool = False
    parameters: tuple[str, ...] = ()


class Step(NamedTuple):
    """One step of a chain: a name, and the numbers in parentheses after it."""

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def is_path(self) -> bool:
        """Return whether it is the import path of a function."""
        return ":" in self.name

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{number!r}' for number in self.numbers)})" if self.numbers else self.name


def split_names(text: str) -> list[str]:
    """Split a list of recipes at its commas, except those between parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


def parse_chain(name: str) -> list[Step]:
    """Read the name of a recipe or of a chain; errors say what a name may be."""
    parts = name.split("|") if isinstance(name, str) else []
    matches = [STEP.fullmatch(part.strip()) for part in parts[: MAX_STEPS + 1]]
    if not matches or len(matches) > MAX_STEPS or None in matches:
        raise InvalidInputError(
            f"There is no recipe {name!r:.100}. A recipe is a name such as equalize, with numbers where it takes some, "
            f"as in local_difference(91), or up to {MAX_STEPS} of these joined by |, as in edge_strength|rarity.",
            code="recipe-unknown",
        )
    return [Step(match[1], _numbers(match[2])) for match in matches if match]


def import_function(path: str) -> Callable[..., Image]:
    """Import the function of an import path such as ``my.module:function``. This runs the code of the module."""
    module, _, name = path.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"The recipe {path} cannot be loaded: {error}. The module must be installed, or lie in the working "
            "directory or on PYTHONPATH.",
            code="recipe-unloadable",
        ) from error
    if not callable(function):
        raise InvalidInputError(
            f"The recipe {path} is not a function, but of type {type(function).__name__}.", code="recipe-kind"
        )
    return function  # type: ignore[no-any-return]  # nothing is known about it; its results are checked


def composed(steps: Sequence[Step], recipes: Sequence[Recipe]) -> Recipe:
    """Return the recipe that applies others one after another: pointwise if all of them are."""
    name = "|".join(map(str, steps))
    pairs = [*zip(steps, recipes, strict=True)]
    pairs = [pair for pair in pairs if pair[0].name != AS_IS] or pairs[:1]
    settings = [_settings(step, entry) for step, entry in pairs]

    def function(image: Image, **bounds: float) -> Image:
        plane = np.asarray(image)
        for k, ((step, entry), (numbers, keywords)) in enumerate(zip(pairs, settings, strict=True)):
            if entry.pointwise and not {"low", "high"} & keywords.keys():
                later = any(step_after.relative for _, step_after in pairs[k + 1 :])
                stated = bounds if k == 0 and bounds else _bounds(plane, first=k == 0, any_range=later, step=str(step))
                keywords = keywords | stated
            plane = _checked(entry.function(plane, *numbers, **keywords), image, step)
        if len(steps) > 1:
            _check_range(plane, name)
        return plane

    pointwise, relative = all(entry.pointwise for entry in recipes), any(entry.relative for entry in recipes)
    return Recipe(name, function, "a chain of recipes", pointwise, relative)


def _numbers(text: str | None) -> tuple[float, ...]:
    """Return whole numbers as int, others as float."""
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    return tuple(int(part) if re.fullmatch(r"[+-]?\d{1,9}", part) else float(part) for part in parts)


def _settings(step: Step, entry: Recipe) -> tuple[tuple[float, ...], dict[str, float]]:
    """Return the arguments that the numbers of a step are: by keyword, or by position if only the user knows them."""
    if step.is_path:
        return step.numbers, {}
    names = entry.parameters
    if len(step.numbers) > len(names):
        takes = f"takes at most {', '.join(names)}" if names else "takes no numbers"
        raise InvalidInputError(
            f"The recipe {step} has {len(step.numbers)} numbers, but {step.name} {takes}.", code="recipe-numbers"
        )
    return (), dict(zip(names, step.numbers, strict=False))


def _bounds(values: Image, *, first: bool, any_range: bool, step: str) -> dict[str, float]:
    """Return the range that a pointwise recipe maps, if it is not that of the image's type.

    What an earlier step made is a source in [-1, 1]. Beyond that, or, for images of floats, beyond [0, 1], the range of
    the values themselves is right only if a later step compares them with each other.
    """
    if values.dtype.kind != "f":
        return {}
    low, high = float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))
    least = 0.0 if first else -1.0
    if np.isnan(low) or (low >= least - ROUNDING and high <= 1 + ROUNDING):
        return {} if first else {"low": -1.0, "high": 1.0}
    if any_range:
        return {"low": low, "high": high if high > low else low + 1}
    if first:
        return {}  # the recipe itself says what floats must be
    raise InvalidInputError(
        f"The recipe {step} is given values from {low:.6g} to {high:.6g} by the step before it, beyond [-1, 1]. Name "
        f"the range, as in to_bipolar({low:.4g},{high:.4g}), or end the chain in rarity or quantile.",
        code="recipe-range",
    )


def _checked(result: Any, image: Image, step: Step) -> Image:
    """Return the result of a step; that of a user's function must be a plane of real numbers of the image's size."""
    if not step.is_path:
        return result  # type: ignore[no-any-return]
    plane = np.asarray(result)
    if plane.dtype.kind not in "buif" or plane.shape[:2] != image.shape[:2] or plane.ndim != 2:
        raise InvalidInputError(
            f"The recipe {step} must return real numbers of shape {image.shape[:2]}, those of the image, but returned "
            f"{plane.dtype} of shape {plane.shape}.",
            code="recipe-result",
        )
    return plane.astype(np.float32, copy=False)


def _check_range(plane: Image, name: str) -> None:
    low, high = float(np.fmin.reduce(plane, axis=None)), float(np.fmax.reduce(plane, axis=None))
    if low < -1 or high > 1:
        raise InvalidInputError(
            f"The recipe {name} gives values from {low:.6g} to {high:.6g}, but a source lies in [-1, 1]. End it in a "
            "scale, such as rarity or quantile.",
            code="recipe-range",
        )


def recipe(
    description: str, *, pointwise: bool = False, relative: bool = False, parameters: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Describe a function as the recipe of its name, for an entry point; parameters as in `register_recipe`.

    Examples
    --------
    >>> @recipe("one half of the image")
    ... def halved(image):
    ...     return image / 2
    >>> halved.recipe.name
    'halved'
    """

    def describe(function: Function) -> Function:
        entry = Recipe(function.__name__, function, description, pointwise, relative, tuple(parameters))
        setattr(function, "recipe", entry)  # noqa: B010  # which no function is known to have
        return function

    return describe


@recipe("no change: values lie in [-1, 1] already, or `--scale` maps them there", pointwise=True)
def as_is(image: Image, **_: float) -> Image:
    """Return the image."""
    return image


def _check(name: str, loaded: Any) -> Recipe:
    entry = getattr(loaded, "recipe", loaded)
    if not isinstance(entry, Recipe) or entry.name != name:
        raise InvalidInputError(
            f"{name} must be a Recipe, or a function described by recipe(...), of this name.",
            code="recipe-kind",
            argument=name,
        )
    return entry


_OPERATORS = (
    *("to_bipolar", "gamma_correction", "inverted", "adaptive_threshold", "equalize", "local_contrast"),
    *("edge_strength", "vertical_edges", "rarity", "quantile", "local_difference"),
)
RECIPES = Registry(
    "bimichi.recipes",
    {AS_IS: f"{__name__}:as_is"} | {name: f"bimichi.sources.operators:{name}" for name in _OPERATORS},
    _check,
)
"""All recipes by name, `AS_IS` first."""

_loaded: dict[str, Recipe] = {}  # functions by import path that the user named in this process


def register_recipe(
    name: str,
    function: Callable[..., Image],
    description: str,
    *,
    pointwise: bool = False,
    relative: bool = False,
    parameters: Sequence[str] = (),
) -> Recipe:
    """Make a recipe known by name, to `--recipe` on the command line and to model files, for as long as this runs.

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
    relative : bool, default=False
        Whether the result depends on how the values of one image compare, so that floats of any range give a source in
        [-1, 1].
    parameters : sequence of str, default=()
        Keywords of the function that take numbers, in the order in which a name gives them: with ("sigma", "spread"),
        the recipe "edge_strength(1, 4)" calls ``function(image, sigma=1, spread=4)``.

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
        raise InvalidInputError(
            f"The name of a recipe must be an identifier such as 'edge_strength', got {name!r}.",
            code="recipe-name",
            value=name,
        )
    if name in RECIPES:
        raise InvalidInputError(f"There is a recipe {name!r} already; choose another name.", code="recipe-taken")
    return RECIPES.register(name, Recipe(name, function, description, pointwise, relative, tuple(parameters)))


def find_recipe(name: str) -> Recipe:
    """Return the recipe, or the chain of recipes, of this name; if there is none, the error lists them all.

    A function by import path is found only after `load_recipe`, so that no model file makes anything run.
    """
    if isinstance(name, str) and name.isidentifier() and name in RECIPES:
        return RECIPES[name]
    steps = parse_chain(name)
    return composed(steps, [_find_step(step) for step in steps])


def load_recipe(name: str) -> Recipe:
    """Import the functions that a recipe names by import path, and return the recipe.

    From then on, model files that name these functions can be used in this process. Importing runs the code of their
    modules, so do this for modules that you trust.

    Parameters
    ----------
    name : str
        Such as "my_package.filters:warm_spots", or a chain with one, "my_package.filters:warm_spots|rarity". The
        function takes an image as those of `register_recipe` do.

    Returns
    -------
    Recipe
        It is not pointwise, since nothing is known about the function.

    Raises
    ------
    InvalidInputError
        If a module cannot be imported, or has no such function.

    Examples
    --------
    >>> load_recipe("numpy:tanh|quantile").name
    'numpy:tanh|quantile'
    """
    for step in parse_chain(name):
        if step.is_path and step.name not in _loaded:
            _loaded[step.name] = Recipe(step.name, import_function(step.name), "a function of the user's own")
    return find_recipe(name)


def _find_step(step: Step) -> Recipe:
    if step.is_path:
        if step.name not in _loaded:
            raise InvalidInputError(
                f"The recipe {step.name} is a Python function, and a model file alone does not make it run. If you "
                "trust it, pass --trust-recipes, or call bimichi.sources.load_recipe with its name first.",
                code="recipe-untrusted",
            )
        return _loaded[step.name]
    if step.name not in RECIPES:
        raise InvalidInputError(
            f"There is no recipe {step.name!r}; it must be one of {', '.join(RECIPES)}, several of them joined by |, "
            "or the import path of a function, such as my.module:function. A newer bimichi may know it.",
            code="recipe-unknown",
        )
    return RECIPES[step.name]


def default_recipe(dtype: np.dtype[Any], colour: bool = False) -> str:
    """Return the recipe of images for which none was chosen: `to_bipolar` for integers and bool, `AS_IS` for floats.

    RGB counts by its lightness, of floats in any range by `quantile`.
    """
    if dtype.kind != "f":
        return "to_bipolar"
    return "quantile" if colour else AS_IS


def choose_recipes(recipes: Sequence[str] | None, images: Sequence[Image], names: Sequence[str]) -> list[str]:
    """Return one recipe per source: those given, one for all or one each, or by default those of `default_recipe`.

    Images have one band, or three (RGB); `names` are those of the sources, for errors.
    """
    if recipes is not None and len(recipes) not in (1, len(images)):
        raise InvalidInputError(
            f"{len(recipes)} recipes for {len(images)} sources: {', '.join(recipes)}. Name one for all, or one each.",
            code="recipes-number",
        )
    by_type = [default_recipe(image.dtype, image.ndim == 3) for image in images]
    chosen = by_type if recipes is None else list(recipes) * (len(images) // len(recipes))
    chosen = [find_recipe(recipe).name for recipe in chosen]
    for image, recipe, name in zip(images, chosen, names, strict=True):
        if image.ndim == 3 and (image.shape[2] != 3 or recipe == AS_IS):
            remedy = " The recipe to_bipolar takes the lightness of RGB." if image.shape[2] == 3 else ""
            raise InvalidInputError(
                f"Source {name!r} has {image.shape[2]} bands; with several files, each must have one band.{remedy}",
                code="bands-many",
            )
    return chosen


def suited_recipes(recipes: Sequence[str], images: Sequence[Image]) -> list[str]:
    """Return recipes that suit the values of images: floats beyond [-1, 1] get `quantile` in the place of `AS_IS`."""

    def leaves(image: Image) -> bool:
        return bool(np.fmin.reduce(image, axis=None) < -1 or np.fmax.reduce(image, axis=None) > 1)

    return [
        "quantile" if recipe == AS_IS and image.dtype.kind == "f" and leaves(image) else recipe
        for recipe, image in zip(recipes, images, strict=True)
    ]


def make_plane(image: Image, recipe: str, dtype: np.dtype[Any]) -> Image:
    """Return the source that a recipe makes of an image, or of a part of it if the recipe is pointwise.

    `dtype` is the type in which the image is stored; where it has no data, and in windows of rasters, its integers are
    read as floats. What the recipe makes of them does not depend on that, bit for bit.
    """
    entry = find_recipe(recipe)
    if recipe == AS_IS:
        return image.astype(float_type(image.dtype), copy=False) if image.dtype.kind != "f" else image
    if image.dtype.kind != "f" or dtype.kind == "f":
        return entry.function(image)
    low, high = type_range(dtype)
    if entry.pointwise and image.ndim == 2:
        return entry.function(image, low=low, high=high)
    return entry.function(np.clip((image - low) / (high - low), 0, 1).astype(np.float32, copy=False))
