"""`bimichi demo`, `draw` and `reproduce`: drawn scenes, and the experiments of the paper."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

import bimichi
from bimichi.cli.console import Output, Run, output_folder, rich_table
from bimichi.cli.options import Folder, Jobs, Seed, checked, expand_groups, output_option, value
from bimichi.cli.study import DataOptions, input_files
from bimichi.errors import InvalidInputError

SIZE = (240, 320)  # a quarter of the pixels of a camera, so that methods take seconds

NEXT = """What to try next:
  bimichi studio {images}
                                             draw boxes on that street in the browser, and watch the map learn
  bimichi reproduce pedestrian --street      such a street at full size, with all methods
  bimichi reproduce flood                    floods from radar and optical images; or lesions, from MR images
  bimichi train --help                       learn from your own images and boxes
  bimichi study --street --train 4 --test 2 -o output/study
                                             learn from some scenes, score on others"""


def demo(
    ctx: typer.Context, *, output: Folder = Path("output/demo"), seed: Seed = 0, jobs: Jobs = None, say: Output
) -> None:
    """Show what bimichi does: the letters of the paper, and people on a drawn street at night.

    Takes less than a minute and needs no data. The two slowest methods are left out.

    ```
    bimichi demo
    bimichi demo -o pictures
    ```
    """
    from bimichi.datasets import street
    from bimichi.datasets.folders import write_folder
    from bimichi.paper import SLOW, run_pedestrian, run_um

    folder = output_folder(output)
    with Run("demo", ctx.params, seed=seed) as run:
        say.note("1/2 UM: a letter that all sensors miss, found as the other pole")
        with run.timed("UM"):
            letters = run_um(random_state=seed, n_jobs=jobs)
            written = letters.write(output_folder(folder / "um"))
        say.note("2/2 A street at night: people, lamps, warm windows")
        with run.timed("street"):
            people = run_pedestrian(street(*SIZE, random_state=seed), None, seed, jobs, say.verbose, SLOW)
            written += people.write(output_folder(folder / "street"))
            images = output_folder(folder / "images")
            written += write_folder(images, "street", [seed], SIZE)
        run.write(folder / "run.json", written)
    results = [path for path in written if path.suffix in (".png", ".html") and images not in path.parents]
    pictures = [f"  {escape(str(path))}" for path in results]
    data = {"um": letters.to_dict(), "street": people.to_dict(), "files": written}
    say.result(
        data,
        rich_table(letters.table()),
        *map(escape, letters.proofs()),
        rich_table(people.table()),
        "Pictures and reports:",
        *pictures,
        escape(NEXT.format(images=images)),
    )


def _size(text: str) -> tuple[int, int]:
    """Return height and width."""
    match = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} must be width and height in pixels, such as 320x240")
    return int(match[2]), int(match[1])


def draw(
    *,
    kind: Annotated[
        Literal["street", "flood", "lesions"],
        typer.Argument(
            help="A street at night in colour and thermal images, a flood in radar and optical satellite images, or "
            "brain lesions in four MR contrasts.",
            metavar="street|flood|lesions",
            show_default=False,
        ),
    ],
    output: Annotated[Path, output_option("Folder for the files.", metavar="FOLDER")],
    scenes: Annotated[int, value("How many scenes to draw.", "N", min=1)] = 6,
    seed: Annotated[int, value("Seed of the first scene; each further scene has the next one.", "N", min=0)] = 0,
    size: Annotated[
        str | None,
        value(
            "Width and height of the images in pixels; by default 640x480, 384x384 or 182x218.",
            "WxH",
            callback=checked(_size),
        ),
    ] = None,
    say: Output,
) -> None:
    """Draw scenes with exact truth, and write them as image files, boxes and masks, with a project file.

    The folder is laid out as one of your own would be: one folder per camera, band or contrast, in which the files of
    one scene have the same name.

    ```
    bimichi draw street -o street
    bimichi draw street -o street/new --scenes 2 --seed 6
    bimichi train --project street -o model.json
    ```
    """
    from bimichi.datasets.folders import write_folder

    folder = output_folder(output)
    written = write_folder(folder, kind, range(seed, seed + scenes), _size(size) if size else None)
    lines = f"Wrote {len(written)} files in {folder}. Next: bimichi check --project {folder}"
    say.result({"files": written, "scenes": scenes}, escape(lines))


PROOF_NODES = 300  # most scenes need fewer; of the others the gap that is left is printed

reproduce = typer.Typer(name="reproduce", no_args_is_help=True, rich_markup_mode="markdown")


@reproduce.callback()
def about() -> None:
    """Reproduce an experiment: those of the paper, with its numbers beside yours, or two in other fields."""


@reproduce.command()
@expand_groups
def um(
    ctx: typer.Context, *, output: Folder = Path("output/um"), seed: Seed = 0, jobs: Jobs = None, say: Output
) -> None:
    """Run the experiment on the letters U and M: both objectives, both solvers, beside the optimum.

    ```
    bimichi reproduce um
    bimichi reproduce um -o results/um
    ```
    """
    from bimichi.paper import run_um

    result, written = _run_and_write(ctx, output, seed, lambda: run_um(random_state=seed, n_jobs=jobs))
    shown = map(escape, [*result.proofs(), *map(str, written)])
    say.result(result.to_dict() | {"files": written}, rich_table(result.table()), *shown)


@reproduce.command()
@expand_groups
def pedestrian(
    ctx: typer.Context,
    *,
    where: DataOptions,
    scene: Annotated[
        list[str] | None,
        value(
            "Name of a scene, such as set09/V000/I01139, 00037N or street-3; may be given several times. By "
            "default, the first night scenes that show people.",
            "NAME",
        ),
    ] = None,
    limit: Annotated[int, value("How many scenes to take if none is named.", "N", min=1)] = 3,
    detector: Annotated[
        Path | None,
        value("Mask R-CNN of the ONNX model zoo or of torchvision, or YOLO-seg; without it, its row is empty.", "ONNX"),
    ] = None,
    preset: Annotated[
        Literal["default", "paper"],
        value(
            "paper: the rows of the paper alone, with its search for Bi-MIChI, and sources whose errors are near "
            "those that it prints; default: what works best, and further methods."
        ),
    ] = "default",
    output: Folder = Path("output/pedestrian"),
    seed: Seed = 0,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Compare all methods of the paper on people at night, in colour and thermal images of one scene or several.

    Takes up to a minute per scene. Without a data set, one street is drawn.

    ```
    bimichi reproduce pedestrian --street
    bimichi reproduce pedestrian --kaist ~/kaist --scene set09/V000/I01139
    bimichi reproduce pedestrian --msrs ~/MSRS --limit 1 -o results
    bimichi reproduce pedestrian --kaist ~/kaist --preset paper --detector yolo11n-seg.onnx
    ```
    """
    from bimichi.evaluate.study import write_json, write_text
    from bimichi.paper import mean_table, run_pedestrian, scene_folder, shows_both

    where = where or DataOptions(street=True)
    drawn = where.street and where.root is None
    scenes = where.scenes(_street_numbers(scene, seed) if drawn else (), names=scene, preset=preset)
    folder = output_folder(output)
    chosen = list(scenes if scene or drawn else islice(filter(shows_both, scenes), limit))
    if not chosen:
        raise InvalidInputError("No night scene shows people; name scenes with --scene.", code="scene-without-people")
    inputs = input_files(where.root, (frame.name for frame in chosen))
    network = None if detector is None else bimichi.DetectorMask(detector, n_jobs=jobs)
    with Run("reproduce pedestrian", ctx.params, [*inputs, *([detector] if detector else [])], seed) as run:
        results, written = [], []
        for count, frame in enumerate(chosen, 1):
            say.note(f"{count}/{len(chosen)} {frame.name}, scored on {frame.truth_from}")
            with run.timed(frame.name):
                results.append(run_pedestrian(frame, network, seed, jobs, say.verbose, (), PROOF_NODES, preset))
                written += results[-1].write(output_folder(scene_folder(folder, frame)))
        table = mean_table(results)
        data: dict[str, Any] = {"scenes": [result.to_dict() for result in results]}
        written += [
            write_text(folder / "results.md", f"# Means over {len(results)} scenes\n\n{table.to_markdown()}"),
            write_json(folder / "results.json", data),
        ]
        run.write(folder / "run.json", written)
    proofs = [says for result in results for says in result.proofs()]
    say.result(data | {"files": written}, rich_table(table), *map(escape, [*proofs, *map(str, written)]))


