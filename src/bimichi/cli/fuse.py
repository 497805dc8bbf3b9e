"""`bimichi fuse`: fuse images by a model."""

from pathlib import Path
from typing import Annotated

import typer

from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import find_sets
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path

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
    png: Annotated[bool, typer.Option("--png", help="Write a PNG beside each TIFF, too.")] = False,
    names: options.Names = None,
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

    Many scenes, a folder or a quoted pattern a source; one map for each goes to the folder:

    ```
    bimichi fuse model.json ir/ vi/ -o fused/
    ```
    """
    from bimichi.cli.fusing import fused_strips, matched
    from bimichi.cli.model import FusionModel
    from bimichi.cli.sources import read_images
    from bimichi.cli.strips import write_strips

    say, found, image_sets = Output(quiet, json), FusionModel.load(model), find_sets(sources)
    inputs = [model, *image_sets.files]
    outputs = output_files(output, image_sets.scenes, image_sets.many, MAPS)
    keep_inputs([*outputs, *(path.with_suffix(".png") for path in outputs if png)], inputs)
    done = []
    with Run("fuse", ctx.params, inputs) as run:
        for one, path in zip(image_sets.sets, outputs, strict=True):
            with run.timed("read"):
                images = matched(found, read_images(one), image_sets, options.listed(names))
            with run.timed("fuse and write"):
                strips = fused_strips(found, images, jobs)
                files, missing = write_strips(path, strips, images[0].shape[:2], png)
            if missing:
                say.note(f"Scene {one.name!r} has NaN in {missing:,} pixels, which is 0 in a PNG.")
            done.append({"scene": one.name, "files": files, "pixels": images[0].shape[0] * images[0].shape[1]})
            say.note(f"Wrote {' and '.join(map(str, files))}.")
        record = run.write(run_path(output), [path for scene in done for path in scene["files"]])
    say.result({"model": model, "run": record, "scenes": done, "seconds": run.seconds})
