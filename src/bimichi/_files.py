"""Files that appear under their name only when they are complete, and values as JSON can hold them."""

import hashlib
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from os import PathLike
from pathlib import Path, PurePath
from types import ModuleType
from typing import IO, Any

import numpy as np

from bimichi.errors import BimichiError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows, where files cannot be locked this way
    fcntl = None

PART = re.compile(r"\..+\.[0-9a-f]{16}\.part")
"""Names of files that are being written; see `replacing`."""
STALE = 3600.0
"""Seconds after which such a file, if nobody holds it, is that of a run that was killed."""
_SWEPT: set[Path] = set()


def atomic_write(path: str | PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` with a binary file so that `path` holds either all of it or what it held before; see `replacing`."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        write(file)


@contextmanager
def replacing(path: str | PathLike[str], *, alone: bool = False) -> Iterator[Path]:
    """Yield a new, empty file; when the context ends without error, its bytes are on disk and it replaces `path`.

    It is in the folder of the file that it replaces, under a name that cannot be guessed, so that nobody else can
    have put a file or link there. A symbolic link is followed; an existing file keeps its mode. `alone` is for large
    files: a second run that writes to the same path is an error, and what a killed run left is removed first. Without
    it, the last of several runs to end prevails; so it does on Windows and on network disks without locks. What killed
    runs left in the folder long ago is removed. If the file cannot be written, or `path` is a folder, a device or the
    like, `BimichiError` is raised.
    """
    try:
        named = Path(path)
        target = Path(os.path.realpath(named)) if named.is_symlink() else named
        token = secrets.token_hex(8)
        temporary = _beside(target, f"{token}.part")
        mode = _mode(target)
    except (TypeError, ValueError) as error:  # no path, or one with a NUL in it
        raise BimichiError(f"Cannot write {path!r}: {error}.", code="output-unwritable") from error
    except OSError as error:
        raise BimichiError(f"Cannot write {path}: {error.strerror or error}.", code="output-unwritable") from error
    try:
        with ExitStack() as stack:
            if alone:
                stack.enter_context(_alone(target, token))
            # Whatever the mode of the old file forbids to read is not shown while it is written either.
            file_number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
            stack.callback(_remove, temporary)
            _keep_locked(file_number, stack)
            _sweep(target.parent)
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            temporary.replace(target)
    except OSError as error:
        raise BimichiError(f"Cannot write {path}: {error.strerror or error}.", code="output-unwritable") from error


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: NaN and infinity become null, paths and all other objects text."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | PurePath):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or, for a folder such as a Zarr store, of the names and hashes of its files."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listed = "".join(f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n" for file in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _mode(target: Path) -> int | None:
    """Return the permissions of the file that is to be replaced, None if there is none."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        what = "a folder" if stat.S_ISDIR(found) else "no regular file"
        raise BimichiError(f"Cannot write {target}: it is {what}; choose another name.", code="output-kind")
    return stat.S_IMODE(found)


def _keep_locked(file: int, stack: ExitStack) -> None:
    """Lock a part file as long as it is written, so that `_sweep` of another run leaves it alone."""
    if fcntl is None:
        os.close(file)
        return
    stack.callback(os.close, file)
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(folder: Path) -> None:
    """Remove part files that nobody has locked or changed for an hour; each folder is looked through once."""
    if fcntl is None or folder in _SWEPT:
        return
    _SWEPT.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not PART.fullmatch(entry.name):
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < STALE:
                    continue
                file = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(Path(entry.path))
                finally:
                    os.close(file)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


@contextmanager
def _alone(target: Path, token: str) -> Iterator[None]:
    """Lock a file beside `target` that holds the token of what is being written, for the next run if this is killed."""
    lock = _beside(target, "lock")
    file = _locked(lock, target)
    if file is None:
        yield
        return
    with file:
        try:
            left = file.read(100).decode(errors="replace")
            if re.fullmatch("[0-9a-f]{16}", left):
                _remove(_beside(target, f"{left}.part"))
            file.seek(0)
            file.truncate()
            file.write(token.encode())
            file.flush()
            yield
        finally:
            _remove(lock)


def _locked(lock: Path, target: Path) -> IO[bytes] | None:
    """Open and lock the file. If another run has removed it meanwhile, there is a new one to lock."""
    if fcntl is None:
        return None
    while True:
        file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb+")
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise BimichiError(f"Cannot write {target}: another run is writing it now.", code="output-busy") from error
        except OSError:  # some network disks have no locks; then nothing keeps two runs to one output apart
            file.close()
            _remove(lock)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()
