"""`bimichi init` and `bimichi studio`: a project file by looking at a folder, and labels drawn in the browser."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, SourceOptions, flag, listed, value
from bimichi.errors import BimichiError
from bimichi.io.annotations import ANNOTATION_FORMATS
from bimichi.io.project import FILE_NAME, write_project
from bimichi.sources.bands import first_few

NEXT = "Paths are relative to this file. Check it, then look at the data: bimichi check --project {file}"


def init(
    *,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="A folder with images.")],
    force: Annotated[bool, flag("--force", "Replace a project file that exists.")] = False,
    say: Output,
) -> None:
    """Write a project file, `bimichi.toml`, for the images and labels in a folder, by looking at them.

    Finds folders of equally named images, images whose names end in their source (`7_ir.png`, `7_vi.png`), single
    files, masks, and annotation files. Other commands then take `--project FOLDER`:

    ```
    bimichi init streets
    bimichi check --project streets
    bimichi train --project streets -o model.json
    ```
    """
    from bimichi.io.project import discover

    file = folder / FILE_NAME
    if (file.exists() or file.is_symlink()) and not force:
        raise BimichiError(f"{file} exists already; it is kept. Pass --force to replace it.", code="project-exists")
    seen = discover(folder)
    if seen.project is None:
        held = f"It holds {first_few(seen.unknown)}." if seen.unknown else "It is empty; name the folder of the images."
        raise BimichiError(
            f"Found no images of sources in {folder}. {held} Nothing was written.", code="images-missing"
        )
    write_project(file, seen.project, [NEXT.format(file=file), *seen.hints])
    lines = [*(f"Found {line}." for line in seen.found), *seen.hints]
    if seen.unknown:
        lines.append(f"Not recognised, and left out: {first_few(seen.unknown)}.")
    lines.append(f"Wrote {file}. Next: bimichi check --project {file}")
    data = {"project": file, "found": seen.found, "hints": seen.hints, "unknown": seen.unknown}
    say.result(data, escape("\n".join(lines)))


def studio(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCES... | PROJECT | FOLDER]",
            show_default=False,
            help="Sources as in `bimichi train`; or a project file; or a folder with a `bimichi.toml`, or one that is "
            "searched for sources. Without any, the start page opens.",
        ),
    ] = None,
    made: SourceOptions,
    boxes: Annotated[
        Path | None,
        value(f"Boxes or outlines to start with: a file or a folder, {', '.join(ANNOTATION_FORMATS.names())}.", "FILE"),
    ] = None,
    labels: Annotated[
        str | None, value("Instead of boxes: masks to start with, or another annotation file.", "FILE")
    ] = None,
    truth: Annotated[str | None, value("Masks of targets to look at; they are not learned from.", "MASK")] = None,
    project: Annotated[
        Path | None,
        value(
            "The project file to save to, and to continue if it exists; by default bimichi.toml in the current folder.",
            "FILE",
        ),
    ] = None,
    allow: Annotated[
        list[Path] | None,
        value(
            "A folder whose files the page may open, too; may be repeated. Without it, only the folder in which "
            "the studio is started, and those of SOURCES.",
            "FOLDER",
        ),
    ] = None,
    port: Annotated[int, value("The port to listen on; 0 is any free port.", "PORT", min=0, max=65535)] = 0,
    host: Annotated[
        str, value("The address to listen on. By default, only this machine can reach the studio.", "ADDRESS")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, flag("--no-browser", "Print the address, and do not open it in a browser.")] = False,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Draw labels on scenes in the browser, and watch a fusion learn from them.

    One scene, with one file per source; or many, with one folder or quoted pattern per source:

    ```
    bimichi studio thermal.png grey.png
    bimichi studio ir/ vi/ --recipe to_bipolar
    ```

    What is drawn is saved as you draw, in labels.json beside bimichi.toml, which all commands read. Continue with it,
    or let the studio search a folder:

    ```
    bimichi studio .
    bimichi studio pictures/
    bimichi train --project . -o model.json
    ```

    On a machine that you reach by SSH, forward a port, and open the address that the studio prints there:

    ```
    ssh -L 8765:127.0.0.1:8765 machine
    bimichi studio ir/ vi/ --port 8765 --no-browser
    ```
    """
    from bimichi.studio.open import Options
    from bimichi.studio.start import Start

    if boxes is not None and labels is not None:
        raise typer.BadParameter("give one of them", param_hint="'--boxes' / '--labels'")
    reading = (listed(made.names), made.recipes, made.align, listed(made.driver) or (), made.expressions or ())
    options = Options(*reading, labels if boxes is None else str(boxes), truth)
    Start(sources or [], options, project, allow or []).run(host, port, not no_browser, jobs, say.note)
