"""What may be opened: regular files, of a bounded size once unpacked; and what is raised if one cannot be read."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from bimichi.errors import InvalidInputError

MAX_PIXELS = 500_000_000
"""Values (pixels times bands) that an image may unpack to, unless the environment variable of this name allows more."""

VARIABLE = "BIMICHI_MAX_PIXELS"

AGAIN = "Copy or export it again."
"""The remedy for damaged files."""

KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_file(path: str | PathLike[str]) -> Path:
    """Return the path of a regular file that exists; anything else, such as a pipe, is refused before it is opened."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or f"it is not a path to a file ({error})"
        raise InvalidInputError(f"Cannot read {path!s}: {reason}.") from error
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "not a regular file")
        raise InvalidInputError(f"Cannot read {path!s}: it is {kind}; name a file.")
    return Path(path)


@contextmanager
def reading(path: str | PathLike[str], fault: str, reason: Callable[[Exception], str] = str) -> Iterator[None]:
    """Turn whatever is raised while a file is read into an error that names it; `fault` says what may be wrong."""
    try:
        yield
    except ImportError:
        raise
    except MemoryError as error:  # which does not mean that the file is damaged
        raise InvalidInputError(
            f"Cannot read {path!s}: there is not enough memory for it. Close other programs, or use a smaller file."
        ) from error
    except InvalidInputError as error:
        if str(error).startswith("Cannot read"):
            raise
        raise InvalidInputError(f"Cannot read {path!s}: {error}") from error
    except Exception as error:  # decoders raise all kinds of errors
        if isinstance(error, OSError) and error.strerror:
            raise InvalidInputError(f"Cannot read {path!s}: {error.strerror}.") from error
        raise InvalidInputError(f"Cannot read {path!s}: {fault} ({reason(error)}). {AGAIN}") from error


def check_size(n_values: int, what: str = "it") -> None:
    """Raise an error if an image would unpack to more values than are allowed."""
    limit = pixel_limit()
    if n_values > limit:
        raise InvalidInputError(
            f"{what} unpacks to {n_values:,} values (pixels times bands), more than the limit of {limit:,}. If the "
            f"file is what you expect, set the environment variable {VARIABLE}={n_values} and run it again."
        )


def pixel_limit() -> int:
    """Return how many values an image may unpack to."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return MAX_PIXELS
    if not given.isdecimal() or int(given) < 1:
        raise InvalidInputError(f"The environment variable {VARIABLE} must be a whole number above 0, got {given!r}.")
    return int(given)
