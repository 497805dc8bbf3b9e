"""Scenes of the experiments: from a public data set that the user has, or drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bimichi.cli.options import flag, value

if TYPE_CHECKING:
    from bimichi.datasets import Scenes


PANEL = "Where scenes come from"


def _folder(what: str) -> Any:
    return value(f"Folder of a data set: {what}", "DIR", rich_help_panel=PANEL)


@dataclass(frozen=True)
class DataOptions:
    """Where scenes come from."""

    kaist: Annotated[
        Path | None, _folder("The KAIST Multispectral Pedestrian Benchmark, with `images` and `annotations`.")
    ] = None
    msrs: Annotated[Path | None, _folder("MSRS, with `vi`, `ir` and `label`, or `train` and `test`.")] = None
    street: Annotated[bool, flag("--street", "Streets drawn by bimichi.", rich_help_panel=PANEL)] = False

    @property
    def root(self) -> Path | None:
        """The folder of the data set, if there is one."""
        return self.kaist or self.msrs

    def __bool__(self) -> bool:
        return self.root is not None or self.street

    def scenes(
        self,
        streets: Sequence[int],
        n_sources: Literal[3, 6] = 3,
        names: Sequence[str] | None = None,
        preset: str = "default",
    ) -> "Scenes":
        """List the scenes of the data set, or streets of these numbers. Without `names`, day scenes are left out."""
        from bimichi import datasets
        from bimichi.experiments import street_scenes

        if (self.kaist is not None) + (self.msrs is not None) + self.street != 1:
            raise typer.BadParameter("give exactly one", param_hint="'--kaist' / '--msrs' / '--street'")
        night = True if names is None else None
        if self.kaist is not None:
            return datasets.kaist(self.kaist, names, night=night, n_sources=n_sources, preset=preset)
        if self.msrs is not None:
            return datasets.msrs(self.msrs, names, night=night, n_sources=n_sources, preset=preset)
        return street_scenes(streets, n_sources, preset=preset)


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
