"""A progress bar where work is long, someone watches, and rich is installed; and a way to stop work from outside."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asked: ContextVar[Callable[[], bool] | None] = ContextVar("bimichi_stop", default=None)


class Stopped(Exception):
    """Work was stopped from outside before it was done."""


@contextmanager
def stopping(asked: Callable[[], bool]) -> Iterator[None]:
    """Let work in this context end with `Stopped` at a `checkpoint` once `asked` is true."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def checkpoint() -> None:
    """Raise `Stopped` if someone asked for it; solvers call it between steps."""
    asked = _asked.get()
    if asked is not None and asked():
        raise Stopped("Stopped, since something newer is wanted.")


@contextmanager
def progress_bar(what: str, total: int, verbose: int) -> Iterator[Callable[[int, float | None], None]]:
    """Lend ``advance(steps, value)``; it draws on a terminal if `verbose`, and does nothing elsewhere."""
    if not verbose or not sys.stderr.isatty():
        yield lambda steps, value: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda steps, value: None
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[J]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, J="")
        yield lambda steps, value: bar.update(task, advance=steps, J="" if value is None else f"J = {value:.5g}")


@contextmanager
def status_line(what: str, verbose: int) -> Iterator[Callable[[str], None]]:
    """Lend a function that shows one line of text, replaced by the next, on a terminal if `verbose`."""
    if not verbose or not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        from rich.console import Console
    except ImportError:
        yield lambda text: None
        return
    with Console(stderr=True).status(what) as line:
        yield lambda text: line.update(f"{what}: {text}")
