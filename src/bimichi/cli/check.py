"""`bimichi check`: what there is to know about a dataset before learning from it."""

import inspect
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from bimichi.cli.console import Output, failures, say as say_error, text_table
from bimichi.cli.options import LabelOptions, SourceOptions, Sources, value
from bimichi.cli.train import AUTO, train
from bimichi.errors import InvalidInputError, with_code
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, MAX_SOURCES

if TYPE_CHECKING:
    from bimichi.io.check import DatasetCheck, DatasetChecker, SceneViewer

PLANNED = ("objective", "solver", "polarity", "scale", "additivity")
MOST_PAIRS, MOST_SCENES = 10, 60  # shown in tables; --json lists all


def check(
    ctx: typer.Context,
    *,
    sources: Sources,
    labelled: LabelOptions,
    made: SourceOptions,
    scale: Annotated[str | None, value("The --scale that training will use, if any.", "minmax|maxabs")] = None,
    say: Output,
) -> None:
    """Look at a dataset before learning: ranges, missing pixels, copies, labels, alignment, and what train would do.

    Takes the options of `bimichi train` that make bags; without labels, only the sources are checked:

    ```
    bimichi check ir/ vi/ --boxes boxes.csv
    bimichi check --project bimichi.toml
    ```

    AUC is that of a source alone, after its recipe, in the innermost part of targets against non-target pixels: 0.5
    means that it does not separate them; below 0.5, it is lower on targets. Exit code 1 means that some scene cannot
    be used.
    """
    from bimichi.io.check import DatasetChecker, SceneViewer

    given = labelled.boxes is not None or labelled.labels is not None
    scenes = made.open(sources, MAX_ADDITIVE_SOURCES)
    plan = _options_of_train(ctx, scale)
    viewer = SceneViewer(scenes, labelled.labelling() if given else None, made.recipes, plan["scale"] is not None)
    say.notes(viewer.notes)
    checker, bags, problems = DatasetChecker(viewer.source_names, len(viewer.names)), {}, {}
    with catch_warnings(record=True) as doubts:  # of annotations; they are listed with the others
        simplefilter("always")
        for name in viewer.names:
            try:
                counts = _add(checker, viewer, name)
                if counts:
                    bags[name] = counts
            except InvalidInputError as error:
                problems[name] = with_code(error)
    if len(problems) == len(viewer.names):
        raise failures("", problems)
    if viewer.problem:
        problems["train"] = with_code(viewer.problem)
    found = checker.result()
    plan |= _plan(viewer, bags)
    about = found.warnings(viewer.recipes, plan["scale"] is not None, plan["polarity"] == "learn")
    warnings = [*about, *_about_plan(len(found.sources), plan), *(with_code(one.message) for one in doubts)]
    data = {**asdict(found), "bags": bags, "train": plan, "warnings": warnings, "problems": problems}
    say.result(data, *_shown(found, bags, plan))
    for warning in warnings:
        if not say.quiet:
            say_error(warning, "[yellow]Warning:[/] ")
    if problems:
        raise failures("", problems)


def _add(checker: "DatasetChecker", viewer: "SceneViewer", name: str) -> dict[str, int] | None:
    """Check one scene; return the numbers of its bags."""
    view = viewer.view(name)
    checker.add(name, view.images, view.targets, view.dtypes, view.made)
    return None if view.counts is None else view.counts._asdict()


def _options_of_train(ctx: typer.Context, scale: str | None) -> dict[str, Any]:
    """Return the options with which `bimichi train` would run: its own defaults, or those of the project file."""
    project = ctx.meta.get("bimichi.project")
    options = {} if project is None else dict(project.commands.get("train", {}))
    defaults = {name: inspect.signature(train).parameters[name].default for name in PLANNED}
    plan: dict[str, Any] = {name: options.get(name, default) for name, default in defaults.items()}
    plan["scale"] = scale or plan["scale"]
    plan["polarity"] = plan["polarity"] or ("learn" if plan["objective"] == AUTO else "given")
    return plan