@dataclass(frozen=True)
class FieldOptions:
    """The options of the experiments in other fields."""

    train: Annotated[int, value("How many scenes to learn from.", "N", min=2)] = 4
    test: Annotated[int, value("How many scenes to score on.", "N", min=1)] = 4
    seed: Seed = 0
    jobs: Jobs = None


@reproduce.command()
@expand_groups
def flood(ctx: typer.Context, *, options: FieldOptions, output: Folder = Path("output/flood"), say: Output) -> None:
    """Find floods in drawn radar and optical images, learned from outlines that are too large.

    Takes about two minutes. The images are written as GeoTIFFs, with the commands that learn from them.

    ```
    bimichi reproduce flood
    bimichi reproduce flood --train 6 --test 2 -o results/flood
    ```
    """
    _run_field(ctx, options, output, say)


@reproduce.command()
@expand_groups
def lesions(ctx: typer.Context, *, options: FieldOptions, output: Folder = Path("output/lesions"), say: Output) -> None:
    """Find lesions of the white matter in four drawn MR contrasts, learned from boxes around them.

    Takes about a minute. The images are written as PNG files, with the commands that learn from them.

    ```
    bimichi reproduce lesions
    bimichi reproduce lesions --seed 10 -o results/lesions
    ```
    """
    _run_field(ctx, options, output, say)


def _run_field(ctx: typer.Context, options: FieldOptions, output: Path, say: Output) -> None:
    """Run the experiment in the field that the command is named after, and print its result."""
    from bimichi.paper import run_field

    def learn() -> Any:
        return run_field(str(ctx.info_name), options.train, options.test, options.seed, options.jobs, say.verbose)

    result, written = _run_and_write(ctx, output, options.seed, learn)
    shown = [result.verdict(), *(str(path) for path in written if path.parent == output)]
    say.result(result.to_dict() | {"files": written}, rich_table(result.table()), *map(escape, shown))


def _run_and_write(ctx: typer.Context, output: Path, seed: int, learn: Callable[[], Any]) -> tuple[Any, list[Path]]:
    """Run an experiment, and write its result and its record; returns the result and the files."""
    folder = output_folder(output)
    with Run(f"reproduce {ctx.info_name}", ctx.params, seed=seed) as run:
        with run.timed("learn"):
            result = learn()
        with run.timed("write"):
            written = result.write(folder)
        run.write(folder / "run.json", written)
    return result, written


def _street_numbers(names: Sequence[str] | None, seed: int) -> list[int]:
    try:
        return [int(name.removeprefix("street-")) for name in names or [f"street-{seed}"]]
    except ValueError:
        raise typer.BadParameter("streets are named street-0, street-1, ...", param_hint="'--scene'") from None
