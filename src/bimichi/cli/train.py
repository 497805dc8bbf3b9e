"""`bimichi train`: learn a model from images and labels of regions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

import bimichi
from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, LabelOptions, Seed, SourceOptions, Sources, output_option
from bimichi.cli.outputs import keep_inputs, output_file
from bimichi.cli.runs import Run, run_path
from bimichi.errors import InvalidInputError
from bimichi.imaging.collecting import MAX_ADDITIVE_SOURCES, MAX_SOURCES
from bimichi.imaging.finding import SUFFIXES

if TYPE_CHECKING:
    from bimichi.imaging.labelling import SceneReader


def _objectives() -> list[str]:
    """For completion; imported when asked for, since it is slow."""
    from bimichi.learning.objectives import OBJECTIVES

    return list(OBJECTIVES)


def _solvers() -> list[str]:
    from bimichi.learning.solvers import SOLVERS

    return list(SOLVERS)


def train(
    ctx: typer.Context,
    *,
    sources: Sources,
    output: Annotated[Path, output_option("The model file.", metavar="MODEL")],
    labelled: LabelOptions,
    objective: Annotated[
        str,
        typer.Option(
            autocompletion=_objectives,
            help="What to minimise: bipolar or magnitude (objectives 1 and 2 of the paper), mean (over all instances), "
            "or another that is registered.",
            metavar="NAME",
        ),
    ] = "bipolar",
    solver: Annotated[
        str,
        typer.Option(
            autocompletion=_solvers,
            help="How to minimise it: convex; evolutionary, the search of the paper; or another that is registered.",
            metavar="NAME",
        ),
    ] = "convex",
    polarity: Annotated[
        Literal["given", "learn"], typer.Option(help="Whether to learn which sources to invert.")
    ] = "given",
    additivity: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2,
            help="1 learns weights of single sources, 2 also of pairs: for few scenes or many sources, with the "
            "objectives magnitude and mean.",
            metavar="1|2",
        ),
    ] = None,
    made: SourceOptions,
    scale: Annotated[
        Literal["minmax", "maxabs"] | None,
        typer.Option(help="Learn a map of each source to [-1, 1], for floats outside it; the model keeps it."),
    ] = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify", help="Prove how far J is above the least possible, at most 0.1 % if it can be shown in time."
        ),
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Learn a model from co-registered images and labels of regions.

    One scene with one file per source, and boxes around the targets:

    ```
    bimichi train thermal.png grey.png --boxes boxes.csv -o model.json
    ```

    Many scenes with one folder per source, whose files are paired by name; or with quoted patterns:

    ```
    bimichi train ir/ vi/ --recipe to_bipolar --labels masks/ -o model.json
    bimichi train '*_ir.png' '*_vi.png' --boxes boxes.csv -o model.json
    ```

    Bands of one file, inverted where that helps:

    ```
    bimichi train bands.tif --labels mask.png --polarity learn -o model.json
    ```
    """
    from bimichi.imaging.labelling import SceneReader
    from bimichi.learning.fit import check_training
    from bimichi.learning.objectives import get_objective
    from bimichi.learning.solvers import get_solver

    how = _certifying(solver) if certify else solver
    check_training(get_objective(objective, additivity=additivity), get_solver(how), polarity)  # before reading
    labelling = labelled.labelling()
    scenes = made.open(sources, MAX_SOURCES if additivity is None else MAX_ADDITIVE_SOURCES)
    inputs = [*scenes.files, *labelling.files(scenes)]
    keep_inputs([output_file(output), run_path(output)], inputs)
    if output.suffix.lower() in SUFFIXES and output.suffix.lower() != ".npz":
        raise InvalidInputError(f"The output of train is a model, not an image: name it .json or .npz, got {output}.")
    with Run("train", ctx.params, inputs, seed) as run:
        with run.timed("read"):  # many scenes are read while learning
            reader = SceneReader(scenes, labelling, recipes=made.recipes, scaled=scale is not None)
            say.notes(reader.notes)
            data = reader.scenes if scenes.many else list(reader.scenes)
        model = bimichi.BiMIChI(
            objective,
            how,
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
        reader.warn_of_inputs()
        replace(model.rule_, recipes=tuple(reader.recipes), inputs=reader.inputs).save(output)
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
        "proof": model.rule_.training.proof if model.rule_.training else "",
        "polarity": dict(zip(reader.source_names, model.polarity_.astype(int), strict=True)),
        "seconds": run.seconds,
    }
    say.result(found, _sentence(found, reader.source_names))


def _certifying(solver: str) -> Any:
    if solver != "convex":
        raise typer.BadParameter(f"only the convex solver can certify, not {solver!r}", param_hint="'--certify'")
    return bimichi.ConvexSolver(certify=True)


def _learn(model: "bimichi.BiMIChI", scenes: "Sequence[bimichi.Scene]", reader: "SceneReader", say: Output) -> None:
    """Fit to one scene, or to many that are read one after another."""
    say.note(f"Learning from {len(scenes)} scene{'s' * (len(scenes) > 1)} of {', '.join(reader.source_names)}.")
    try:
        model.fit(scenes[0].bags() if len(scenes) == 1 else scenes)
    except InvalidInputError:
        if len(reader.counts) == len(scenes):
            reader.check_both()  # whose message says more if all bags are of one class
        raise


def _sentence(found: dict[str, Any], names: Sequence[str]) -> str:
    inverted = [name for name in names if found["polarity"][name] < 0]
    return escape(
        f"J = {found['objective_value']:.4f} ({found['objective']}, {found['status']}) after "
        f"{found['seconds']['train']:.1f} s; "
        f"{'inverted: ' + ', '.join(inverted) if inverted else 'no source is inverted'}.\n"
        f"{found['proof'] + chr(10) if found['proof'] else ''}"
        f"Wrote {found['model']}, and {found['run']} to repeat it. Show it with: bimichi show {found['model']}"
    )
