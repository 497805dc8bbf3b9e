"""Random measures inside kernels: streams with one word of state, and two orders of drawing."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import Lattice
from bimichi.measures.sampling import codes_by_height

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
                f"{BREADTH_FIRST_LIMIT} sources. Use sampling='ranks'."
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
    """A number in [0, 1) from a splitmix64 stream, which is one word of state."""
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
    """The order in which a new measure's elements are drawn."""
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
