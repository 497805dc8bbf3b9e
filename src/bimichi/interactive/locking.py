"""A project is open in one studio at a time, so that two do not overwrite each other's labels."""

from contextlib import suppress
from pathlib import Path
from typing import IO

from bimichi._files import fcntl
from bimichi.errors import BimichiError


class ProjectLock:
    """Holds one project; the system releases it if the program is killed. Without locks, as on Windows, it is empty."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None

    def move(self, project: Path) -> None:
        """Hold another project instead."""
        path = project.resolve().with_name(f".{project.name}.lock")
        if path == self._path or fcntl is None:
            return
        try:
            file = path.open("ab")
        except OSError as error:
            raise BimichiError(f"Cannot write to {path.parent}: {error.strerror or error}.") from error
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise BimichiError(f"{project} is open in another studio; close that first, or open another.") from error
        except OSError:  # a network disk without locks
            file.close()
            return
        self.release()
        self._file, self._path = file, path

    def release(self) -> None:
        """Release the project."""
        if self._file is not None and self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()
        self._file = self._path = None
