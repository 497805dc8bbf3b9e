"""What commands print and how they fail: results go to standard output, everything else to standard error."""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from bimichi._files import plain
from bimichi._tables import Table
from bimichi.errors import AnnotationWarning, BimichiError, shortened

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else there.")
]

WIDE = 200  # columns of a pipe or file, where lines need not be wrapped


@dataclass(frozen=True)
class Output:
    """What a command prints, and its options --quiet and --json."""

    quiet: Quiet = False
    json: Json = False

    @property
    def verbose(self) -> int:
        """The `verbose` of library functions: 1 if progress is to be shown."""
        return 0 if self.quiet or self.json else 1

    def note(self, text: str) -> None:
        """Print a note on standard error; `text` is shown as it is."""
        if not self.quiet:
            say(text)

    def notes(self, texts: Iterable[str]) -> None:
        """Print several notes."""
        for text in texts:
            self.note(text)

    def result(self, data: Mapping[str, Any], *shown: RenderableType) -> None:
        """Print the result: `data` as JSON, or the parts in `shown`, where text from users must be escaped for rich."""
        if self.json:
            sys.stdout.write(json.dumps(plain(data), indent=1, allow_nan=False) + "\n")
        elif shown and not self.quiet:
            _console(stderr=False).print(*shown, sep="\n", soft_wrap=all(isinstance(part, str) for part in shown))


def rich_table(table: Table) -> RichTable:
    """Return a table for the terminal, its text shown as it is."""
    shown = RichTable()
    for k, title in enumerate(table.header):
        shown.add_column(Text(title), justify="right" if k else "left")
    for row in table.rows:
        styles = [" ".join(["bold"] * cell.bold + ["underline"] * cell.underlined) for cell in row]
        shown.add_row(*(Text(cell.text, style) for cell, style in zip(row, styles, strict=True)))
    return shown


def say(text: str, heading: str = "") -> None:
    """Print a message on standard error, not wrapped, and with nothing in it taken as markup."""
    _console(stderr=True).print(f"{heading}{escape(shortened(text))}", soft_wrap=True, highlight=False)


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors that users can correct into a message and exit code 1, and Ctrl-C into 130; others are bugs."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AnnotationWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message), "[yellow]Warning:[/] ")
        try:
            yield
        except KeyboardInterrupt:
            say("Stopped; no file is half-written.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of the output has closed it
            raise
        except (BimichiError, ImportError, OSError, MemoryError) as error:
            say(_message(error), "[bold red]Error:[/] ")
            raise typer.Exit(1) from error


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error) or type(error).__name__


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDE)
