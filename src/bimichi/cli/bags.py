"""`bimichi bags`: a picture of the bags and their labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi._tables import Cell, Table
from bimichi.cli.console import Output, rich_table
from bimichi.cli.options import LabelOptions, SourceOptions, Sources, output_option
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path
from bimichi.imaging.collecting import collect_scenes

if TYPE_CHECKING:
    from bimichi import Scene


def bags(
    ctx: typer.Context,
    *,
    sources: Sources,
    output: Annotated[Path, output_option("The picture: .png, .svg or .pdf; a folder for many scenes.")],
    labelled: LabelOptions,
    made: SourceOptions,
    say: Output,
) -> None:
    """Draw the bags and their labels before training: positive green, negative red, left out grey.

    Takes the options of `bimichi train` that make bags:

    ```
    bimichi bags thermal.png grey.png --boxes boxes.csv -o bags.png
    ```
    """
    from bimichi.imaging.labelling import SceneReader

    labelling, scenes = labelled.labelling(), collect_scenes(sources)
    inputs = [*scenes.files, *labelling.files(scenes)]
    files = output_files(output, scenes.names, scenes.many, (".png", ".svg", ".pdf"))
    keep_inputs([*files, run_path(output)], inputs)
    with Run("bags", ctx.params, inputs) as run:
        reader = SceneReader(scenes, labelling, *made.lists(), scaled=True)
        for scene, file in zip(reader.scenes, files, strict=True):
            _draw(scene, file)
        record = run.write(run_path(output), files)
    counts = [
        {"scene": name} | reader.counts[name]._asdict() | {"picture": file}
        for name, file in zip(reader.scenes.names, files, strict=True)
    ]
    rows = [[Cell(str(value)) for value in row.values()] for row in counts]
    table = Table(["scene", "positive", "negative", "left out", "picture"], rows)
    say.result({"run": record, "scenes": counts}, rich_table(table))


def _draw(scene: "Scene", path: Path) -> None:
    from bimichi.plotting import plot_bags

    height, width = scene.shape
    size = (min(max(7.0 * (width / height), 5.0), 14.0), 7.4)
    figure = import_optional("matplotlib.figure").Figure(size, dpi=150, layout="constrained")  # without a window
    plot_bags(np.asarray(scene.segments), scene.labels or {}, scene.sources.mean(axis=-1), figure.subplots())
    atomic_write(path, lambda file: figure.savefig(file, format=path.suffix[1:].lower()))
