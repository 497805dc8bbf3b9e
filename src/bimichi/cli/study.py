"""`bimichi study`: learn from some scenes, score on others."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from bimichi._files import plain
from bimichi.cli.console import Output, Run, output_folder, rich_table
from bimichi.cli.options import LABELS, Jobs, LabelOptions, Seed, SourceOptions, flag, output_option, value

if TYPE_CHECKING:
    from bimichi.evaluate.study import StudyResult
    from bimichi.scenes.dataset import Dataset


PANEL = "Where scenes come from"


@dataclass(frozen=True)
class DataOptions:
    """The options for the origin of scenes."""

    kaist: Annotated[
        Path | None,
        value(
            "Folder of a data set: The KAIST Multispectral Pedestrian Benchmark, with `images` and `annotations`.",
            "DIR",
            rich_help_panel=PANEL,
        ),
    ] = None
    msrs: Annotated[
        Path | None,
        value(
            "Folder of a data set: MSRS, with `vi`, `ir` and `label`, or `train` and `test`.",
            "DIR",
            rich_help_panel=PANEL,
        ),
    ] = None
    street: Annotated[bool, flag("--street", "Streets drawn by bimichi.", rich_help_panel=PANEL)] = False

    @property
    def root(self) -> Path | None:
        """The folder of the data set, if there is any."""
        return self.kaist or self.msrs

    def __bool__(self) -> bool:
        return self.root is not None or self.street

    def scenes(
        self,
        streets: Sequence[int],
        n_sources: Literal[3, 6] = 3,
        names: Sequence[str] | None = None,
        preset: str = "default",
    ) -> "Dataset":
        """List the scenes of the data set, or streets of these numbers. Without `names`, day scenes are left out."""
        from bimichi import datasets
        from bimichi.evaluate.study import street_scenes

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


FilesOf = Callable[[Sequence[str]], list[Path]]

OWN = ("truth", "boxes", "labels", "bags", "ignore", "target", "names", "recipe")
"""Options for the user's own scenes only."""

MAKING = ("images", "kaist", "msrs", "street", "sources", "superpixels", "min_overlap", *OWN)
"""Options that determine how scenes are made."""


def study(
    ctx: typer.Context,
    *,
    images: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCES",
            show_default=False,
            help="Your own scenes: one folder or quoted pattern per source, as in train; --truth to score against.",
        ),
    ] = None,
    output: Annotated[Path, output_option("Folder for all results.")],
    data: DataOptions,
    train: Annotated[int, value("How many scenes to learn from.", "N", min=1)] = 16,
    test: Annotated[int, value("How many scenes to score on.", "M", min=1)] = 8,
    sources: Annotated[Literal["3", "6"], value("The paper's three sources, or six; not for your own scenes.")] = "6",
    rows: Annotated[Literal["all", "bi-michi"], value("All methods, or Bi-MIChI alone.")] = "all",
    truth: Annotated[
        str | None, value("Masks of targets, above 0, to score against.", "MASK", rich_help_panel=LABELS)
    ] = None,
    labelled: LabelOptions,
    source_options: SourceOptions,
    repeats: Annotated[int, value("How many draws of scenes to run, with the seeds N, N+1, ...", "K", min=1)] = 1,
    resume: Annotated[bool, flag("--resume", "Continue the study in the folder.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Learn from some scenes, and score on others: single sources, boosting, least squares, and Bi-MIChI.

    Scenes are drawn at random by the seed. Those without targets are never scored on, as they have no AUC. Results are
    written after each method, so that a stopped study can be continued with --resume. With --repeats, each draw has a
    folder of its own, and a table over all draws gives means with their standard errors.

    ```
    bimichi study --msrs ~/MSRS --train 16 --test 8 --seed 0 -o results
    bimichi study --street --train 4 --test 2 --sources 3 --rows bi-michi -o streets
    ```

    Your own scenes: one folder per source, whose files are paired by name:

    ```
    bimichi study ir/ vi/ --recipe to_bipolar --boxes boxes.csv --truth masks/ --train 40 --test 20 -o results
    ```
    """
    from bimichi.evaluate.study import RepeatedStudy

    def draw(at: int) -> "StudyResult":
        where = output if repeats == 1 else output / f"draw-{at}"
        return _run_draw(ctx.params | {"seed": at}, where, data, labelled, source_options, ctx, say)

    draws = RepeatedStudy([draw(at) for at in range(seed, seed + repeats)])
    if repeats > 1:
        written = draws.write(output_folder(output))
        say.result(draws.to_dict() | {"files": written}, rich_table(draws.table()), *map(escape, map(str, written)))


def _run_draw(
    options: dict[str, Any],
    output: Path,
    data: DataOptions,
    labelled: LabelOptions,
    source_options: SourceOptions,
    ctx: typer.Context,
    say: Output,
) -> "StudyResult":
    """Run the study of one draw, write it, and, if it is the only one, print it."""
    from bimichi.evaluate.study import check_folder, names_of, run_study, split_scenes

    seed, resume = options["seed"], options["resume"]
    if options["images"]:
        scenes, files_of = _own_scenes(options, data, labelled, source_options, say)
    else:
        scenes, files_of = _data_set_scenes(options, data)
    folder = output_folder(output)
    check_folder(folder, resume)
    learned, scored = split_scenes(scenes, options["train"], options["test"], seed, say.note)
    inputs = files_of([*names_of(learned), *names_of(scored)])
    with Run("study", ctx.params, inputs, seed) as run:
        result = run_study(
            learned,
            scored,
            seed=seed,
            rows=options["rows"],
            folder=folder,
            resume=resume,
            made_by=plain({name: options[name] for name in MAKING if options[name]}),
            n_jobs=options["jobs"],
            progress=say.note,
        )
        written = result.write(folder)
        run.write(folder / "run.json", written)
    if options["repeats"] == 1:
        shown = [escape(text) for text in (result.verdict(), *map(str, written))]
        say.result(result.to_dict() | {"files": written}, rich_table(result.table()), *shown)
    return result


def _data_set_scenes(options: dict[str, Any], data: DataOptions) -> "tuple[Dataset, FilesOf]":
    """Return scenes of a data set, or drawn ones, and a function that returns the files of some of them."""
    only_own = [f"--{name.replace('_', '-')}" for name in OWN if options[name] is not None]
    if only_own:
        raise typer.BadParameter("only for your own scenes; give them as SOURCES", param_hint=f"'{only_own[0]}'")
    n = options["train"] + options["test"]
    streets = range(options["seed"] * n, (options["seed"] + 1) * n)
    scenes = data.scenes(streets, 3 if options["sources"] == "3" else 6)
    return scenes, lambda names: input_files(data.root, names)


def _own_scenes(
    options: dict[str, Any], data: DataOptions, labelled: LabelOptions, source_options: SourceOptions, say: Output
) -> "tuple[Dataset, FilesOf]":
    """Return the same of the user's own files."""
    from bimichi.io.labelled import LabelledDataset, label_files

    if data:
        raise typer.BadParameter("give SOURCES or one of these", param_hint="'--kaist' / '--msrs' / '--street'")
    truth, labelling, collection = options["truth"], labelled.labelling(), source_options.open(options["images"])
    if truth is None:
        raise typer.BadParameter("needed with SOURCES, to score against", param_hint="'--truth'")
    reader = LabelledDataset(collection, labelling, recipes=source_options.recipes, truth=truth)
    say.notes(reader.notes)

    def files_of(names: Sequence[str]) -> list[Path]:
        some = collection.only(set(names))
        return [*some.files, *label_files(labelling, some), *some.companions(truth, "truth").values()]

    return reader, files_of