def _plan(viewer: "SceneViewer", bags: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the recipes and the numbers of bags with which `bimichi train` would run."""
    recipes = dict(zip(viewer.source_names, viewer.recipes, strict=False))
    kinds = ("positive", "negative", "left_out") if bags else ()
    return {"recipes": recipes, "bags": {kind: sum(counts[kind] for counts in bags.values()) for kind in kinds}}


def _about_plan(n_sources: int, plan: dict[str, Any]) -> list[str]:
    found = []
    if n_sources > MAX_SOURCES and plan["additivity"] is None and plan["objective"] != AUTO:
        found.append(
            f"{n_sources} sources are more than the {MAX_SOURCES} that train takes. Choose bands, as in "
            '\'s2.tif[B3,B8]\' (bands = ["B3", "B8"] in a project file), or fewer terms: --additivity 2 with '
            "--objective mean or magnitude."
        )
    for kind in ("positive", "negative"):
        if plan["bags"] and not plan["bags"][kind]:
            remedy = "Use more --superpixels, or other --min-overlap or --target."
            found.append(f"No bag is {kind}, and train needs some of each. {remedy}")
    return found


def _shown(found: "DatasetCheck", bags: dict[str, dict[str, int]], plan: dict[str, Any]) -> list[Any]:
    """Return tables of sources, pairs and scenes, and a sentence about the training."""
    shown = [_sources(found), _scenes(found, bags)]
    if len(found.sources) > 1:
        shown.insert(1, _pairs(found))
    return [*shown, escape(_sentence(found, plan))]


def _sources(found: "DatasetCheck") -> RichTable:
    header = ["source", "type", "min", "1 %", "99 %", "max", "missing", "AUC"]
    rows = []
    for one in found.sources:
        values = [_text(v, ".6g") for v in (one.low, one.percentile_1, one.percentile_99, one.high)]
        rows.append([one.name, ", ".join(one.dtypes), *values, f"{one.missing:.1%}", _text(one.auc, ".3f")])
    return text_table(header, rows)


def _pairs(found: "DatasetCheck") -> RichTable:
    """Return pairs of sources, those with the largest shift first."""
    known = sorted(found.pairs, key=lambda pair: -1.0 if pair.shift is None else pair.shift.length, reverse=True)
    rows = [
        [
            f"{pair.first}, {pair.second}",
            "–" if pair.shift is None else f"{pair.shift.rows:+g} rows, {pair.shift.columns:+g} columns",
            "yes" if pair.duplicate else "no",
        ]
        for pair in known[:MOST_PAIRS]
    ]
    if len(known) > MOST_PAIRS:
        rows.append([f"and {len(known) - MOST_PAIRS} more pairs", "", ""])
    return text_table(["sources", "shift (– unknown)", "copies"], rows)


def _scenes(found: "DatasetCheck", bags: dict[str, dict[str, int]]) -> RichTable:
    rows = []
    for one in found.scenes[:MOST_SCENES]:
        counts = bags.get(one.name, {})
        numbers = [_text(counts.get(kind)) for kind in ("positive", "negative", "left_out")]
        size = f"{one.width} x {one.height}"
        rows.append([one.name, size, _text(one.targets), _text(one.covered, ".1%"), *numbers])
    if len(found.scenes) > MOST_SCENES:
        rows.append([f"and {len(found.scenes) - MOST_SCENES:,} more", *[""] * 6])
    header = ["scene", "size", "targets", "covered", "positive", "negative", "left out"]
    return text_table(header, rows)


def _sentence(found: "DatasetCheck", plan: dict[str, Any]) -> str:
    recipes = ", ".join(f"{name} by {recipe}" for name, recipe in plan["recipes"].items())
    how = f"objective {plan['objective']}, solver {plan['solver']}, polarity {plan['polarity']}"
    scale = f", scale {plan['scale']}" if plan["scale"] else ""
    if not plan["bags"]:
        return f"Without labels nothing can be learned (--boxes or --labels). Sources: {recipes or 'none yet'}."
    bags = plan["bags"]
    return (
        f"train would learn from {len(found.scenes)} scene{'s' * (len(found.scenes) > 1)} with {bags['positive']:,} "
        f"positive and {bags['negative']:,} negative bags ({bags['left_out']:,} left out): {how}{scale}; {recipes}."
    )


def _text(value: float | None, form: str = "") -> str:
    return "–" if value is None else format(value, form)
