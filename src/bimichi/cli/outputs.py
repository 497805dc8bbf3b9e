"""Where results are written, which is checked before the work; and beside them `run.json`, to repeat it."""

import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import bimichi
from bimichi._files import atomic_write, plain
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


class Run:
    """A run of a command, as a context: the SHA-256 of inputs is computed in the background, parts are timed.

    >>> with Run("nothing", {"sources": [Path("a.png")]}, seed=1) as run:
    ...     with run.timed("work"):
    ...         pass
    >>> run.record()["parameters"], list(run.record()["seconds"])
    ({'sources': ['a.png']}, ['work', 'total'])
    """

    def __init__(
        self, command: str, parameters: Mapping[str, Any], inputs: Iterable[Path] = (), seed: int | None = None
    ) -> None:
        self.command, self.parameters, self.seed = command, plain(parameters), seed
        self.seconds: dict[str, float] = {}
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self._pool = ThreadPoolExecutor(1)
        self._hashes = {str(path): self._pool.submit(_sha256, path) for path in dict.fromkeys(inputs)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time spent in the context to this part of the run."""
        start = time.perf_counter()
        yield
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - start

    def record(self, outputs: Iterable[Path] = ()) -> dict[str, Any]:
        """Return the record that `write` writes."""
        inputs = {path: digest.result() for path, digest in self._hashes.items()}
        seconds = self.seconds | {"total": time.perf_counter() - self._clock}
        return {
            "bimichi": bimichi.__version__,
            "command": self.command,
            "parameters": self.parameters,
            "seed": self.seed,
            "started": self._started.isoformat(timespec="seconds"),
            "inputs": inputs,
            "outputs": [str(path) for path in outputs],
            "seconds": {part: round(taken, 3) for part, taken in seconds.items()},
        }

    def write(self, path: Path, outputs: Iterable[Path] = ()) -> Path:
        """Write the record as JSON to `path`, whole or not at all; see `run_path`."""
        text = json.dumps(self.record(outputs), indent=1)
        atomic_write(path, lambda file: file.write(text.encode()))
        return path


def run_path(output: Path) -> Path:
    """Return where the record is written: beside a file (``model.json.run.json``), or into a folder (``run.json``)."""
    return output / "run.json" if output.is_dir() else output.with_name(f"{output.name}.run.json")


def _sha256(path: Path) -> str:
    if path.is_dir():  # a Zarr store
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listed = "".join(f"{file.relative_to(path).as_posix()} {_sha256(file)}\n" for file in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
