"""Where results go; what cannot be written is found before the work."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from bimichi.errors import BimichiError, InvalidInputError

__all__ = ["output_file", "output_folder"]


def output_file(path: Path, suffixes: Sequence[str] = (), inputs: Iterable[Path] = ()) -> Path:
    """Check that a file can be written, and make its folder if it is missing.

    Parameters
    ----------
    path : Path
        Where the result is to go; an old file will be replaced.
    suffixes : sequence of str, optional
        How its name must end, such as ".tif"; in any way by default.
    inputs : iterable of Path, optional
        Files that it must not replace.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidInputError(f"The output must end in {' or '.join(suffixes)}, got {path}.")
    if path.is_dir():
        raise BimichiError(f"Cannot write {path}: it is a folder; name a file in it.")
    output_folder(path.parent)
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise BimichiError(f"The output {path} is one of the inputs; it would be replaced. Name another file.")
    return path


def output_folder(path: Path) -> Path:
    """Check that files can be written to a folder, and make it if it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise BimichiError(f"Cannot write to the folder {path}: {error.strerror or error}.") from error
