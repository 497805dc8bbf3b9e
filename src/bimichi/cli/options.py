"""Options that commands share, alone or in groups."""

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bimichi.errors import InvalidInputError
from bimichi.imaging.annotations import ANNOTATION_FORMATS
from bimichi.imaging.chains import split_names
from bimichi.imaging.recipes import RECIPES, load_recipe

if TYPE_CHECKING:
    from bimichi.imaging.labelling import Labelling


LABELS = "Bags, and where the targets are"


def _label(text: str, metavar: str, **limits: Any) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel=LABELS, **limits)


def output_option(text: str, **options: Any) -> Any:
    """Return the option --output, -o."""
    return typer.Option("--output", "-o", help=text, show_default=False, **options)


def listed(text: str | None) -> list[str] | None:
    """Split text at commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def _check_recipes(text: str | None) -> str | None:
    """Check names of recipes; functions by import path are imported, since the user names them here."""
    if text is not None:
        load_recipes(split_names(text))
    return text


def load_recipes(names: Iterable[str] | None) -> None:
    """Import the functions that recipes name by import path, also from the working directory."""
    paths = [name for name in names or () if ":" in name]
    folder = str(Path.cwd())
    if paths and folder not in sys.path:
        sys.path.append(folder)
    for name in names or ():
        try:
            load_recipe(name)
        except InvalidInputError as error:
            raise typer.BadParameter(str(error)) from error


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCES",
        show_default=False,
        help="One argument per source: an image file; or, for many scenes, a folder or a quoted pattern, whose files "
        "are paired by name. Or a single argument: files of several bands.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A model from `bimichi train`.")]
Names = Annotated[
    str | None, typer.Option(help="Names of the sources, in the order given, separated by commas.", metavar="A,B,C")
]
TrustRecipes = Annotated[
    bool,
    typer.Option("--trust-recipes", help="Import the Python functions that the model names as recipes, if any."),
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for all results.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.", metavar="N")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of threads; all cores by default.", metavar="N")]


@dataclass(frozen=True)
class SourceOptions:
    """How images become sources."""

    names: Names = None
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"How an image becomes a source in [-1, 1], one for all or one each: {', '.join(RECIPES)}; several "
            "in a row as in 'edge_strength|rarity'; or a Python function as in my.module:function. By default "
            "to_bipolar for integers, over the range of their type, and as_is for floats.",
            metavar="A,B,C",
            callback=_check_recipes,
        ),
    ] = None

    def lists(self) -> tuple[list[str] | None, list[str] | None]:
        """Return the names and the recipes."""
        return listed(self.names), None if self.recipe is None else split_names(self.recipe)


@dataclass(frozen=True)
class LabelOptions:
    """How bags are made, and where the targets are."""

    boxes: Annotated[Path | None, _label(f"Boxes of all scenes: {ANNOTATION_FORMATS['csv'].description}.", "FILE")] = (
        None
    )
    labels: Annotated[
        str | None,
        _label("Instead of boxes: a mask of targets, above 0, or another annotation file per scene.", "FILE"),
    ] = None
    bags: Annotated[
        str | None,
        _label(
            "superpixels, by default; boxes: the core of each box is a positive bag, pixels outside are negative, the "
            "rest is left out; or an image that numbers the bag of each pixel (./boxes if it has such a name).",
            "superpixels|boxes|IMAGE",
        ),
    ] = None
    superpixels: Annotated[int, _label("About how many bags per scene.", "N", min=1)] = 300
    min_overlap: Annotated[
        float,
        _label("The least share of a positive bag that is target; 0: one pixel is enough.", "SHARE", min=0.0, max=1.0),
    ] = 0.0
    ignore: Annotated[
        str | None, _label("Mask, above 0 where targets are unknown: such bags, unless positive, are left out.", "MASK")
    ] = None
    target: Annotated[
        str | None, _label("Count only this class as target: a value of the mask, or a label of boxes.", "VALUE")
    ] = None

    def labelling(self) -> "Labelling":
        """Return them as the library takes them."""
        from bimichi.imaging.labelling import Labelling

        if (self.boxes is None) == (self.labels is None):
            raise typer.BadParameter("give exactly one of them", param_hint="'--boxes' / '--labels'")
        return Labelling(**vars(self))


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with each parameter that is a group of options, a dataclass, replaced by the options in it.

    typer reads the options of a command from its signature; groups let commands share them without repeating them.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    group: Any
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            group = groups[parameter.name] = parameter.annotation
            parameters += inspect.signature(group, eval_str=True).parameters.values()
        else:
            parameters.append(parameter)

    @wraps(command)
    def expanded(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    expanded.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # which typer reads
    return expanded
