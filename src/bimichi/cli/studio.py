"""`bimichi studio`: draw labels in the browser, while a fusion learns from them."""

from pathlib import Path
from typing import Annotated

import typer

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, SourceOptions, listed
from bimichi.imaging.annotations import ANNOTATION_FORMATS


def studio(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCES... | PROJECT | FOLDER]",
            show_default=False,
            help="Sources as in `bimichi train`; or a project file of the studio; or one folder, which is searched for "
            "sources. Without any, the start page opens.",
        ),
    ] = None,
    made: SourceOptions,
    boxes: Annotated[
        Path | None,
        typer.Option(
            help=f"Boxes or outlines to start with: a file or a folder, {', '.join(ANNOTATION_FORMATS)}.",
            metavar="FILE",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Instead of boxes: masks to start with, or another annotation file.", metavar="FILE"),
    ] = None,
    truth: Annotated[
        str | None, typer.Option(help="Masks of targets to look at; they are not learned from.", metavar="MASK")
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            help="The project file to save to, and to continue if it exists; by default studio.json in the current "
            "folder.",
            metavar="FILE",
        ),
    ] = None,
    allow: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow",
            help="A folder whose files the page may open, too; may be repeated. Without it, only the folder in which "
            "the studio is started, and those of SOURCES.",
            metavar="FOLDER",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 is any free port.", metavar="PORT")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on. By default, only this machine can reach the studio.", metavar="ADDRESS"
        ),
    ] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and do not open it in a browser.")
    ] = False,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Draw labels on scenes in the browser, and watch a fusion learn from them.

    One scene, with one file per source; or many, with one folder or quoted pattern per source:

    ```
    bimichi studio thermal.png grey.png
    bimichi studio ir/ vi/ --recipe to_bipolar
    ```

    What is drawn is saved to studio.json as you draw. Continue with it, or let the studio search a folder:

    ```
    bimichi studio studio.json
    bimichi studio pictures/
    ```

    On a machine that you reach by SSH, forward a port, and open the address that the studio prints there:

    ```
    ssh -L 8765:127.0.0.1:8765 machine
    bimichi studio ir/ vi/ --port 8765 --no-browser
    ```
    """
    from bimichi.interactive.opening import Options
    from bimichi.interactive.starting import Start

    if boxes is not None and labels is not None:
        raise typer.BadParameter("give one of them", param_hint="'--boxes' / '--labels'")
    options = Options(
        listed(made.names),
        made.recipes,
        made.align,
        listed(made.driver) or (),
        made.expressions or (),
        labels if boxes is None else str(boxes),
        truth,
    )
    Start(sources or [], options, project, allow or []).run(host, port, not no_browser, jobs, say.note)
