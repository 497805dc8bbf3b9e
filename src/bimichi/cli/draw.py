"""`bimichi draw`: write drawn scenes as files, to try the other commands on."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from bimichi.cli.console import Output
from bimichi.cli.options import checked, output_option, value
from bimichi.cli.outputs import output_folder


def _size(text: str) -> tuple[int, int]:
    """Return height and width."""
    found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} must be width and height in pixels, such as 320x240")
    return int(found[2]), int(found[1])


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
