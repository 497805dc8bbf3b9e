"""`bimichi report`: a page that shows a fused scene and explains every pixel."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, Model, Names, Sources, TrustRecipes, listed, load_recipes, output_option
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path
from bimichi.imaging.collecting import SceneCollection, SceneFiles, collect_scenes

if TYPE_CHECKING:
    from bimichi import Comparison, Scene
    from bimichi.rule import FusionRule


def report(
    ctx: typer.Context,
    *,
    model: Model,
    sources: Sources,
    output: Annotated[Path, output_option("The page: .html; a folder for many scenes.")],
    truth: Annotated[
        str | None, typer.Option(help="Mask of targets, above 0, to score against.", metavar="MASK")
    ] = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Boxes to draw: a file as in `bimichi train`.", metavar="FILE")
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
    names: Names = None,
    trust_recipes: TrustRecipes = False,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Write a page that shows a fused scene, describes the model, and explains every pixel.

    It is one file that needs no network; open it in a browser.

    ```
    bimichi report model.json thermal.png grey.png -o report.html
    bimichi report model.json thermal.png grey.png --truth mask.png --boxes boxes.csv -o report.html
    bimichi report mean.json ir.png vi.png --truth mask.png --compare bipolar.json -o report.html
    ```
    """
    from bimichi.imaging.labelling import boxes_by_scene, with_truth
    from bimichi.report import write_report
    from bimichi.rule import FusionRule

    scenes, called = collect_scenes(sources), listed(names)
    files = list(dict.fromkeys([model, *(compare or [])]))
    if len(files) > 1 and truth is None:
        raise typer.BadParameter("needs --truth, to score against", param_hint="'--compare'")
    masks = scenes.companions(truth, "truth") if truth else {}
    inputs = [*files, *scenes.files, *masks.values(), *([boxes] if boxes else [])]
    outputs = output_files(output, scenes.names, scenes.many, (".html", ".htm"))
    keep_inputs(outputs, inputs)
    rules = {file: FusionRule.load(file) for file in files}
    if trust_recipes:
        load_recipes([recipe for rule in rules.values() for recipe in rule.recipes or ()])
    with Run("report", ctx.params, inputs) as run:
        drawn = boxes_by_scene(boxes, target, scenes.scenes) if boxes else {}
        for one, path in zip(scenes.scenes, outputs, strict=True):
            with run.timed("read"):
                read = {file: _read(rule, one, scenes, called) for file, rule in rules.items()}
                if masks:
                    read = {file: with_truth(scene, masks[one.name], target) for file, scene in read.items()}
            with run.timed("explain and write"):
                write_report(
                    path,
                    rules[model],
                    read[model],
                    boxes=drawn.get(one.name),
                    comparison=_compared(rules, read) if len(files) > 1 else None,
                    title=title or (one.name if scenes.many else "Fusion report"),
                    notes={"Model file": _short(model), "Image files": ", ".join(map(_short, one.files))},
                    n_jobs=jobs,
                )
            say.note(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")
        record = run.write(run_path(output), outputs)
    say.result({"model": model, "reports": outputs, "run": record, "seconds": run.seconds})


def _short(path: Path) -> str:
    """Return the name of a file with that of its folder."""
    return "/".join(path.parts[-2:])


def _read(rule: "FusionRule", scene: SceneFiles, scenes: SceneCollection, names: Sequence[str] | None) -> "Scene":
    """Read the sources of one scene as this rule takes them."""
    import numpy as np

    from bimichi import Scene
    from bimichi.imaging.fusing import read_for_rule
    from bimichi.imaging.recipes import make_source

    images, recipes = read_for_rule(rule, scene, scenes, names)
    planes = [make_source(image, recipe) for image, recipe in zip(images, recipes, strict=True)]
    return Scene(np.stack(planes, axis=-1), scene.name, rule.source_names)


def _compared(rules: "dict[Path, FusionRule]", scenes: "dict[Path, Scene]") -> "Comparison":
    """Score rules, each on the scene as it takes it."""
    import numpy as np

    from bimichi import Comparison
    from bimichi.evaluation.comparison import Result
    from bimichi.evaluation.metrics import scores

    results = []
    for file, rule in rules.items():
        start = time.perf_counter()
        fused = rule.fuse(scenes[file].sources)
        taken = time.perf_counter() - start
        truth = np.asarray(scenes[file].truth)  # which --compare asks for
        found = scores(truth, fused, rule.output_range, np.isnan(fused))
        results.append(Result(_short(file), rule, [found], fuse_seconds=taken))
    return Comparison(results)
