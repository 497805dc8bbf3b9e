"""Large files that appear under their name only when they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO

from bimichi.errors import BimichiError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows, where files cannot be locked this way
    fcntl = None

__all__ = ["unfinished"]


@contextmanager
def unfinished(output: Path) -> Iterator[Path]:
    """Lend a file beside `output`; it takes that name, its bytes on disk, when the context ends without error.

    Its name is that of the output with a dot before and ``.part`` behind, so that what a killed run left is overwritten
    by the next one. While it is written it is locked: a second run to the same output is an error.
    """
    temporary = output.with_name(f".{output.name}.part")
    try:
        with _claimed(temporary, output) as file:
            try:
                yield temporary
                os.fsync(file.fileno())
                if fcntl is None:
                    file.close()  # Windows renames no open file
                temporary.replace(output)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BimichiError(f"Cannot write {output}: {error.strerror or error}.") from error


def _claimed(temporary: Path, output: Path) -> IO[bytes]:
    """Open and lock the file. If another run has finished or removed it meanwhile, there is a new one to lock."""
    while True:
        file = temporary.open("ab")
        try:
            _lock(file)
        except BlockingIOError as error:
            file.close()
            raise BimichiError(f"Cannot write {output}: another run is writing it now.") from error
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), temporary.stat()):
                return file
        file.close()


def _lock(file: IO[bytes]) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):
            raise
        # Some network disks have no locks; then nothing tells two runs to one output apart.
