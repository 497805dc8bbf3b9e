"""The commands, put together."""

import typer

__all__ = ["app", "run"]

app = typer.Typer(name="bimichi", no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False)


def run() -> None:
    """Run the program."""
    app()
