"""Where results are written; that it is possible is checked before the work."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from bimichi.errors import BimichiError, InvalidInputError


def output_file(path: Path, suffixes: Sequence[str] = ()) -> Path:
    """Check that a file can be written, with one of the suffixes if given, and create its folder if it is missing."""
    if str(path) == "-":
        raise InvalidInputError("Results are written to files, not to standard output; name one instead of -.")
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidInputError(f"The output must end in {' or '.join(suffixes)}, got {path}.")
    if path.is_dir():
        raise BimichiError(f"Cannot write {path}: it is a folder; name a file in it.")
    output_folder(path.parent)
    return path


def output_folder(path: Path) -> Path:
    """Check that files can be written to a folder, and create it if it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise BimichiError(f"Cannot write to the folder {path}: {error.strerror or error}.") from error


def output_files(output: Path, scenes: Sequence[str], many: bool, suffixes: Sequence[str]) -> list[Path]:
    """Return one file per scene: `output` itself, or, if there may be many, files of the first suffix in it."""
    if not many:
        return [output_file(output, suffixes)]
    if output.suffix.lower() in suffixes:
        raise InvalidInputError(f"With folders or patterns as sources, the output must be a folder, got {output}.")
    output_folder(output)
    return [output / f"{scene}{suffixes[0]}" for scene in scenes]


def keep_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise an error if an output would replace an input."""
    read = {path.resolve() for path in inputs}
    for path in outputs:
        if path.resolve() in read:
            raise BimichiError(f"The output {path} is one of the inputs and would replace it. Choose another name.")
