"""`bimichi demo`, a demonstration that takes less than a minute, and `bimichi draw`, drawn scenes as files."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from bimichi.cli.console import Output, Run, output_folder, rich_table
from bimichi.cli.options import Folder, Jobs, Seed, checked, output_option, value

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
