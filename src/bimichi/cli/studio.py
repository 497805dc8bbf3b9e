"""`bimichi studio`: draw labels in the browser, while a fusion learns from them."""

from typing import Annotated

import typer

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, SourceOptions, Sources
from bimichi.imaging.collecting import MAX_ADDITIVE_SOURCES


def studio(
    *,
    ctx: typer.Context,
    sources: Sources = [],  # noqa: B006  # typer copies it
    made: SourceOptions,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any free port.")] = 0,
    host: Annotated[
        str, typer.Option(help="Which address to listen at; others than this machine can reach it only if told so.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address instead of opening it.")] = False,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Draw labels on scenes in the browser, and watch a fusion learn from them."""
    from bimichi.interactive.starting import run

    scenes = made.open(sources, MAX_ADDITIVE_SOURCES) if sources else None
    run(scenes, made.recipes, host, port, not no_browser, jobs, say.note)
