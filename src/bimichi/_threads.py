"""BLAS on one thread, while threads of our own share the cores."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

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
