"""`bimichi report`: a page that shows what a model fused, and explains every pixel."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import ImageSet, ImageSets, find_sets
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path

if TYPE_CHECKING:
    from bimichi import Comparison, Scene

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
    title: Annotated[str | None, typer.Option(help="Heading of the page; by default, the scene's name.")] = None,
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
    from bimichi import BiMIChI
    from bimichi.report import write_report

    say, image_sets, others = Output(quiet, json), find_sets(sources), compare or []
    if others and truth is None:
        raise typer.BadParameter("needs --truth, to score against", param_hint="'--compare'")
    masks = image_sets.companions(truth, "--truth") if truth else []
    inputs = [model, *others, *image_sets.files, *masks, *([boxes] if boxes else [])]
    outputs = output_files(output, image_sets.scenes, image_sets.many, PAGES)
    keep_inputs(outputs, inputs)
    fitted = BiMIChI.load(model)
    with Run("report", ctx.params, inputs) as run:
        with run.timed("read"):
            scenes = [_scene(model, one, image_sets, options.listed(names)) for one in image_sets.sets]
            scenes = _with_known(scenes, image_sets, truth, boxes, target)
        for k, path in enumerate(outputs):
            compared = None
            if others:
                with run.timed("compare"):
                    tried = {
                        file: _scene(file, image_sets.sets[k], image_sets, options.listed(names))
                        for file in dict.fromkeys([model, *others])
                    }
                    compared = _comparison(tried, scenes[k].truth)
            with run.timed("write"):
                notes = {"Model file": _called(model), "Image files": ", ".join(map(_called, image_sets.sets[k].files))}
                write_report(path, fitted, scenes[k], comparison=compared, title=title, notes=notes, n_jobs=jobs)
            say.note(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")
        record = run.write(run_path(output), outputs)
    say.result({"model": model, "reports": outputs, "run": record, "seconds": run.seconds})


def _called(path: Path) -> str:
    """Name a file with its folder, and no more of where it is kept."""
    return "/".join(path.parts[-2:])


def _scene(model: Path, image_set: ImageSet, image_sets: ImageSets, names: Sequence[str] | None) -> "Scene":
    """Read the sources of one scene as this model takes them."""
    import numpy as np

    from bimichi import Scene
    from bimichi.cli.fusing import matched
    from bimichi.cli.model import FusionModel
    from bimichi.cli.sources import choose_recipes, make_source, read_images

    found = FusionModel.load(model)
    images = matched(found, read_images(image_set), image_sets, names)
    recipes = found.recipes or choose_recipes(None, images, found.source_names)
    planes = [make_source(image, recipe) for image, recipe in zip(images, recipes, strict=True)]
    return Scene(np.stack(planes, axis=-1), image_set.name, found.source_names)


def _with_known(
    scenes: "list[Scene]", image_sets: ImageSets, truth: str | None, boxes: Path | None, target: str | None
) -> "list[Scene]":
    """Add truth and boxes to the scenes."""
    from dataclasses import replace

    from bimichi.cli import labels

    if truth is not None:
        scenes = labels.with_truth(scenes, image_sets, truth, target)
    if boxes is not None:
        found = labels._boxes(boxes, target, image_sets.sets)
        scenes = [replace(scene, boxes=part) for scene, part in zip(scenes, found, strict=True)]
    return scenes


def _comparison(scenes: "dict[Path, Scene]", truth: Any) -> "Comparison":
    """Score models, by file, each on the scene as it takes it."""
    import time

    import numpy as np

    from bimichi import BiMIChI, Comparison
    from bimichi.comparison import Result
    from bimichi.metrics import scores

    results = []
    for file, scene in scenes.items():
        model, start = BiMIChI.load(file), time.perf_counter()
        fused = model.fuse(scene.sources)
        taken = time.perf_counter() - start
        found = scores(truth, fused, model.output_range, np.isnan(fused))
        results.append(Result(_called(file), model, [found], fuse_seconds=taken))
    return Comparison(results)
