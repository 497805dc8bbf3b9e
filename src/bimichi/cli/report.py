"""`bimichi report`: a page that shows what a model fused, and explains every pixel."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import ImageSets, find_sets
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path

if TYPE_CHECKING:
    from bimichi import Comparison, FusionRule, Scene

__all__ = ["report"]

PAGES = (".html", ".htm")


def report(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="What `bimichi train` wrote.")],
    sources: options.Sources,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the page: .html; a folder if sources are folders or patterns.",
            show_default=False,
        ),
    ],
    truth: Annotated[
        str | None, typer.Option(help="Mask of targets, above 0, to score against.", metavar="MASK")
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="Boxes to draw: CSV with the columns x, y, w, h, and image if there are many scenes.", metavar="CSV"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Count only this value of the mask, and this text in the column label of the CSV.", metavar="VALUE"
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another model of the same sources, to score beside; may be repeated. Needs --truth."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    names: options.Names = None,
    jobs: options.Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a page that shows what a model fused, says how it decides, and explains every pixel.

    It is one file that needs no network; open it in a browser.

    ```
    bimichi report model.json thermal.png grey.png -o report.html
    bimichi report model.json thermal.png grey.png --truth mask.png --boxes boxes.csv -o report.html
    bimichi report mean.json ir.png vi.png --truth mask.png --compare bipolar.json -o report.html
    ```
    """
    from bimichi.cli import labels
    from bimichi.report import write_report
    from bimichi.rule import FusionRule

    say, image_sets, called = Output(quiet, json), find_sets(sources), options.listed(names)
    files = list(dict.fromkeys([model, *(compare or [])]))
    if len(files) > 1 and truth is None:
        raise typer.BadParameter("needs --truth, to score against", param_hint="'--compare'")
    masks = image_sets.companions(truth, "--truth") if truth else []
    inputs = [*files, *image_sets.files, *masks, *([boxes] if boxes else [])]
    outputs = output_files(output, image_sets.scenes, image_sets.many, PAGES)
    keep_inputs(outputs, inputs)
    models = {file: FusionRule.load(file) for file in files}
    with Run("report", ctx.params, inputs) as run:
        drawn = labels.boxes_by_scene(boxes, target, image_sets.sets) if boxes else {}
        for one, path in zip(image_sets.sets, outputs, strict=True):
            alone = replace(image_sets, sets=[one])
            with run.timed("read"):
                scenes = {file: _scene(models[file], alone, called, truth, target) for file in files}
            with run.timed("explain and write"):
                write_report(
                    path,
                    models[model],
                    scenes[model],
                    boxes=drawn.get(one.name),
                    comparison=_compared(models, scenes) if len(files) > 1 else None,
                    title=title or (one.name if image_sets.many else "Fusion report"),
                    notes={"Model file": _short(model), "Image files": ", ".join(map(_short, one.files))},
                    n_jobs=jobs,
                )
            say.note(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")
        record = run.write(run_path(output), outputs)
    say.result({"model": model, "reports": outputs, "run": record, "seconds": run.seconds})


def _short(path: Path) -> str:
    """Name a file with its folder, and no more of where it is kept."""
    return "/".join(path.parts[-2:])


def _scene(
    found: "FusionRule", image_sets: ImageSets, names: Sequence[str] | None, truth: str | None, target: str | None
) -> "Scene":
    """Read the sources of one scene as this model takes them, and its truth."""
    import numpy as np

    from bimichi import Scene
    from bimichi.cli.fusing import matched
    from bimichi.cli.labels import with_truth
    from bimichi.cli.sources import choose_recipes, make_source, read_images

    images = matched(found, read_images(image_sets.sets[0]), image_sets, names)
    recipes = found.recipes or choose_recipes(None, images, found.source_names)
    planes = [make_source(image, recipe) for image, recipe in zip(images, recipes, strict=True)]
    scene = Scene(np.stack(planes, axis=-1), image_sets.sets[0].name, found.source_names)
    return with_truth(scene, image_sets.companions(truth, "--truth")[0], target) if truth else scene


def _compared(rules: "dict[Path, FusionRule]", scenes: "dict[Path, Scene]") -> "Comparison":
    """Score models, each on the scene as it takes it."""
    import numpy as np

    from bimichi import Comparison, estimators
    from bimichi.evaluation.comparison import Result
    from bimichi.evaluation.metrics import scores

    results = []
    for file, rule in rules.items():
        model = getattr(estimators, rule.training.method if rule.training else "").load(file)
        start = time.perf_counter()
        fused = model.fuse(scenes[file].sources)
        taken = time.perf_counter() - start
        truth = np.asarray(scenes[file].truth)  # which --compare asks for
        found = scores(truth, fused, model.output_range, np.isnan(fused))
        results.append(Result(_short(file), model, [found], fuse_seconds=taken))
    return Comparison(results)
