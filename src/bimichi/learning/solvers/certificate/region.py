"""The free elements of a lattice as variables of relaxations: their order, boxes around values, rows as vectors."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from bimichi._types import Codes, Floats, Ints
from bimichi.learning.spaces.order import Pairs, limits
from bimichi.measures.lattice import Lattice


class Box(NamedTuple):
    """Least and greatest value of every free element; what the order implies has been drawn in."""

    low: Floats
    high: Floats


class Region:
    """The free elements of a lattice; memory and time of its tables are quadratic in their number."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.elements = np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))
        up, down = lattice.masks(self.elements)
        self.below = ((up[:, None] & ~up) == 0) & ((down & ~down[:, None]) == 0)  # [i, j]: i is j, or below it
        self.box = Box(*limits(lattice, self.elements))
        self._position = np.full(lattice.size, -1)
        self._position[self.elements] = np.arange(len(self.elements))
        self._boundary = lattice.with_boundary(np.zeros(lattice.size))
        self._pairs: dict[bytes, Pairs] = {}

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw n monotone measures, quickly and with no care for their distribution: half of them high, half low."""
        lattice = self.lattice
        table = rng.uniform(lattice.low, 1.0, (n, *(lattice.base,) * lattice.n_sources))
        if not lattice.zero_bound:
            table.reshape(n, -1)[:, 0] = lattice.low
        high, low = table[: n // 2], table[n // 2 :]
        for axis in range(1, lattice.n_sources + 1):
            digits = [(slice(None),) * axis + (digit,) for digit in lattice.chain]
            for below, above in pairwise(digits):
                high[above] = np.maximum(high[above], high[below])
            for above, below in pairwise(digits[::-1]):
                low[below] = np.minimum(low[below], low[above])
        # Codes count their first digit fastest, tables their last axis.
        values = table.transpose(0, *range(lattice.n_sources, 0, -1)).reshape(n, -1)[:, self.elements]
        return np.clip(values, *self.box)

    def vectors(self, codes: Codes, weights: Floats) -> tuple[Floats, Floats]:
        """Return rows of codes and weights as vectors over the free elements, and constants from the fixed ones."""
        at = self._position[codes]
        free, row = (at >= 0) & (weights != 0), np.broadcast_to(np.arange(len(codes))[:, None], codes.shape)
        vectors = np.zeros((len(codes), len(self.elements)))
        np.add.at(vectors, (row[free], at[free]), weights[free])
        return vectors, (weights * self._boundary[codes]).sum(axis=1)

    def pairs(self, some: Ints) -> Pairs:
        """Return the order among some elements without what follows from the rest of it, as positions in `some`."""
        key = some.tobytes()
        if key not in self._pairs:
            strictly = self.below[np.ix_(some, some)].copy()
            np.fill_diagonal(strictly, False)
            as_float = strictly.astype(np.float32)
            lower, upper = np.nonzero(strictly & ~((as_float @ as_float) > 0))
            self._pairs[key] = (np.asarray(lower, np.int64), np.asarray(upper, np.int64))
        return self._pairs[key]

    def above(self, box: Box, element: int, value: float) -> Box:
        """Return the box with this element, and so all above it, at least at `value`."""
        return Box(np.where(self.below[element], np.maximum(box.low, value), box.low), box.high)

    def beneath(self, box: Box, element: int, value: float) -> Box:
        """Return the box with this element, and so all below it, at most at `value`."""
        return Box(box.low, np.where(self.below[:, element], np.minimum(box.high, value), box.high))
