"""`bimichi train`: learn a model from images and labels of regions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

import bimichi
from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import MAX_ADDITIVE_SOURCES, MAX_SOURCES, find_sets
from bimichi.cli.outputs import keep_inputs, output_file
from bimichi.cli.runs import Run, run_path
from bimichi.errors import InvalidInputError

if TYPE_CHECKING:
    from bimichi.cli.labels import SceneReader

__all__ = ["train"]


def train(
    ctx: typer.Context,
    sources: options.Sources,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the model.", metavar="MODEL", show_default=False)
    ],
    boxes: options.Boxes = None,
    labels: options.Labels = None,
    bags: options.Bags = None,
    superpixels: options.Superpixels = 300,
    min_overlap: options.MinOverlap = 0.0,
    ignore: options.Ignore = None,
    target: options.Target = None,
    objective: Annotated[
        Literal["bipolar", "magnitude", "mean"],
        typer.Option(help="What to minimise: the paper's objective 1 or 2, or the mean over all instances."),
    ] = "bipolar",
    solver: Annotated[
        Literal["convex", "evolutionary"], typer.Option(help="How; evolutionary is the paper's search.")
    ] = "convex",
    polarity: Annotated[
        Literal["given", "learn"], typer.Option(help="Whether to learn which sources to turn over.")
    ] = "given",
    additivity: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2,
            help="1 learns weights of sources alone, 2 those of pairs, too: for few scenes, or many sources; with the "
            "objectives magnitude and mean.",
            metavar="1|2",
        ),
    ] = None,
    names: options.Names = None,
    recipe: options.Recipe = None,
    scale: Annotated[
        Literal["minmax", "maxabs"] | None,
        typer.Option(help="Learn a map of each source to [-1, 1], for floats beyond; it is kept in the model."),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from co-registered images and labels of regions.

    One scene, a file a source, and boxes around targets:

    ```
    bimichi train thermal.png grey.png --boxes boxes.csv -o model.json
    ```

    Many scenes: a folder a source, files of one name belong together; or quoted patterns:

    ```
    bimichi train ir/ vi/ --recipe to_bipolar --labels masks/ -o model.json
    bimichi train '*_ir.png' '*_vi.png' --boxes boxes.csv -o model.json
    ```

    Bands of one file, turned over where that helps:

    ```
    bimichi train bands.tif --labels mask.png --polarity learn -o model.json
    ```
    """
    from bimichi.cli.labels import SceneReader
    from bimichi.learning.objectives import get_objective

    get_objective(objective, additivity=additivity)  # before anything is read
    say, labelling = Output(quiet, json), options.labelling(ctx.params)
    image_sets = find_sets(sources, MAX_SOURCES if additivity is None else MAX_ADDITIVE_SOURCES)
    inputs = [*image_sets.files, *labelling.files(image_sets)]
    keep_inputs([output_file(output)], inputs)
    with Run("train", ctx.params, inputs, seed) as run:
        with run.timed("read"):  # many scenes are read while learning
            reader = SceneReader(
                image_sets, labelling, options.listed(names), options.listed(recipe), scaled=scale is not None
            )
            data = reader.scenes if image_sets.many else list(reader.scenes)
        model = bimichi.BiMIChI(
            objective,
            solver,
            polarity,
            scale,
            source_names=reader.source_names,
            n_jobs=jobs,
            random_state=seed,
            verbose=say.verbose,
            additivity=additivity,
        )
        with run.timed("train"):
            _learn(model, data, reader, say)
        replace(model.rule_, recipes=tuple(reader.recipes)).save(output)
        record = run.write(run_path(output), [output])
    counts = {kind: sum(getattr(one, kind) for one in reader.counts.values()) for kind in ("positive", "negative")}
    found = {
        "model": output,
        "run": record,
        "sources": dict(zip(reader.source_names, reader.recipes, strict=True)),
        "scenes": len(reader.scenes),
        "bags": counts,
        "objective": objective,
        "objective_value": model.objective_value_,
        "status": model.solution_.status,
        "polarity": dict(zip(reader.source_names, model.polarity_.astype(int), strict=True)),
        "seconds": run.seconds,
    }
    say.result(found, _sentence(found, reader.source_names))


def _learn(model: "bimichi.BiMIChI", scenes: "Sequence[bimichi.Scene]", reader: "SceneReader", say: Output) -> None:
    """Fit to one scene, or to many that are read meanwhile."""
    say.note(f"Learning from {len(scenes)} scene{'s' * (len(scenes) > 1)} of {', '.join(reader.source_names)}.")
    try:
        model.fit(scenes[0].bags() if len(scenes) == 1 else scenes)
    except InvalidInputError:
        if len(reader.counts) == len(scenes):
            reader.check_both()  # which says more about bags of one class
        raise


def _sentence(found: dict[str, Any], names: Sequence[str]) -> str:
    turned = [name for name in names if found["polarity"][name] < 0]
    return escape(
        f"J = {found['objective_value']:.4f} ({found['objective']}, {found['status']}) after "
        f"{found['seconds']['train']:.1f} s; "
        f"{'turned over: ' + ', '.join(turned) if turned else 'no source is turned over'}.\n"
        f"Wrote {found['model']}, and {found['run']} to repeat it. See it with: bimichi show {found['model']}"
    )
