"""The state of an evolutionary search, and the file that it can be resumed from."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._files import atomic_write
from bimichi._types import Floats
from bimichi.errors import ModelFileError


@dataclass
class Population:
    """The state of a search between two blocks; all that a checkpoint holds."""

    values: Floats
    state: NDArray[np.uint64]
    J: Floats
    history: list[float]

    @classmethod
    def start(cls, n_values: int, size: int, rng: Generator) -> "Population":
        """Prepare a population of so many measures of `n_values` each; they are drawn in the first block."""
        state = rng.integers(0, 2**64, size, dtype=np.uint64)
        return cls(np.zeros((size, n_values)), state, np.full(size, np.inf), [])

    @property
    def generation(self) -> int:
        """How many generations have passed."""
        return len(self.history)

    @property
    def best(self) -> Floats:
        """A copy of the best measure so far: members only improve, so it is among them."""
        return np.array(self.values[np.argmin(self.J)])

    @property
    def best_value(self) -> float:
        """The J of the best measure so far."""
        return float(self.J.min())

    def close_block(self, tracks: Floats) -> None:
        """Take note of each member's J, generation by generation."""
        self.J = tracks[:, -1]
        self.history.extend(np.minimum.accumulate(tracks.min(axis=0)).tolist())

    def save(self, path: str | PathLike[str], fingerprint: str) -> None:
        """Write a checkpoint, replacing the last one only when complete."""
        arrays: dict[str, Any] = {**vars(self), "fingerprint": fingerprint}
        atomic_write(path, lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | PathLike[str], fingerprint: str) -> "Population":
        """Read a checkpoint, if it is of the search with this fingerprint."""
        try:
            with np.load(path, allow_pickle=False) as file:
                values, state, J, history = (file[name] for name in ("values", "state", "J", "history"))
                found = str(file["fingerprint"])
        except Exception as error:  # whatever NumPy makes of a damaged file
            raise ModelFileError(f"Cannot read the checkpoint {path}: {error}.") from error
        if found != fingerprint:
            raise ModelFileError(
                f"The checkpoint {path} is of other data, another objective or other solver parameters. "
                "Delete it to start anew, or name another file."
            )
        return cls(values, state, J, history.tolist())
