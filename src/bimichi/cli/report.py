"""`bimichi report`: a page that shows a fused scene and explains every pixel."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bimichi
import bimichi.cli.options as opt
from bimichi.cli.console import Output, Run, failures, keep_inputs, output_files, run_path
from bimichi.errors import AnnotationWarning, warn
from bimichi.io.dataset import SceneCollection

if TYPE_CHECKING:
    from bimichi.report import IndexEntry

INDEX = "index.html"
WHICH = "Check that it is the mask of this scene, above 0 for targets, and --target."


def report(
    ctx: typer.Context,
    *,
    model: opt.Model,
    sources: opt.Sources,
    output: Annotated[Path, opt.output_option("The page: .html; a folder for many scenes.")],
    truth: Annotated[str | None, opt.value("Mask of targets, above 0, to score against.", "MASK")] = None,
    boxes: Annotated[
        Path | None, opt.value("Boxes to draw: an annotation file or folder, as in `bimichi train`.", "FILE")
    ] = None,
    target: Annotated[
        str | None, opt.value("Count only this class as target: a value of the mask, a label of boxes.", "VALUE")
    ] = None,
    compare: Annotated[
        list[Path] | None,
        opt.value("Another model of the same sources to compare with; may be repeated. Needs --truth."),
    ] = None,
    title: Annotated[str | None, opt.value("Heading of the page.")] = None,
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
    from bimichi.io.annotations.match import SceneTargets, target_files

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
        targets = SceneTargets(boxes, scenes, target) if boxes else None
        drawn = {name: targets.of(name).boxes_of(target) for name in scenes.names} if targets else {}
        say.notes(targets.notes if targets else ())

        from bimichi.report import write_index  # after the sources: if they are wrong, that is said without delay
        from bimichi.report.scenes import SceneReports

        rules = {file: bimichi.FusionRule.load(file) for file in files}
        if trust_recipes:
            opt.load_recipes([recipe for rule in rules.values() for recipe in rule.recipes or ()])
        reports = SceneReports(rules, scenes, masks, target, drawn, title, jobs)
        entries = []
        for scene in scenes.scenes:
            with run.timed("explain and write"):
                entries.append((reports.attempt if scenes.many else reports.write)(scene, pages[scene.name]))
            say.note(_outcome_line(entries[-1]))
            if entries[-1].note and truth and not scenes.many:
                warn(
                    f"{truth} gives no scores: {entries[-1].note} {WHICH}",
                    code="scores-missing",
                    kind=AnnotationWarning,
                    stacklevel=2,
                )
        if index:
            write_index(index, entries, title or f"Reports of {len(entries):,} scenes")
            say.note(f"Wrote {index}.")
        outputs = [*(entry.page for entry in entries if entry.page), *([index] if index else [])]
        record = run.write(run_path(output), outputs)
    failed = {entry.name: entry.note for entry in entries if entry.page is None}
    reported = [_entry_data(entry) for entry in entries if entry.page]
    result = {"model": model, "reports": [entry["file"] for entry in reported], "scenes": reported, "failed": failed}
    say.result(result | {"index": index, "run": record, "seconds": run.seconds})
    if failed:
        raise failures(f"{len(reported):,} reported, {len(failed):,} failed", failed)


def _pages(output: Path, scenes: SceneCollection) -> list[Path]:
    """Return one page per scene; one that is called index must not replace the index."""
    pages = output_files(output, scenes.names, scenes.many, (".html", ".htm"))
    taken = {path.name.lower() for path in pages}
    if not scenes.many or INDEX not in taken:
        return pages
    free = next(name for k in count(1) if (name := f"index-{k}.html") not in taken)
    return [path.with_name(free) if path.name.lower() == INDEX else path for path in pages]


def _outcome_line(entry: "IndexEntry") -> str:
    if entry.page is None:
        return f"Scene {entry.name!r} failed: {entry.note}"
    note = f" Without scores: {entry.note}" if entry.note else ""
    return f"Wrote {entry.page} ({entry.page.stat().st_size / 1e6:.1f} MB).{note}"


def _entry_data(entry: "IndexEntry") -> dict[str, Any]:
    scores = {} if entry.scores is None else {"auc": entry.scores.auc, "ap": entry.scores.average_precision}
    return {"scene": entry.name, "file": entry.page} | scores
