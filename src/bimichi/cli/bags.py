"""`bimichi bags`: a picture of the bags and their labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi._tables import Cell, Table
from bimichi.cli import options
from bimichi.cli.console import Json, Output, Quiet, rich_table
from bimichi.cli.inputs import find_sets
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path

if TYPE_CHECKING:
    from bimichi import Scene

__all__ = ["bags"]

PICTURES = (".png", ".svg", ".pdf")


def bags(
    ctx: typer.Context,
    sources: options.Sources,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the picture: .png, .svg or .pdf; a folder if sources are folders or patterns.",
            show_default=False,
        ),
    ],
    boxes: options.Boxes = None,
    labels: options.Labels = None,
    bags: options.Bags = None,
    superpixels: options.Superpixels = 300,
    min_overlap: options.MinOverlap = 0.0,
    ignore: options.Ignore = None,
    target: options.Target = None,
    names: options.Names = None,
    recipe: options.Recipe = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """See the bags and their labels before training: positive green, negative red, left out grey.

    Takes the options of `bimichi train` that make bags:

    ```
    bimichi bags thermal.png grey.png --boxes boxes.csv -o bags.png
    ```
    """
    from bimichi.cli.labels import SceneReader

    say, labelling, image_sets = Output(quiet, json), options.labelling(ctx.params), find_sets(sources)
    inputs = [*image_sets.files, *labelling.files(image_sets)]
    files = output_files(output, image_sets.scenes, image_sets.many, PICTURES)
    keep_inputs(files, inputs)
    with Run("bags", ctx.params, inputs) as run:
        reader = SceneReader(image_sets, labelling, options.listed(names), options.listed(recipe), scaled=True)
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

    segments, labels = scene._parts()
    figure = _figure(segments.shape[1] / segments.shape[0])
    plot_bags(segments, labels, scene.sources.mean(axis=-1), figure.subplots())
    atomic_write(path, lambda file: figure.savefig(file, format=path.suffix[1:].lower()))


def _figure(ratio: float) -> Any:
    """Return a figure for an image of this width over height; it belongs to no window."""
    return import_optional("matplotlib.figure").Figure(
        figsize=(min(max(7.0 * ratio, 5.0), 14.0), 7.4), dpi=150, layout="constrained"
    )
