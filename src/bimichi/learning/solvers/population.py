"""The state of an evolutionary search, and the file that it can be taken up from."""

from dataclasses import dataclass
from io import BytesIO
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bimichi._files import atomic_write
from bimichi._types import Floats
from bimichi.errors import ModelFileError

__all__ = ["Population"]


@dataclass
class Population:
    """The state of a search between two blocks; all that a checkpoint holds."""

    values: Floats
    state: NDArray[np.uint64]
    J: Floats
    best: Floats
    best_value: float
    history: list[float]
    generation: int

    @classmethod
    def start(cls, n_values: int, size: int, rng: np.random.Generator) -> "Population":
        """Prepare a population of so many measures of `n_values` each; they are drawn in the first block."""
        empty = np.zeros((size, n_values))
        state = rng.integers(0, 2**64, size, dtype=np.uint64)
        return cls(empty, state, np.full(size, np.inf), empty[0].copy(), np.inf, [], 0)

    def close_block(self, tracks: Floats) -> None:
        """Take note of each member's J, generation by generation."""
        self.J = tracks[:, -1]
        self.history.extend(np.minimum.accumulate(tracks.min(axis=0)).tolist())
        self.generation += tracks.shape[1]
        leader = int(np.argmin(self.J))  # members only improve, so the best so far is alive
        self.best, self.best_value = self.values[leader].copy(), float(self.J[leader])

    def save(self, path: str | PathLike[str], fingerprint: str) -> None:
        """Write a checkpoint, replacing the last one only when complete."""
        buffer = BytesIO()
        np.savez(
            buffer,
            fingerprint=np.array(fingerprint),
            values=self.values,
            state=self.state,
            J=self.J,
            history=np.array(self.history),
            generation=np.array(self.generation),
        )
        atomic_write(path, lambda file: file.write(buffer.getvalue()))

    @classmethod
    def load(cls, path: str | PathLike[str], fingerprint: str) -> "Population":
        """Read a checkpoint, if it is of the search with this fingerprint."""
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {name: file[name] for name in ("fingerprint", "values", "state", "J", "history", "generation")}
        except Exception as error:  # whatever NumPy makes of a damaged file
            raise ModelFileError(f"Cannot read the checkpoint {path}: {error}.") from error
        if str(parts["fingerprint"]) != fingerprint:
            raise ModelFileError(
                f"The checkpoint {path} is of other data, another objective or other solver parameters. "
                "Delete it to start anew, or name another file."
            )
        leader = int(np.argmin(parts["J"]))
        return cls(
            parts["values"],
            parts["state"],
            parts["J"],
            parts["values"][leader].copy(),
            float(parts["J"][leader]),
            parts["history"].tolist(),
            int(parts["generation"]),
        )
