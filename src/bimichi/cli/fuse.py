"""`bimichi fuse`: fuse images by a model."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet
from bimichi.cli.inputs import ImageSets, find_sets
from bimichi.cli.model import FusionModel
from bimichi.cli.outputs import output_file, output_folder
from bimichi.cli.runs import Run, run_path
from bimichi.cli.sources import AS_IS, POINTWISE, choose_recipes, make_source, read_images, source_names
from bimichi.cli.strips import write_strips
from bimichi.errors import InvalidInputError
from bimichi.planes import Planes, check_n_jobs

__all__ = ["fuse"]

STRIP = 1 << 19
"""Pixels that a thread takes at a time: all that is made of them on the way stays small."""

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
    say, found, image_sets = Output(quiet, json), FusionModel.load(model), find_sets(sources)
    outputs = _outputs(image_sets, output, [model, *image_sets.files])
    done = []
    with Run("fuse", ctx.params, [model, *image_sets.files]) as run:
        for one, path in zip(image_sets.sets, outputs, strict=True):
            with run.timed("read"):
                images = _matched(found, read_images(one), image_sets, options.listed(names))
            with run.timed("fuse and write"):
                strips = fused_strips(found, images, check_n_jobs(jobs))
                files, missing = write_strips(path, strips, images[0].shape[:2], png)
            if missing:
                say.note(f"Scene {one.name!r} has NaN in {missing:,} pixels, which is 0 in a PNG.")
            done.append({"scene": one.name, "files": files, "pixels": images[0].shape[0] * images[0].shape[1]})
            say.note(f"Wrote {' and '.join(map(str, files))}.")
        record = run.write(run_path(output), [path for scene in done for path in scene["files"]])
    say.result({"model": model, "run": record, "scenes": done, "seconds": run.seconds})


def _outputs(image_sets: ImageSets, output: Path, inputs: Sequence[Path]) -> list[Path]:
    """Where the map of each scene goes; all of it can be written."""
    if not image_sets.many:
        return [output_file(output, MAPS, inputs)]
    if output.suffix.lower() in MAPS:
        raise InvalidInputError(f"Of many scenes, the output must be a folder, got {output}.")
    output_folder(output)
    return [output_file(output / f"{one.name}.tif", inputs=inputs) for one in image_sets.sets]


def _matched(
    model: FusionModel, images: list[NDArray[Any]], image_sets: ImageSets, names: Sequence[str] | None
) -> list[NDArray[Any]]:
    """Return images in the order of the model's sources."""
    called = source_names(image_sets, names, len(images))
    if sorted(called) != sorted(model.source_names):
        hint = " Quote patterns, else the shell replaces them." if len(called) > len(model.source_names) else ""
        raise InvalidInputError(
            f"The model fuses {len(model.source_names)} sources: {', '.join(model.source_names)}. "
            f"Given are {len(called)}: {', '.join(called)}. "
            f"If they are the same, say which is which with --names, in the order given.{hint}"
        )
    return [images[called.index(name)] for name in model.source_names]


def fused_strips(model: FusionModel, images: Sequence[NDArray[Any]], n_jobs: int) -> Iterator[NDArray[np.float32]]:
    """Yield the fused map in strips of rows, from above; few of them are in memory at a time.

    Parameters
    ----------
    model : FusionModel
        The model.
    images : sequence of ndarray of shape (height, width) or (height, width, 3)
        One a source, in the order of the model.
    n_jobs : int
        Number of threads.
    """
    recipes = model.recipes or choose_recipes(None, images, model.source_names)
    whole = [
        image if recipe in POINTWISE else make_source(image, recipe)
        for image, recipe in zip(images, recipes, strict=True)
    ]
    rest = [recipe if recipe in POINTWISE else AS_IS for recipe in recipes]
    height, width = images[0].shape[:2]
    rows = max(1, STRIP // width)

    def strip(start: int) -> NDArray[np.float32]:
        planes = [make_source(image[start : start + rows], recipe) for image, recipe in zip(whole, rest, strict=True)]
        try:
            return model.fuse(planes, n_jobs=1).astype(np.float32, copy=False)
        except InvalidInputError:
            remedy = "Bring it to the range that the model was trained on."
            Planes(planes, names=model.source_names).check_range(-1.0, remedy)
            raise

    starts = range(0, height, rows)
    with ThreadPoolExecutor(n_jobs) as pool:
        for k in range(0, len(starts), 2 * n_jobs):
            yield from pool.map(strip, starts[k : k + 2 * n_jobs])
