"""The state of an evolutionary search, how its measures are drawn, and the file that it can be resumed from."""

import zipfile
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._files import atomic_write
from bimichi._jit import jit
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.fit.spaces import Space
from bimichi.measures.lattice import Lattice, codes_by_height

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
        """Number of generations that have passed."""
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
            recorded, population = cls._read(Path(path))
        except Exception as error:  # whatever NumPy makes of a damaged file
            raise ModelFileError(
                f"Cannot read the checkpoint {path}: {error}.", code="checkpoint-unreadable"
            ) from error
        if recorded != fingerprint:
            raise ModelFileError(
                f"The checkpoint {path} is of other data, another objective, other solver parameters or another "
                "version. Delete it to start over, or name another file.",
                code="checkpoint-of-another",
            )
        try:
            population._check(space, size)
        except InvalidInputError as error:
            raise ModelFileError(
                f"The checkpoint {path} is damaged: {error} Delete it to start over.",
                code=error.code,
                argument=error.argument,
                value=error.value,
            ) from error
        return population

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
                raise InvalidInputError(
                    f"{name} is {array.dtype} {array.shape}, not {kind.__name__} {shape}.",
                    code="checkpoint-array",
                    argument=name,
                )
        if not all(isinstance(value, float) for value in self.history) or np.isnan(self.history).any():
            raise InvalidInputError("its history must be numbers.", code="checkpoint-history")
        if np.isnan(self.J).any() or (np.diff(self.history) > 0).any():
            raise InvalidInputError("J must be numbers that never rise.", code="checkpoint-history", argument="J")
        for values in self.values if self.generation else ():
            space.measure(values)  # which checks bounds and order


BREADTH_FIRST_LIMIT = 6


class DrawingOrder(NamedTuple):
    """The order of the lattice as lists of neighbours: those of e are start[e]..start[e+1].

    `cover` is for walking breadth-first from code 0, `other` for bounds while a measure is drawn.
    """

    cover_start: Ints
    cover: Ints
    start: Ints
    other: Ints
    above: Flags
    by_rank: Ints  # codes, rank 0, then +1, -1, +2, ...; empty when breadth-first
    rank_start: Ints
    fixed: Ints
    fixed_values: Floats
    in_order: Flags
    least: float


def drawing_order(lattice: Lattice, sampling: str | None) -> DrawingOrder:
    """Prepare to draw measures breadth-first, by ranks, or (None) by what suits the lattice.

    Breadth-first starts at code 0, the middle of the pairs but the bottom of the subsets: there, it would draw most
    elements near 1.
    """
    if sampling is None:
        small = lattice.base == 3 and lattice.n_sources <= BREADTH_FIRST_LIMIT
        sampling = "breadth-first" if small else "ranks"
    by_rank = rank_start = np.empty(0, np.int64)
    lower: NDArray[Any]
    upper: NDArray[Any]
    if sampling == "ranks":
        lower, upper = lattice.covers()
        groups = codes_by_height(lattice).values()
        by_rank, rank_start = np.concatenate([*groups]), np.cumsum([0, *map(len, groups)])
    else:
        if lattice.n_sources > BREADTH_FIRST_LIMIT:
            raise InvalidInputError(
                f"sampling='breadth-first' looks at all 6^{lattice.n_sources} ordered pairs; it is offered up to "
                f"{BREADTH_FIRST_LIMIT} sources. Use sampling='ranks'.",
                code="sampling-sources",
            )
        codes = np.arange(lattice.size)
        lower, upper = np.nonzero(lattice.less_equal(codes[:, None], codes) & (codes[:, None] != codes))
    fixed = np.array(sorted(lattice.fixed))
    in_order = np.ones(lattice.size, dtype=bool)
    in_order[0] = lattice.zero_bound
    cover_start, cover, _ = _neighbours(lattice.size, *replace(lattice, zero_bound=True).covers())
    return DrawingOrder(
        cover_start,
        cover,
        *_neighbours(lattice.size, lower, upper),
        by_rank,
        rank_start,
        fixed,
        np.array([lattice.fixed[code] for code in fixed.tolist()]),
        in_order,
        lattice.low,
    )


def _neighbours(size: int, lower: NDArray[Any], upper: NDArray[Any]) -> tuple[Ints, Ints, Flags]:
    own = np.concatenate([lower, upper]).astype(np.int64)
    other = np.concatenate([upper, lower]).astype(np.int64)
    above = np.repeat([True, False], len(lower))
    order = np.argsort(own, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=size))])
    return start, other[order], above[order]


@jit
def copy(values, place):
    """Copy an array; an assignment of slices takes two seconds to compile, for the text of its error."""
    for i in range(values.size):
        place[i] = values[i]


@jit
def uniform(state):
    """Return a number in [0, 1) from a splitmix64 stream, which is one word of state."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def bounds_of(order, values, drawn, code):
    """Bounds of an element by its drawn neighbours; the boundary is always drawn."""
    low, high = order.least, 1.0
    for n in range(order.start[code], order.start[code + 1]):
        other = order.other[n]
        if drawn[other] and order.in_order[other]:
            if order.above[n]:
                high = min(high, values[other])
            else:
                low = max(low, values[other])
    return low, high


@jit
def _visits(order, state, queue):
    """Return the order in which a new measure's elements are drawn."""
    if order.by_rank.size:
        copy(order.by_rank, queue)
        for r in range(1, order.rank_start.size // 2):  # which of ranks +r and -r comes first is a coin's choice
            start, middle, stop = order.rank_start[2 * r - 1], order.rank_start[2 * r], order.rank_start[2 * r + 1]
            if uniform(state) < 0.5:
                first = stop - middle
                copy(order.by_rank[middle:stop], queue[start : start + first])
                copy(order.by_rank[start:middle], queue[start + first : stop])
        return
    seen = np.zeros(queue.size, np.bool_)
    queue[0], seen[0] = 0, True
    filled = 1
    for position in range(queue.size):
        code = queue[position]
        first = filled
        for n in range(order.cover_start[code], order.cover_start[code + 1]):
            if not seen[order.cover[n]]:
                seen[order.cover[n]] = True
                queue[filled] = order.cover[n]
                filled += 1
        for i in range(filled - 1, first, -1):
            j = first + int(uniform(state) * (i - first + 1))
            queue[i], queue[j] = queue[j], queue[i]


@jit
def draw(order, state, values, queue, drawn):
    """Draw a new measure into `values`."""
    for code in range(drawn.size):
        drawn[code] = False
    for i in range(order.fixed.size):
        values[order.fixed[i]] = order.fixed_values[i]
        drawn[order.fixed[i]] = True
    _visits(order, state, queue)
    for code in queue:
        if not drawn[code]:
            low, high = bounds_of(order, values, drawn, code)
            values[code] = low + (high - low) * uniform(state)
            drawn[code] = True
