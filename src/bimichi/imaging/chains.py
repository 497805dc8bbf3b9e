"""Names of recipes, and the recipes that chains of them make: ``edge_strength(1, 4)|rarity``.

A chain is steps joined by ``|``, applied from left to right. A step is the name of a recipe, or the import path of a
function (``my.module:function``), optionally with numbers in parentheses. Nothing in a name is ever evaluated.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import ROUNDING, Image

AS_IS = "as_is"  # the recipe that changes nothing
MAX_STEPS = 8
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
STEP = re.compile(rf"([^\W\d]\w*(?:\.[^\W\d]\w*)*(?::[^\W\d]\w*)?)\s*(?:\(\s*({NUMBER}(?:\s*,\s*{NUMBER})*)\s*\))?")


@dataclass(frozen=True)
class Recipe:
    """A named way to make a source of an image; see `bimichi.imaging.register_recipe`."""

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
        """Whether it is the import path of a function."""
        return ":" in self.name

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{number!r}' for number in self.numbers)})" if self.numbers else self.name


def split_names(text: str) -> list[str]:
    """Split a list of recipes at its commas, except those between parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


def parse_chain(name: str) -> list[Step]:
    """Read the name of a recipe or of a chain; errors say what a name may be."""
    parts = name.split("|") if isinstance(name, str) else []
    found = [STEP.fullmatch(part.strip()) for part in parts[: MAX_STEPS + 1]]
    if not found or len(found) > MAX_STEPS or None in found:
        raise InvalidInputError(
            f"There is no recipe {name!r:.100}. A recipe is a name such as equalize, with numbers where it takes some, "
            f"as in local_difference(91), or up to {MAX_STEPS} of these joined by |, as in edge_strength|rarity."
        )
    return [Step(match[1], _numbers(match[2])) for match in found if match]


def import_function(path: str) -> Callable[..., Image]:
    """Import the function of an import path such as ``my.module:function``. This runs the code of the module."""
    module, _, name = path.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"The recipe {path} cannot be loaded: {error}. The module must be installed, or lie in the working "
            "directory or on PYTHONPATH."
        ) from error
    if not callable(function):
        raise InvalidInputError(f"The recipe {path} is not a function, but of type {type(function).__name__}.")
    return function  # type: ignore[no-any-return]  # nothing is known about it; its results are checked


def composed(steps: Sequence[Step], recipes: Sequence[Recipe]) -> Recipe:
    """Return the recipe that applies others one after another: pointwise if all of them are."""
    name = "|".join(map(str, steps))
    pairs = [*zip(steps, recipes, strict=True)]
    pairs = [pair for pair in pairs if pair[0].name != AS_IS] or pairs[:1]
    settings = [_settings(step, recipe) for step, recipe in pairs]

    def function(image: Image, **bounds: float) -> Image:
        made = np.asarray(image)
        for k, ((step, recipe), (numbers, keywords)) in enumerate(zip(pairs, settings, strict=True)):
            if recipe.pointwise and not {"low", "high"} & keywords.keys():
                later = any(one.relative for _, one in pairs[k + 1 :])
                given = bounds if k == 0 and bounds else _bounds(made, first=k == 0, any_range=later, step=str(step))
                keywords = keywords | given
            made = _checked(recipe.function(made, *numbers, **keywords), image, step)
        if len(steps) > 1:
            _check_range(made, name)
        return made

    pointwise, relative = (all(one.pointwise for one in recipes), any(one.relative for one in recipes))
    return Recipe(name, function, "a chain of recipes", pointwise, relative)


def _numbers(text: str | None) -> tuple[float, ...]:
    """Return whole numbers as int, others as float."""
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    return tuple(int(part) if re.fullmatch(r"[+-]?\d{1,9}", part) else float(part) for part in parts)


def _settings(step: Step, recipe: Recipe) -> tuple[tuple[float, ...], dict[str, float]]:
    """Return the arguments that the numbers of a step are: by keyword, or by position if only the user knows them."""
    if step.is_path:
        return step.numbers, {}
    known = recipe.parameters
    if len(step.numbers) > len(known):
        takes = f"takes at most {', '.join(known)}" if known else "takes no numbers"
        raise InvalidInputError(f"The recipe {step} has {len(step.numbers)} numbers, but {step.name} {takes}.")
    return (), dict(zip(known, step.numbers, strict=False))


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
        f"the range, as in to_bipolar({low:.4g},{high:.4g}), or end the chain in rarity or quantile."
    )


def _checked(made: Any, image: Image, step: Step) -> Image:
    """Return the result of a step; that of a user's function must be a plane of real numbers of the image's size."""
    if not step.is_path:
        return made  # type: ignore[no-any-return]
    plane = np.asarray(made)
    if plane.dtype.kind not in "buif" or plane.shape[:2] != image.shape[:2] or plane.ndim != 2:
        raise InvalidInputError(
            f"The recipe {step} must return real numbers of shape {image.shape[:2]}, those of the image, but returned "
            f"{plane.dtype} of shape {plane.shape}."
        )
    return plane.astype(np.float32, copy=False)


def _check_range(made: Image, name: str) -> None:
    low, high = float(np.fmin.reduce(made, axis=None)), float(np.fmax.reduce(made, axis=None))
    if low < -1 or high > 1:
        raise InvalidInputError(
            f"The recipe {name} gives values from {low:.6g} to {high:.6g}, but a source lies in [-1, 1]. End it in a "
            "scale, such as rarity or quantile."
        )
