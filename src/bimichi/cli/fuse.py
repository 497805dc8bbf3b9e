"""`bimichi fuse`: fuse images by a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bimichi._progress import progress_bar
from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import MAX_ADDITIVE_SOURCES, find_sets
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path
from bimichi.errors import BimichiError

__all__ = ["fuse"]

MAPS = (".tif", ".tiff", ".png")


def fuse(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="What `bimichi train` wrote.")],
    sources: options.Sources,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the fused map: .tif (float32) or .png (8 bits: -1 is 0, +1 is 255); a folder if "
            "sources are folders or patterns.",
            show_default=False,
        ),
    ],
    png: Annotated[bool, typer.Option("--png", help="Write a PNG beside each TIFF, too; not for rasters.")] = False,
    names: options.Names = None,
    resume: Annotated[bool, typer.Option("--resume", help="Skip scenes whose map is there already.")] = False,
    align: Annotated[bool, typer.Option("--align", help="Warp rasters on other grids to that of the first.")] = False,
    overviews: Annotated[bool, typer.Option("--overviews", help="Add overviews to fused rasters.")] = False,
    jobs: options.Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Fuse images by a model. Sources are matched by name, in whatever order they come.

    A file is called by its name without ending; if that is not what the model calls it, say so with --names:

    ```
    bimichi fuse model.json day2/thermal.png day2/grey.png -o fused.tif
    bimichi fuse model.json heat.png cam.png --names thermal,grey -o fused.tif
    ```

    Many scenes, a folder or a quoted pattern a source; one map for each goes to the folder. A scene that fails is told
    at the end, and stops no other:

    ```
    bimichi fuse model.json ir/ vi/ -o fused/ --resume
    ```

    GeoTIFFs of any size are fused in windows, and keep their place on Earth:

    ```
    bimichi fuse model.json bands.tif -o fused.tif --overviews
    ```
    """
    from bimichi.cli.fusing import SceneFuser
    from bimichi.rule import FusionRule

    say, found = Output(quiet, json), FusionRule.load(model)
    image_sets = find_sets(sources, MAX_ADDITIVE_SOURCES)
    inputs = [model, *image_sets.files]
    outputs = output_files(output, image_sets.scenes, image_sets.many, MAPS)
    files = [[path, path.with_suffix(".png")] if png else [path] for path in outputs]
    keep_inputs([path for some in files for path in some], inputs)
    there = [resume and all(path.exists() for path in some) for some in files]
    left = [(one, some[0]) for one, some, done in zip(image_sets.sets, files, there, strict=True) if not done]
    scenes: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    with Run("fuse", ctx.params, inputs) as run:
        fuser = SceneFuser(found, image_sets, options.listed(names), png, align, overviews)
        with run.timed("fuse"), progress_bar("fusing", len(left), say.verbose if image_sets.many else 0) as advance:
            for done in fuser.run(left, jobs):
                advance(1, None)
                if done.problem:
                    failed[done.name] = done.problem
                    continue
                scenes.append({"scene": done.name, "files": done.files, "pixels": done.pixels})
                if done.missing:
                    say.note(f"Scene {done.name!r} has NaN in {done.missing:,} pixels, which is 0 in a PNG.")
                if not image_sets.many:
                    say.note(f"Wrote {' and '.join(map(str, done.files))}.")
        record = run.write(run_path(output), [path for scene in scenes for path in scene["files"]])
    counts = f"{len(scenes):,} fused, {len(outputs) - len(left):,} were there already, {len(failed):,} failed"
    if image_sets.many:
        say.note(f"{counts}; in {output}.")
    say.result({"model": model, "run": record, "scenes": scenes, "failed": failed, "seconds": run.seconds})
    if failed:
        raise BimichiError("\n".join([f"{counts}:", *(f"{name}: {problem}" for name, problem in failed.items())]))
