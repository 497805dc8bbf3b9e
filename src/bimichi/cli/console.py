"""Output and errors of commands: results go to standard output, everything else to standard error."""

import json
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

import bimichi
from bimichi._files import atomic_write, plain, sha256_of
from bimichi._html import Cell, Table
from bimichi._progress import COMPILE_NOTICE, Stopwatch
from bimichi.errors import AnnotationWarning, BimichiError, InvalidInputError, shortened, with_code

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
    """The output of a command, and its options --quiet and --json."""

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
    return BimichiError(
        "\n".join([*([f"{counts}:"] if counts else []), *(f"{k}: {v}" for k, v in problems.items())]),
        code="scenes-failed",
    )


def say(text: str, heading: str = "") -> None:
    """Print a message on standard error, not wrapped, and with nothing in it taken as markup."""
    with _unread():
        _console(stderr=True).print(f"{heading}{escape(shortened(text))}", soft_wrap=True, highlight=False)


def clean(text: str) -> str:
    """Return text with control characters as escapes, so that names and files cannot steer the terminal."""
    return CONTROLS.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors that users can correct into a message and exit code 1, and Ctrl-C into 130; others are bugs."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AnnotationWarning)
        warnings.showwarning = lambda message, *_, **__: say(with_code(message), "[yellow]Warning:[/] ")
        try:
            yield
        except KeyboardInterrupt as error:
            say("Stopped; no file is half-written.")
            raise typer.Exit(TERMINATED if isinstance(error, Terminated) else 130) from None
        except typer.BadParameter as error:
            error.message = clean(f"{error.message}{_origin(error)}")  # which may show what was typed
            raise
        except (BimichiError, ImportError, OSError, MemoryError) as error:
            text = with_code(error) or type(error).__name__
            if isinstance(error, OSError) and error.strerror:
                text = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
            say(text, "[bold red]Error:[/] ")
            raise typer.Exit(1) from error


def _origin(error: typer.BadParameter) -> str:
    """Return where a wrong value comes from, if it was not typed."""
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
        """Raise an error for `_unread` to catch; rich would end the program."""
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


def output_file(path: Path, suffixes: Sequence[str] = ()) -> Path:
    """Check that a file can be written, with one of the suffixes if given, and create its folder if it is missing."""
    if str(path) == "-":
        raise InvalidInputError(
            "Results are written to files, not to standard output; name one instead of -.", code="output-stdout"
        )
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidInputError(
            f"The output must end in {' or '.join(suffixes)}, got {path}.", code="output-suffix", value=path
        )
    if path.is_dir():
        raise BimichiError(f"Cannot write {path}: it is a folder; name a file in it.", code="output-folder")
    output_folder(path.parent)
    return path


def output_folder(path: Path) -> Path:
    """Check that files can be written to a folder, and create it if it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise BimichiError(
            f"Cannot write to the folder {path}: {error.strerror or error}.", code="folder-unwritable"
        ) from error


def output_files(output: Path, scenes: Sequence[str], many: bool, suffixes: Sequence[str]) -> list[Path]:
    """Return one file per scene: `output` itself, or, if there may be many, files of the first suffix in it."""
    if not many:
        return [output_file(output, suffixes)]
    if output.suffix.lower() in suffixes:
        raise InvalidInputError(
            f"With folders or patterns as sources, the output must be a folder, got {output}.",
            code="output-not-folder",
            value=output,
        )
    output_folder(output)
    return [output / f"{scene}{suffixes[0]}" for scene in scenes]


def keep_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise an error if an output would replace an input."""
    read = {path.resolve() for path in inputs}
    for path in outputs:
        if path.resolve() in read:
            raise BimichiError(
                f"The output {path} is one of the inputs and would replace it. Choose another name.",
                code="output-is-input",
            )


class Run:
    """A run of a command, as a context: the SHA-256 of inputs is computed in the background, parts are timed.

    Time to compile kernels is booked as "compile", and not as that of a part.

    >>> with Run("nothing", {"sources": [Path("a.png")]}, seed=1) as run:
    ...     with run.timed("work"):
    ...         pass
    >>> run.record()["parameters"], list(run.record()["seconds"])
    ({'sources': ['a.png']}, ['work', 'compile', 'total'])
    """

    def __init__(
        self, command: str, parameters: Mapping[str, Any], inputs: Iterable[Path] = (), seed: int | None = None
    ) -> None:
        self.command, self.parameters, self.seed = command, plain(parameters), seed
        self.seconds: dict[str, float] = {}
        self._started, self._clock, self._watch = datetime.now(UTC), time.perf_counter(), Stopwatch()
        self._pool = ThreadPoolExecutor(1)
        self._hashes = {str(path): self._pool.submit(sha256_of, path) for path in dict.fromkeys(inputs)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time spent in the context to this part of the run."""
        watch = Stopwatch()
        yield
        self.seconds[part] = self.seconds.get(part, 0.0) + watch.seconds

    def record(self, outputs: Iterable[Path] = ()) -> dict[str, Any]:
        """Return the record that `write` writes."""
        inputs = {path: digest.result() for path, digest in self._hashes.items()}
        total = time.perf_counter() - self._clock
        seconds = self.seconds | {"compile": max(0.0, total - self._watch.seconds), "total": total}
        return {
            "bimichi": bimichi.__version__,
            "command": self.command,
            "parameters": self.parameters,
            "seed": self.seed,
            "started": self._started.isoformat(timespec="seconds"),
            "inputs": inputs,
            "outputs": [str(path) for path in outputs],
            "seconds": {part: round(taken, 3) for part, taken in seconds.items()},
        }

    def write(self, path: Path, outputs: Iterable[Path] = ()) -> Path:
        """Write the record as JSON to `path`, whole or not at all; see `run_path`."""
        text = json.dumps(self.record(outputs), indent=1)
        atomic_write(path, lambda file: file.write(text.encode()))
        return path


def run_path(output: Path) -> Path:
    """Return where the record is written: beside a file (``model.json.run.json``), or into a folder (``run.json``)."""
    return output / "run.json" if output.is_dir() else output.with_name(f"{output.name}.run.json")
