"""`bimichi bags`: a picture of the bags and their labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi.cli.console import Output, text_table
from bimichi.cli.options import LabelOptions, SourceOptions, Sources, output_option
from bimichi.cli.outputs import Run, keep_inputs, output_files, run_path
from bimichi.errors import InvalidInputError

if TYPE_CHECKING:
    from bimichi.imaging.bagging import BagCounts
    from bimichi.imaging.looking import SceneViewer


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
    from bimichi.imaging.looking import SceneViewer

    labelling, scenes = labelled.labelling(), made.open(sources)
    inputs = [*scenes.files, *labelling.files(scenes)]
    files = output_files(output, scenes.names, scenes.many, (".png", ".svg", ".pdf"))
    keep_inputs([*files, run_path(output)], inputs)
    with Run("bags", ctx.params, inputs) as run:
        viewer = SceneViewer(scenes, labelling, made.recipes)
        say.notes(viewer.notes)
        if viewer.problem:
            raise InvalidInputError(viewer.problem)
        counts = [
            {"scene": name} | _draw(viewer, name, file)._asdict() | {"picture": file}
            for name, file in zip(scenes.names, files, strict=True)
        ]
        record = run.write(run_path(output), files)
    table = text_table(["scene", "positive", "negative", "left out", "picture"], (row.values() for row in counts))
    say.result({"run": record, "scenes": counts}, table)


def _draw(viewer: "SceneViewer", name: str, path: Path) -> "BagCounts":
    """Draw bags and targets over what is most like a photograph."""
    from bimichi.imaging.looking import photograph
    from bimichi.plotting import plot_bags

    images, _, targets, scene, counts, _ = viewer.view(name)
    if targets is None or scene is None or counts is None:
        raise InvalidInputError(f"Scene {name!r} has no labels.")
    height, width = scene.shape
    size = (min(max(7.0 * (width / height), 5.0), 14.0), 7.4)
    figure = import_optional("matplotlib.figure").Figure(size, dpi=150, layout="constrained")  # without a window
    image = photograph(images, viewer.source_names)
    shown: Any = {"boxes": targets.boxes, "polygons": targets.polygons, "mask": targets.mask}
    plot_bags(np.asarray(scene.segments), scene.labels or {}, image, figure.subplots(), **shown)
    atomic_write(path, lambda file: figure.savefig(file, format=path.suffix[1:].lower()))
    return counts
