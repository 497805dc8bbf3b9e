"""`bimichi study`: learn from some scenes, score on others."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from rich.markup import escape

from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet, rich_table
from bimichi.cli.outputs import output_folder
from bimichi.cli.runs import Run
from bimichi.cli.scenes import Kaist, Msrs, Street, find_scenes, input_files

__all__ = ["study"]


class Sources(StrEnum):
    """How many sources to make of a scene."""

    three = "3"
    six = "6"


class Rows(StrEnum):
    """Which methods to run."""

    all = "all"
    bi_michi = "bi-michi"


def study(
    ctx: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for all results.", show_default=False)],
    kaist: Kaist = None,
    msrs: Msrs = None,
    street: Street = False,
    train: Annotated[int, typer.Option(min=1, help="How many scenes to learn from.", metavar="N")] = 16,
    test: Annotated[int, typer.Option(min=1, help="How many scenes to score on.", metavar="M")] = 8,
    sources: Annotated[Sources, typer.Option(help="The paper's three sources, or six.")] = Sources.six,
    rows: Annotated[Rows, typer.Option(help="All methods, or Bi-MIChI alone.")] = Rows.all,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn from some scenes, and score on others: single sources, boosting, least squares, and Bi-MIChI.

    Scenes are drawn at random by the seed. Those without people are never scored on, as they have no AUC. Results are
    written after each method, so that a stopped study can go on with --resume.

    ```
    bimichi study --msrs ~/MSRS --train 16 --test 8 --seed 0 -o results
    bimichi study --street --train 4 --test 2 --sources 3 --rows bi-michi -o streets
    ```
    """
    from bimichi.experiments import check_folder, run_study, split_scenes

    n_sources = cast(Literal[3, 6], int(sources.value))
    first = seed * (train + test)
    scenes = find_scenes(kaist, msrs, range(first, first + train + test) if street else (), n_sources)
    say, folder = Output(quiet, json), output_folder(output)
    check_folder(folder, resume)
    learned, scored = split_scenes(scenes, train, test, seed, say.note)
    inputs = input_files(kaist or msrs, (scene.name for scene in [*learned, *scored]))
    with Run("study", ctx.params, inputs, seed) as run:
        result = run_study(
            learned,
            scored,
            seed=seed,
            rows=rows.value,
            folder=folder,
            resume=resume,
            n_jobs=jobs,
            progress=say.note,
        )
        written = result.write(folder)
        run.write(folder / "run.json", written)
    shown = [escape(text) for text in (result.verdict(), *map(str, written))]
    say.result(result.to_dict() | {"files": written}, rich_table(result.table()), *shown)
