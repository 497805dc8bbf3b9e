"""Large files that appear under their name only when they are whole."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO

from bimichi.errors import BimichiError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed anyway
    fcntl = None

__all__ = ["unfinished"]


@contextmanager
def unfinished(output: Path) -> Iterator[Path]:
    """Lend an empty file beside `output`; it takes that name, its bytes on disk, when the context ends without error.

    What a killed run left behind is removed first. A file that is still being written is locked, so that it is told
    from such a leftover, and several runs to one name do not meet: the last to finish stays.
    """
    temporary = output.with_name(f".{output.name}.{secrets.token_hex(8)}.part")
    try:
        _remove_leftovers(output)
        with temporary.open("xb") as file:
            _lock(file)
            yield temporary
            os.fsync(file.fileno())
        temporary.replace(output)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BimichiError(f"Cannot write {output}: {error.strerror or error}.") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_leftovers(output: Path) -> None:
    for leftover in output.parent.iterdir():
        name = leftover.name
        if not (name.startswith(f".{output.name}.") and name.endswith(".part")):
            continue
        with suppress(OSError), leftover.open("rb") as file:  # OSError: it is locked, or someone else has removed it
            _lock(file)
            leftover.unlink()


def _lock(file: IO[bytes]) -> None:
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
