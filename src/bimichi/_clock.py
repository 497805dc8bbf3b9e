"""How long work takes, without the time in which kernels are compiled, which happens once per installation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class CompileClock:
    """The time during which at least one thread of this process compiled or loaded kernels."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth, self._since, self._spent = 0, 0.0, 0.0

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
        """A clock that stands still while kernels are compiled."""
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
