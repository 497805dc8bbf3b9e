"""`bimichi report`: a page that shows a fused scene and explains every pixel."""

import warnings
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bimichi.cli.options as opt
from bimichi.cli.console import Output
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path
from bimichi.cli.scene_reports import SceneReports
from bimichi.errors import AnnotationWarning, BimichiError

if TYPE_CHECKING:
    from bimichi.imaging.collecting import SceneCollection
    from bimichi.report import IndexEntry

INDEX = "index.html"
WHICH = "Check that it is the mask of this scene, above 0 for targets, and --target."


def report(
    ctx: typer.Context,
    *,
    model: opt.Model,
    sources: opt.Sources,
    output: Annotated[Path, opt.output_option("The page: .html; a folder for many scenes.")],
    truth: Annotated[
        str | None, typer.Option(help="Mask of targets, above 0, to score against.", metavar="MASK")
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(help="Boxes to draw: an annotation file or folder, as in `bimichi train`.", metavar="FILE"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Count only this class as target: a value of the mask, a label of boxes.", metavar="VALUE"),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another model of the same sources to compare with; may be repeated. Needs --truth."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    names: opt.Names = None,
    align: opt.Align = False,
    driver: opt.Driver = None,
    trust_recipes: opt.TrustRecipes = False,
    jobs: opt.Jobs = None,
    say: Output,
) -> None:
    """Write a page that shows a fused scene, describes the model, and explains every pixel.

    It is one file that needs no network; open it in a browser.

    ```
    bimichi report model.json thermal.png grey.png -o report.html
    bimichi report model.json thermal.png grey.png --truth mask.png --boxes boxes.csv -o report.html
    bimichi report mean.json ir.png vi.png --truth mask.png --compare bipolar.json -o report.html
    ```

    Many scenes: one folder or quoted pattern per source; the output folder gets one page per scene, and index.html with
    thumbnails, scores and links. A scene that fails is listed there with the reason and does not stop the others, but
    the exit code is then 1. A scene whose truth has no targets, or that has none, gets a page without scores:

    ```
    bimichi report model.json ir/ vi/ --truth masks/ -o reports/
    ```
    """
    from bimichi.imaging.labelling import boxes_by_scene
    from bimichi.imaging.targets import target_files
    from bimichi.report import write_index
    from bimichi.rule import FusionRule

    scenes = opt.open_sources(sources, names, align, driver)
    files = list(dict.fromkeys([model, *(compare or [])]))
    if len(files) > 1 and truth is None:
        raise typer.BadParameter("needs --truth, to score against", param_hint="'--compare'")
    masks = scenes.companions(truth, "truth", partial=True) if truth else {}
    inputs = [*files, *scenes.files, *masks.values(), *(target_files(boxes, scenes) if boxes else [])]
    pages = dict(zip(scenes.names, _pages(output, scenes), strict=True))
    index = output / INDEX if scenes.many else None
    keep_inputs([*pages.values(), *([index] if index else []), run_path(output)], inputs)
    with Run("report", ctx.params, inputs) as run:
        drawn, notes = boxes_by_scene(boxes, target, scenes) if boxes else ({}, [])
        say.notes(notes)
        rules = {file: FusionRule.load(file) for file in files}
        if trust_recipes:
            opt.load_recipes([recipe for rule in rules.values() for recipe in rule.recipes or ()])
        writer = SceneReports(rules, scenes, masks, target, drawn, title, jobs)
        entries = []
        for one in scenes.scenes:
            with run.timed("explain and write"):
                entries.append(writer.attempt(one, pages[one.name]) if scenes.many else writer.write(one, output))
            say.note(_outcome(entries[-1]))
            if entries[-1].note and truth and not scenes.many:
                warnings.warn(f"{truth} gives no scores: {entries[-1].note} {WHICH}", AnnotationWarning, stacklevel=2)
        if index:
            write_index(index, entries, title or f"Reports of {len(entries):,} scenes")
            say.note(f"Wrote {index}.")
        outputs = [*(entry.page for entry in entries if entry.page), *([index] if index else [])]
        record = run.write(run_path(output), outputs)
    failed = {entry.name: entry.note for entry in entries if entry.page is None}
    found = [_described(entry) for entry in entries if entry.page]
    result = {"model": model, "reports": [one["file"] for one in found], "scenes": found, "failed": failed}
    say.result(result | {"index": index, "run": record, "seconds": run.seconds})
    if failed:
        counts = f"{len(found):,} reported, {len(failed):,} failed"
        raise BimichiError("\n".join([f"{counts}:", *(f"{name}: {problem}" for name, problem in failed.items())]))


def _pages(output: Path, scenes: "SceneCollection") -> list[Path]:
    """Return one page per scene; one that is called index must not replace the index."""
    pages = output_files(output, scenes.names, scenes.many, (".html", ".htm"))
    taken = {path.name.lower() for path in pages}
    if not scenes.many or INDEX not in taken:
        return pages
    free = next(name for k in count(1) if (name := f"index-{k}.html") not in taken)
    return [path.with_name(free) if path.name.lower() == INDEX else path for path in pages]


def _outcome(entry: "IndexEntry") -> str:
    if entry.page is None:
        return f"Scene {entry.name!r} failed: {entry.note}"
    note = f" Without scores: {entry.note}" if entry.note else ""
    return f"Wrote {entry.page} ({entry.page.stat().st_size / 1e6:.1f} MB).{note}"


def _described(entry: "IndexEntry") -> dict[str, Any]:
    scores = {} if entry.scores is None else {"auc": entry.scores.auc, "ap": entry.scores.average_precision}
    return {"scene": entry.name, "file": entry.page} | scores
