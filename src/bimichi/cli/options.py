"""Options that commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bimichi.cli.recipes import RECIPES

if TYPE_CHECKING:
    from bimichi.cli.labels import Labelling

__all__ = [
    "Bags",
    "Boxes",
    "Ignore",
    "Jobs",
    "Labels",
    "MinOverlap",
    "Names",
    "Recipe",
    "Seed",
    "Sources",
    "Superpixels",
    "Target",
    "labelling",
    "listed",
]

LABELS = "What the bags are, and where targets are"

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCES",
        show_default=False,
        help="One argument a source: an image file; or, for many scenes, a folder or a quoted pattern, paired up by "
        "name. A single argument: files of several bands.",
    ),
]
Boxes = Annotated[
    Path | None,
    typer.Option(
        help="CSV with the columns x, y, w, h in pixels, and image if there are many scenes.",
        rich_help_panel=LABELS,
        metavar="CSV",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(help="Instead of boxes: a mask of targets, above 0.", rich_help_panel=LABELS, metavar="MASK"),
]
Bags = Annotated[
    str | None,
    typer.Option(
        help="Instead of superpixels: an image that numbers the bag of each pixel.",
        rich_help_panel=LABELS,
        metavar="IMAGE",
    ),
]
Ignore = Annotated[
    str | None,
    typer.Option(
        help="Mask, above 0 where nobody knows: bags that meet it and are not positive are left out.",
        rich_help_panel=LABELS,
        metavar="MASK",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="Count only this value of the mask, or this text in the column label of the CSV, as target.",
        rich_help_panel=LABELS,
        metavar="VALUE",
    ),
]
Superpixels = Annotated[
    int, typer.Option(min=1, help="About how many bags to cut a scene into.", rich_help_panel=LABELS, metavar="N")
]
MinOverlap = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="The least share of a bag that has to be target; 0: one pixel is enough.",
        rich_help_panel=LABELS,
        metavar="SHARE",
    ),
]


def listed(text: str | None) -> list[str] | None:
    """Split what is separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def _check_recipes(text: str | None) -> str | None:
    for name in listed(text) or []:
        if name not in RECIPES:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(RECIPES)}.")
    return text


Names = Annotated[
    str | None,
    typer.Option(help="Names of the sources, in the order given, separated by commas.", metavar="A,B,C"),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        help=f"How an image becomes a source in [-1, 1], one for all or one each: {', '.join(RECIPES)}. By default "
        "to_bipolar for whole numbers, over the range of their type, and as_is for floats.",
        metavar="A,B,C",
        callback=_check_recipes,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="What all random numbers come from.", metavar="N")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of threads; all cores by default.", metavar="N")]


def labelling(parameters: dict[str, Any]) -> "Labelling":
    """Gather the options above from ``ctx.params``."""
    from bimichi.cli.labels import Labelling

    if (parameters["boxes"] is None) == (parameters["labels"] is None):
        raise typer.BadParameter("give one of the two", param_hint="'--boxes' / '--labels'")
    return Labelling(**{name: parameters[name] for name in Labelling.__dataclass_fields__})
