"""The program and its commands, which import slow modules only when they run, so that help and completion are quick."""

import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import bimichi
from bimichi.cli.check import check
from bimichi.cli.compare import compare
from bimichi.cli.console import STOPPED, LogHandler, terminated_as_interrupted, user_errors
from bimichi.cli.doctor import doctor
from bimichi.cli.experiments import demo, draw, reproduce
from bimichi.cli.fuse import fuse
from bimichi.cli.options import expand_groups
from bimichi.cli.project import init, studio
from bimichi.cli.report import report
from bimichi.cli.show import bags, show
from bimichi.cli.study import study
from bimichi.cli.train import train


class Program(TyperGroup):
    """A group of commands that handle errors alike."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see `user_errors`."""
        with user_errors():
            return super().invoke(ctx)


app = typer.Typer(
    name="bimichi",
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(bimichi.__version__)
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Fuse several sensors into one confidence map, and learn how from imprecise labels.

    `bimichi COMMAND --help` lists all options, with examples.
    """


for _command in (init, check, bags, train, fuse, show, compare, report, study, studio, draw, demo, doctor):
    app.command()(expand_groups(_command))
app.add_typer(reproduce)


def run() -> None:
    """Run the program; when it was stopped, do not wait for threads that still compute."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[LogHandler()])
    with terminated_as_interrupted():
        try:
            app(prog_name="bimichi")
        except SystemExit as end:
            if end.code not in STOPPED or threading.active_count() == 1:
                raise
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(int(end.code or 0))  # files are closed and part files removed by now: only the main thread writes
