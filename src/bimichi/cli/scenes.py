"""Scenes of the experiments: from a public data set that the user has, or drawn."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from bimichi.datasets import Scenes

__all__ = ["Kaist", "Msrs", "Street", "find_scenes", "input_files"]

DATA = "Where scenes come from"

Kaist = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the KAIST Multispectral Pedestrian Benchmark, which holds `images` and `annotations`.",
        metavar="DIR",
        rich_help_panel=DATA,
    ),
]
Msrs = Annotated[
    Path | None,
    typer.Option(
        help="Folder of MSRS, which holds `vi`, `ir` and `label`, or `train` and `test`.",
        metavar="DIR",
        rich_help_panel=DATA,
    ),
]
Street = Annotated[bool, typer.Option("--street", help="Streets drawn by bimichi.", rich_help_panel=DATA)]


def find_scenes(
    kaist: Path | None,
    msrs: Path | None,
    streets: Sequence[int],
    n_sources: Literal[3, 6] = 3,
    names: Sequence[str] | None = None,
) -> "Scenes":
    """List scenes of a data set in a folder, or streets of these numbers; exactly one of the three must be given.

    Without `names`, day scenes are left out.
    """
    from bimichi import datasets
    from bimichi.experiments import street_scenes

    if (kaist is not None) + (msrs is not None) + bool(streets) != 1:
        raise typer.BadParameter("give exactly one", param_hint="'--kaist' / '--msrs' / '--street'")
    night = True if names is None else None
    if kaist is not None:
        return datasets.kaist(kaist, names, night=night, n_sources=n_sources)
    if msrs is not None:
        return datasets.msrs(msrs, names, night=night, n_sources=n_sources)
    return street_scenes(streets, n_sources)


def input_files(root: Path | None, names: Iterable[str]) -> list[Path]:
    """Return the files of some scenes in the folder of a data set, found by the name of the scene and its folders."""
    if root is None:
        return []
    folders: dict[str, list[set[str]]] = {}
    for name in names:
        *parents, stem = name.split("/")
        folders.setdefault(stem, []).append(set(parents))
    return sorted(
        path
        for path in root.rglob("*.*")
        if any(parents <= set(path.relative_to(root).parts) for parents in folders.get(path.stem, ()))
    )
