"""What commands print and how they fail: results go to standard output, everything else to standard error."""

import json
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from bimichi._files import plain
from bimichi._progress import COMPILE_NOTICE
from bimichi._tables import Cell, Table
from bimichi.errors import AnnotationWarning, BimichiError, shortened

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else there.")
]

WIDE = 200  # columns of a pipe or file, where lines need not be wrapped
COMPACT = 100_000  # characters of JSON that are not spread over lines, which takes long
TERMINATED = 128 + 15
STOPPED = (128 + 2, TERMINATED)
"""Exit codes after Ctrl-C and after SIGTERM."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that would steer the terminal, reorder what is shown, or cannot be encoded."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


@dataclass(frozen=True)
class Output:
    """What a command prints, and its options --quiet and --json."""

    quiet: Quiet = False
    json: Json = False

    def __post_init__(self) -> None:
        COMPILE_NOTICE.say, COMPILE_NOTICE.bars = self.note, bool(self.verbose)

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
        with _unread():
            if self.json:
                text = json.dumps(plain(data), allow_nan=False)
                whole = text if len(text) > COMPACT else json.dumps(json.loads(text), indent=1)
                sys.stdout.write(f"{whole}\n")
            elif shown and not self.quiet:
                _console(stderr=False).print(*shown, sep="\n", soft_wrap=all(isinstance(part, str) for part in shown))
            sys.stdout.flush()  # so that a full disk is reported here


def rich_table(table: Table) -> RichTable:
    """Return a table for the terminal, its text shown as it is."""
    shown = RichTable()
    for k, title in enumerate(table.header):
        shown.add_column(Text(title), justify="right" if k else "left")
    for row in table.rows:
        styles = [" ".join(["bold"] * cell.bold + ["underline"] * cell.underlined) for cell in row]
        shown.add_row(*(Text(cell.text, style) for cell, style in zip(row, styles, strict=True)))
    return shown


def text_table(header: Sequence[str], rows: Iterable[Iterable[object]]) -> RichTable:
    """Return a table of plain text for the terminal."""
    return rich_table(Table(header, [[Cell(str(value)) for value in row] for row in rows]))


def failures(counts: str, problems: Mapping[str, str]) -> BimichiError:
    """Return the error about scenes that failed, while others did not."""
    return BimichiError("\n".join([*([f"{counts}:"] if counts else []), *(f"{k}: {v}" for k, v in problems.items())]))


def say(text: str, heading: str = "") -> None:
    """Print a message on standard error, not wrapped, and with nothing in it taken as markup."""
    with _unread():
        _console(stderr=True).print(f"{heading}{escape(shortened(text))}", soft_wrap=True, highlight=False)


def clean(text: str) -> str:
    """Return text with control characters as escapes, so that names and files cannot steer the terminal."""
    return CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors that users can correct into a message and exit code 1, and Ctrl-C into 130; others are bugs."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AnnotationWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message), "[yellow]Warning:[/] ")
        try:
            yield
        except KeyboardInterrupt as error:
            say("Stopped; no file is half-written.")
            raise typer.Exit(TERMINATED if isinstance(error, Terminated) else 130) from None
        except typer.BadParameter as error:
            error.message = clean(f"{error.message}{_origin(error)}")  # which may show what was typed
            raise
        except (BimichiError, ImportError, OSError, MemoryError) as error:
            text = str(error) or type(error).__name__
            if isinstance(error, OSError) and error.strerror:
                text = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
            say(text, "[bold red]Error:[/] ")
            raise typer.Exit(1) from error


def _origin(error: typer.BadParameter) -> str:
    """Where a wrong value comes from, if it was not typed."""
    name = getattr(error.param, "name", None)
    source = error.ctx.get_parameter_source(name) if error.ctx and name else None
    return " (a value of the project file)" if getattr(source, "name", "") == "DEFAULT_MAP" else ""


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end the context as Ctrl-C does, so that part files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise Terminated

    old = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


class LogHandler(logging.Handler):
    """Shows what libraries log, such as about damaged files, as the other messages are shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record on standard error."""
        say(self.format(record))


class CleanConsole(Console):
    """A console on which all text is `clean`, and no name of an emoji becomes one."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean what is about to be shown; styles are not part of the text yet."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(clean(part.text), part.style)

    def on_broken_pipe(self) -> None:
        """Leave it to `_unread`; rich would end the program with an error."""
        raise BrokenPipeError


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    with suppress(AttributeError, ValueError):  # not a text file, or one that was written to differently
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # for what its encoding lacks
    return CleanConsole(stderr=stderr, width=None if stream.isatty() else WIDE, emoji=False)


@contextmanager
def _unread() -> Iterator[None]:
    """Let what is written to a pipe that nobody reads any more be lost: the work is done."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                try:
                    stream.flush()
                except BrokenPipeError:
                    os.dup2(nowhere, stream.fileno())  # or what is left in its buffer fails at exit
        os.close(nowhere)
