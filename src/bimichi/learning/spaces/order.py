"""The order among some elements of a lattice, found only where it matters.

A program begins with pairs that are neighbours in the lattice; a sweep over its solution finds, for each element, the
one below it that has the largest value: if that is more than its own, the two are a pair that was missing.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bimichi._jit import jit
from bimichi._types import Codes, Floats, Ints
from bimichi.learning.spaces.base import Completion, Order
from bimichi.measures.compact import COMPLETIONS
from bimichi.measures.lattice import Lattice

Pairs = tuple[Ints, Ints]


def limits(lattice: Lattice, elements: Ints) -> tuple[Floats, Floats]:
    """Return the least and the greatest value that the boundary leaves each of `elements`; O(m len(elements))."""
    up, down = lattice.masks(elements)
    low = np.where((down == 0) & lattice.zero_bound, 0.0, lattice.low)
    return low, np.where((up == 0) & lattice.zero_bound, 0.0, 1.0)


def highest_below(lattice: Lattice, known: Floats) -> tuple[Floats, Codes]:
    """Return the largest known value at or below each element, and the code of the element that has it.

    NaN is unknown; nothing else is added, the boundary neither. Where nothing is known below, the value is -inf and the
    code that of the element itself; so it is where its own value is the largest. O(m base^m); without the zero bound,
    code 0 is passed through but has no value.
    """
    return _highest(lattice, known, lattice.chain)


def lowest_above(lattice: Lattice, known: Floats) -> tuple[Floats, Codes]:
    """Return the smallest known value at or above each element, and the code of its element; see `highest_below`."""
    value, source = _highest(lattice, -known, lattice.chain[::-1])
    return -value, source


def _highest(lattice: Lattice, known: Floats, chain: Sequence[int]) -> tuple[Floats, Codes]:
    """The largest known value at or below each element in the order of `chain`, and the code of its element."""
    value = np.where(np.isnan(known), -np.inf, known)
    if not lattice.zero_bound:
        value[0] = -np.inf
    source = np.arange(lattice.size, dtype=np.int32)
    _carry_up(value, source, np.array(chain), lattice.n_sources)
    return value, source


def completion_of(lattice: Lattice, partial: Floats, completion: str) -> Completion:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds.

    O(m base^m). Unlike `bimichi.measures.compact.filled`, known values may contradict each other a little, and what
    bounds each value is returned with it.
    """
    given = np.flatnonzero(~np.isnan(partial))
    known = np.full(lattice.size, np.nan)
    known[given] = np.clip(partial[given], *limits(lattice, given))
    low, lower = highest_below(lattice, lattice.with_boundary(known))
    if completion == "lowest":
        return Completion(lattice.with_boundary(low), lower, lower)
    known[given] = low[given]
    known = lattice.with_boundary(known)
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    values = lattice.with_boundary(COMPLETIONS[completion](low, np.maximum(low, high)))
    return Completion(values, lower, upper)


class OrderedPairs(Order):
    """Ordered pairs of elements that were found to matter."""

    def __init__(self, lattice: Lattice, keys: Ints | None = None) -> None:
        self.lattice = lattice
        self._keys = np.empty(0, np.int64) if keys is None else keys  # lower * size + upper

    def among(self, elements: Ints) -> Pairs:
        """Pairs (lower, upper) of the known order, and neighbours in the lattice, as positions in `elements`."""
        position = np.full(self.lattice.size, -1)
        position[elements] = np.arange(len(elements))
        near = _neighbours(self.lattice, elements, position)
        lower, upper = (position[codes] for codes in np.divmod(self._keys, self.lattice.size))
        both = (lower >= 0) & (upper >= 0)
        return np.concatenate([near[0], lower[both]]), np.concatenate([near[1], upper[both]])

    def with_violated(self, values: Floats, tolerance: float) -> tuple["OrderedPairs", bool]:
        """Add the pairs whose values are out of order by more than `tolerance`: of each element the worst two."""
        below, lower = highest_below(self.lattice, values)
        above, upper = lowest_above(self.lattice, values)
        high, low = np.flatnonzero(below > values + tolerance), np.flatnonzero(above < values - tolerance)
        size = self.lattice.size
        keys = np.concatenate([lower[high].astype(np.int64) * size + high, low * size + upper[low]])
        found = OrderedPairs(self.lattice, np.union1d(self._keys, keys))
        return found, len(found._keys) > len(self._keys)

    def joined(self, other: "OrderedPairs") -> "OrderedPairs":
        return OrderedPairs(self.lattice, np.union1d(self._keys, other._keys))


def _neighbours(lattice: Lattice, elements: Ints, position: Ints) -> Pairs:
    """Pairs of `elements` that the lattice has as covers, given the position of every code, -1 for none."""
    lowers, uppers = [], []
    for k in range(lattice.n_sources):
        step = lattice.base**k
        digit = elements // step % lattice.base
        for a, b in pairwise(lattice.chain):
            at = np.flatnonzero(digit == a)
            to = position[elements[at] + (b - a) * step]
            lowers.append(at[to >= 0])
            uppers.append(to[to >= 0])
    if not lattice.zero_bound:  # what held through code 0, which is no variable
        steps = lattice.base ** np.arange(lattice.n_sources)
        down, up = position[2 * steps], position[steps]
        lowers.append(down[(down >= 0) & (up >= 0)])
        uppers.append(up[(down >= 0) & (up >= 0)])
    return np.concatenate(lowers), np.concatenate(uppers)


@jit
def _carry_up(value: Any, source: Any, chain: Any, n_sources: int) -> None:
    """Running maxima along each axis, in place, with the codes that they come from."""
    base, stride = chain.size, 1
    for _ in range(n_sources):
        for c in range(1, base):
            below, here = chain[c - 1] * stride, chain[c] * stride
            for outer in range(0, value.size, base * stride):
                for i in range(outer, outer + stride):
                    if value[i + below] > value[i + here]:
                        value[i + here] = value[i + below]
                        source[i + here] = source[i + below]
        stride *= base
