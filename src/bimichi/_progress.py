"""Progress bars, a notice of compiling and a clock without it, a way to stop work, and BLAS on one thread."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

FIRST_USE = "Compiling kernels for this machine, once per installation; later runs load them."
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
def progress_bar(title: str, total: int, verbose: int) -> Iterator[Callable[[int, float | None], None]]:
    """Yield ``advance(steps, value)``; it draws on a terminal if `verbose`, and does nothing elsewhere."""
    console = _console(verbose)
    if console is None:
        yield lambda steps, value: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[J]}"),
    )
    bar = Progress(*columns, console=console, transient=True)
    with COMPILE_NOTICE.giving_way(), bar:
        task = bar.add_task(title, total=total, J="")
        yield lambda steps, value: bar.update(task, advance=steps, J="" if value is None else f"J = {value:.5g}")


@contextmanager
def status_line(title: str, verbose: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows one line of text, replaced by the next, on a terminal if `verbose`."""
    console = _console(verbose)
    if console is None:
        yield lambda text: None
        return
    with COMPILE_NOTICE.giving_way(), console.status(title) as line:
        yield lambda text: line.update(f"{title}: {text}")


def _console(verbose: int) -> Any:
    if not verbose or not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _announce(text: str) -> None:
    """Print a message where someone reads it at once, a terminal or a notebook; otherwise, log it."""
    if sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel"):
        sys.stderr.write(f"bimichi: {text}\n")
        sys.stderr.flush()
    else:
        logging.getLogger("bimichi").info(text)


@dataclass
class CompileNotice:
    """One message when kernels are first compiled, and a bar while they are, on a terminal with rich.

    `say` prints the message, `bars` is whether bars may be drawn; the program sets both by its options.
    """

    say: Callable[[str], None] = _announce
    bars: bool = True
    _count: int = 0
    _others: int = 0
    _bar: Any = None

    def begin(self, kernel: str) -> None:
        """Report that a kernel is being compiled."""
        self._count += 1
        if self._count == 1:
            self.say(FIRST_USE)
        if self.bars and not self._others:
            self._bar = _moving_bar(f"kernel {self._count}: {kernel.strip('_')}")

    def end(self) -> None:
        """Report that it is compiled."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Draw no bar while another is shown: two in one place would overwrite each other."""
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1


def _moving_bar(text: str) -> Any:
    """Start a bar for work of unknown length; None without a terminal or rich."""
    console = _console(verbose=1)
    if console is None:
        return None
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("compiling"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    bar = Progress(*columns, console=console, transient=True)
    bar.add_task(text, total=None)
    bar.start()
    return bar


COMPILE_NOTICE = CompileNotice()


_limited = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread within the block.

    The limit is one of the process. Where blocks in several threads overlap, only the first sets and restores it: one
    that began meanwhile would restore what the first had set.
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        _limited.release()


@dataclass
class CompileClock:
    """The time during which at least one thread of this process compiled or loaded kernels."""

    _lock: Lock = field(default_factory=Lock)
    _depth: int = 0
    _since: float = 0.0
    _spent: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time in this context, once if several threads or nested kernels are in it."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> bool:
        """Start counting; return whether nothing else was being compiled."""
        with self._lock:
            if self._depth == 0:
                self._since = time.perf_counter()
            self._depth += 1
            return self._depth == 1

    def leave(self) -> bool:
        """Stop counting; return whether nothing else is being compiled."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._spent += time.perf_counter() - self._since
            return self._depth == 0

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._now()[1]

    @property
    def elsewhere(self) -> float:
        """The time of a clock that stands still while kernels are compiled."""
        now, compiled = self._now()
        return now - compiled

    def _now(self) -> tuple[float, float]:
        with self._lock:
            now = time.perf_counter()
            return now, self._spent + (now - self._since if self._depth else 0.0)


COMPILING = CompileClock()


class Stopwatch:
    """Seconds since it was made, without those in which kernels were compiled, in whichever thread.

    >>> Stopwatch().seconds < 60
    True
    """

    def __init__(self) -> None:
        self._start = COMPILING.elsewhere

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return COMPILING.elsewhere - self._start
