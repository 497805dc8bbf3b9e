"""`bimichi show`, a model as tables, and `bimichi bags`, pictures of the bags that would be learned from."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table as RichTable

import bimichi
from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi._types import Ints
from bimichi.cli.console import Json, Output, Run, keep_inputs, output_files, rich_table, run_path, text_table
from bimichi.cli.options import LabelOptions, Model, SourceOptions, Sources, output_option, value
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError

LISTED = 60_000
"""Elements that --json lists at most, all of ten sources; of more, those that training used come first."""


SHOWN = (
    *("method", "objective", "objective_value", "lower_bound", "global_bound", "n_nodes", "certificate"),
    *("status", "averaged", "n_iter", "classes", "solver"),
)
"""Fields of the training record that --json prints."""


def show(
    model: Model,
    elements: Annotated[int, value("How many elements to list, for more than 3 sources.", "N", min=1)] = 20,
    json: Json = False,
) -> None:
    """Show a model: what it was trained for, its sources, and its bi-capacity.

    Elements that training instances used are bold, as in the paper's tables. The others follow from the order alone.
    Of an additive bi-capacity, the largest terms are listed. JSON holds up to 60,000 elements.

    ```
    bimichi show model.json
    bimichi show model.json --json
    ```
    """
    from bimichi.fit.choose import selection_of
    from bimichi.scenes.labels import COUNTED

    rule = bimichi.FusionRule.load(model)
    touched = rule.usage.get("touched", np.zeros(len(rule.measure.values), np.int64))[: rule.measure.n_parts]
    shown: list[Any] = [_head(rule), _sources(rule), rich_table(rule.measure.overview(touched, elements))]
    if rule.usage:
        shown.append(f"{np.count_nonzero(touched):,} of {len(touched):,} {rule.measure.parts} are used.")
    if rule.decision is not None:
        shown.append(escape(_decision(rule.decision)))
    chosen = selection_of(rule.training)
    if chosen is not None:
        shown += [
            rich_table(chosen.table()),
            COUNTED,
            *map(escape, filter(None, (chosen.sentence(), chosen.warning()))),
        ]
    Output(json=json).result(_data(rule, touched), *shown)


def _data(rule: "bimichi.FusionRule", touched: Ints) -> dict[str, Any]:
    which = np.arange(len(touched))
    if len(which) > LISTED:
        which = np.sort(np.argsort(touched == 0, kind="stable")[:LISTED])
    sets = rule.measure.all_sets(which)
    listed = [
        {"A": up, "B": down, "value": value, "used_by": count}
        for (up, down), value, count in zip(
            sets, rule.measure.values[which].tolist(), touched[which].tolist(), strict=True
        )
    ]
    record = rule.training
    found = {key: getattr(record, key, None) for key in SHOWN} | {
        "additivity": getattr(record, "parameters", {}).get("additivity"),
        "scale": rule.scale,
        "bimichi": getattr(record, "version", None),
        "selection": getattr(record, "selection", None),
        "sources": [
            {"name": name, "polarity": int(sign), "centre": centre, "factor": factor, "recipe": recipe}
            for name, sign, centre, factor, recipe in zip(
                rule.source_names, rule.polarity, rule.centre, rule.factor, _recipes(rule), strict=True
            )
        ],
        f"n_{rule.measure.parts}": len(touched),
        rule.measure.parts: listed,
    }
    return found if rule.decision is None else found | {"decision": rule.decision.pack()}


def _decision(decision: Decision) -> str:
    parts = [] if decision.threshold is None else [f"at or above {decision.threshold:.4g} ({decision.chosen})"]
    parts += [f"of at least {decision.min_size} pixels"] if decision.min_size > 1 else []
    found = f"Targets: {', '.join(parts)}." if parts else ""
    if decision.smooth is None:
        return found
    return found + " Maps are smoothed by a Gaussian of {:g} x {:g} pixels.".format(*decision.smooth)


def _head(rule: "bimichi.FusionRule") -> str:
    record, kind = rule.training, rule.measure.describe()
    if record is None:
        return escape(f"{kind} of {rule.n_sources} sources, not learned.")
    bound = "" if record.lower_bound is None else f", lower bound {_number(record.lower_bound)}"
    return escape(
        f"{record.method} ({kind}), objective {record.objective}, solver {record.solver}: J = "
        f"{_number(record.objective_value)}{bound}, {record.ending} after {record.n_iter} iterations."
        f"{' ' + record.proof if record.proof else ''}"
    )


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4e}"


def _sources(rule: "bimichi.FusionRule") -> RichTable:
    rows = [
        [name, recipe or "–", rule.scale or "none", "as it is" if sign > 0 else "inverted"]
        for name, sign, recipe in zip(rule.source_names, rule.polarity, _recipes(rule), strict=True)
    ]
    return text_table(["source", "recipe", "scale", "polarity"], rows)


def _recipes(rule: "bimichi.FusionRule") -> Sequence[str | None]:
    return [None] * rule.n_sources if rule.recipes is None else rule.recipes


if TYPE_CHECKING:
    from bimichi.io.check import SceneViewer
    from bimichi.scenes.labels import BagCounts


def bags(
    ctx: typer.Context,
    *,
    sources: Sources,
    output: Annotated[Path, output_option("The picture: .png, .svg or .pdf; a folder for many scenes.")],
    labelled: LabelOptions,
    made: SourceOptions,
    say: Output,
) -> None:
    """Draw targets and bags over a photograph before training.

    Targets are yellow; bags are outlined in green (positive), orange (negative) or blue (left out). Takes the
    options of `bimichi train` that make bags:

    ```
    bimichi bags thermal.png grey.png --boxes boxes.csv -o bags.png
    ```
    """
    from bimichi.io.check import SceneViewer
    from bimichi.io.labelled import label_files

    labelling, scenes = labelled.labelling(), made.open(sources)
    inputs = [*scenes.files, *label_files(labelling, scenes)]
    files = output_files(output, scenes.names, scenes.many, (".png", ".svg", ".pdf"))
    keep_inputs([*files, run_path(output)], inputs)
    with Run("bags", ctx.params, inputs) as run:
        viewer = SceneViewer(scenes, labelling, made.recipes)
        say.notes(viewer.notes)
        if viewer.problem:
            raise viewer.problem
        counts = [
            {"scene": name} | _draw(viewer, name, file)._asdict() | {"picture": file}
            for name, file in zip(scenes.names, files, strict=True)
        ]
        record = run.write(run_path(output), files)
    table = text_table(["scene", "positive", "negative", "left out", "picture"], (row.values() for row in counts))
    say.result({"run": record, "scenes": counts}, table)


def _draw(viewer: "SceneViewer", name: str, path: Path) -> "BagCounts":
    """Draw bags and targets over what is most like a photograph."""
    from bimichi.io.check import photograph
    from bimichi.plot import plot_bags

    images, _, targets, scene, counts, _ = viewer.view(name)
    if targets is None or scene is None or counts is None:
        raise InvalidInputError(f"Scene {name!r} has no labels.", code="scene-labels")
    height, width = scene.shape
    size = (min(max(7.0 * (width / height), 5.0), 14.0), 7.4)
    figure = import_optional("matplotlib.figure").Figure(size, dpi=150, layout="constrained")  # without a window
    image = photograph(images, viewer.source_names)
    shown: Any = {"boxes": targets.boxes, "polygons": targets.polygons, "mask": targets.mask}
    plot_bags(np.asarray(scene.segments), scene.labels or {}, image, figure.subplots(), **shown)
    atomic_write(path, lambda file: figure.savefig(file, format=path.suffix[1:].lower()))
    return counts
