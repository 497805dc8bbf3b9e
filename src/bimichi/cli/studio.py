"""`bimichi studio`: draw labels in the browser, while a fusion learns from them."""

from pathlib import Path
from typing import Annotated

import typer

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, SourceOptions, flag, listed, value
from bimichi.io.annotations import ANNOTATION_FORMATS


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
