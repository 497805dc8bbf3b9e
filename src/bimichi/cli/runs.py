"""`run.json`: a record of a run beside its results, so that it can be repeated."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import bimichi
from bimichi._files import atomic_write, plain, sha256_of


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
        self._hashes = {str(path): self._pool.submit(sha256_of, path) for path in dict.fromkeys(inputs)}

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
