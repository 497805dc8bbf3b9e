"""A progress bar where work is long, someone watches, and rich is installed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(what: str, total: int, verbose: int) -> Iterator[Callable[[int, float | None], None]]:
    """Lend ``advance(steps, value)``; it draws on a terminal if `verbose`, and does nothing elsewhere."""
    console = _console(verbose)
    if console is None:
        yield lambda steps, value: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[J]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, J="")
        yield lambda steps, value: bar.update(task, advance=steps, J="" if value is None else f"J = {value:.5g}")


@contextmanager
def status_line(what: str, verbose: int) -> Iterator[Callable[[str], None]]:
    """Lend a function that shows one line of text, replaced by the next, on a terminal if `verbose`."""
    console = _console(verbose)
    if console is None:
        yield lambda text: None
        return
    with console.status(what) as line:
        yield lambda text: line.update(f"{what}: {text}")


def _console(verbose: int) -> Any:
    if not verbose or not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)
