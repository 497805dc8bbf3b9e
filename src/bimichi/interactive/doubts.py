"""Warnings of the library as sentences for the page, each with what it is about, whichever thread it comes from.

`warnings.catch_warnings` changes what all threads do, and two that overlap leave the changes of one behind.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

_heard: ContextVar[list[str] | None] = ContextVar("bimichi_doubts", default=None)
_lock = Lock()
_before: list[Any] = []
_count = 0


@contextmanager
def doubts() -> Iterator[list[str]]:
    """Lend a list of the warnings that this thread gives in the context; they are not shown elsewhere."""
    found: list[str] = []
    token = _heard.set(found)
    _listen(1)
    try:
        yield found
    finally:
        _listen(-1)
        _heard.reset(token)


def _listen(change: int) -> None:
    """Let warnings come here as long as anyone listens."""
    global _count
    with _lock:
        if _count == 0:
            _before[:] = [warnings.filters[:], warnings.showwarning]
            warnings.simplefilter("always")
            warnings.showwarning = _told
        _count += change
        if _count == 0:
            warnings.filters[:], warnings.showwarning = _before  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]  # or what was decided by them stays


def _told(message: Warning | str, *more: Any, **named: Any) -> None:
    found = _heard.get()
    if found is None:
        _before[1](message, *more, **named)
    elif str(message) not in found:
        found.append(str(message))
