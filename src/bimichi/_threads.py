"""BLAS on one thread, while threads of our own share the cores."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

_lock = Lock()
_inside: list[threadpool_limits] = []  # the limit, once for every block that is in progress


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread within the block; blocks in several threads may overlap.

    The limit is one of the process. So the first block sets it, and the last one to end restores what was before.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else threadpool_limits(1, "blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()
