"""The state of an evolutionary search, and the file that it can be resumed from."""

import zipfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._files import atomic_write
from bimichi._types import Floats
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.learning.spaces import Space

MEMBERS = {f"{name}.npy" for name in ("values", "state", "J", "history", "fingerprint")}


@dataclass(frozen=True)
class Population:
    """The state of a search between two generations; that at the end of a block is all that a checkpoint holds."""

    values: Floats
    state: NDArray[np.uint64]
    J: Floats
    history: tuple[float, ...]

    @classmethod
    def start(cls, n_values: int, size: int, rng: Generator) -> "Population":
        """Prepare a population of so many measures of `n_values` each; they are drawn in the first block."""
        state = rng.integers(0, 2**64, size, dtype=np.uint64)
        return cls(np.zeros((size, n_values)), state, np.full(size, np.inf), ())

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

    def after(self, values: Floats, state: NDArray[np.uint64], tracks: Floats) -> "Population":
        """Return the population some generations later, given each member's J after each of them."""
        least = np.minimum.accumulate(np.append(self.history[-1:] or np.inf, tracks.min(axis=0)))[1:]
        return Population(values, state, tracks[:, -1], (*self.history, *least.tolist()))

    def save(self, path: str | PathLike[str], fingerprint: str) -> None:
        """Write a checkpoint, replacing the last one only when complete."""
        arrays: dict[str, Any] = {**vars(self), "fingerprint": fingerprint}
        atomic_write(path, lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | PathLike[str], fingerprint: str, space: Space, size: int) -> "Population":
        """Read a checkpoint of `size` measures, if it is of the search with this fingerprint."""
        try:
            found, made = cls._read(Path(path))
        except Exception as error:  # whatever NumPy makes of a damaged file
            raise ModelFileError(f"Cannot read the checkpoint {path}: {error}.") from error
        if found != fingerprint:
            raise ModelFileError(
                f"The checkpoint {path} is of other data, another objective, other solver parameters or another "
                "version. Delete it to start over, or name another file."
            )
        try:
            made._check(space, size)
        except InvalidInputError as error:
            raise ModelFileError(f"The checkpoint {path} is damaged: {error} Delete it to start over.") from error
        return made

    @classmethod
    def _read(cls, path: Path) -> tuple[str, "Population"]:
        with zipfile.ZipFile(path) as archive:  # uncompressed, it takes no more memory than its own size
            members = archive.infolist()
            if sorted(member.filename for member in members) != sorted(MEMBERS):
                raise ValueError("its members are not those of a checkpoint")
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("it is compressed")
        with np.load(path, allow_pickle=False) as file:
            values, state, J, history = (file[name] for name in ("values", "state", "J", "history"))
            if not all(isinstance(array, np.ndarray) for array in (values, state, J, history)):
                raise ValueError("its members are not arrays")
            return str(file["fingerprint"]), cls(values, state, J, tuple(np.atleast_1d(history).tolist()))

    def _check(self, space: Space, size: int) -> None:
        """Refuse arrays that kernels could not take: these trust shapes, types and values."""
        shapes = {"values": (np.float64, (size, space.size)), "state": (np.uint64, (size,)), "J": (np.float64, (size,))}
        for name, (kind, shape) in shapes.items():
            array = getattr(self, name)
            if array.dtype != kind or array.shape != shape:
                raise InvalidInputError(f"{name} is {array.dtype} {array.shape}, not {kind.__name__} {shape}.")
        if not all(isinstance(value, float) for value in self.history) or np.isnan(self.history).any():
            raise InvalidInputError("its history must be numbers.")
        if np.isnan(self.J).any() or (np.diff(self.history) > 0).any():
            raise InvalidInputError("J must be numbers that never rise.")
        for values in self.values if self.generation else ():
            space.measure(values)  # which checks bounds and order
