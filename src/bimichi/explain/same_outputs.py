"""Intervals of the elements of a measure over all monotone measures that give the same outputs on some instances.

The integral is linear in the elements, so these measures form a polytope: the order of the lattice, the boundary, and
one equation per instance. Instances are far more than elements; a basis of their equations is enough. It is found by
trial: a row is in the span of the rows taken so far if it is orthogonal to some random vectors that all of them are
orthogonal to, which takes one product per row. Elements that the equations alone determine become constants; each end
of the interval of another one is a linear program.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.measures.lattice import Lattice

MOST_ELEMENTS = 3**6
"""Of measures with more elements than this, even those that the equations determine are not looked for."""

MOST_OPEN = 100
"""With more other elements than this, whose programs would take minutes, none is solved."""

NEGLIGIBLE = 1e-9
"""Rows count as equal if they differ by less than this: their weights, and so their outputs."""

PROBES = 3
"""How many random vectors a row is tried against."""

STILL = 1e-7
"""An element is determined if no direction of unit length in which outputs stay the same moves it by more than this."""

PRECISION = 1e-6
"""How exact the ends of intervals are; narrower ones are single values."""

Rows = Callable[[], Iterator[tuple[Codes, Floats]]]
"""What yields the codes and weights of all instances, chunk by chunk, each time that it is called."""


class SameOutputs(NamedTuple):
    """Ends of intervals, which elements the equations determine, and whether the ends are those of programs."""

    lower: Floats
    upper: Floats
    determined: Flags
    exact: bool


def same_outputs(lattice: Lattice, values: Floats, used: Flags, rows: Rows) -> SameOutputs | None:
    """Return the intervals of all elements; `used` are those to which some row gives weight.

    Where there are too many elements for programs, used ones that are not determined are held at their values. None if
    there are too many for either.
    """
    fixed = np.zeros(lattice.size, np.bool_)
    fixed[list(lattice.fixed)] = True
    met = np.flatnonzero(used & ~fixed)
    if lattice.size > MOST_ELEMENTS:
        return None
    still = _null_space(met, lattice.size, rows)
    determined = fixed.copy()
    determined[met[np.linalg.norm(still, axis=1) <= STILL]] = True
    moving = ~determined[met]
    return _ends(lattice, values, determined, still[moving], met[moving])


def _null_space(met: Ints, size: int, rows: Rows) -> Floats:
    """Return an orthonormal basis, in columns, of the changes of the elements `met` that change no row's output."""
    rng = np.random.default_rng(0)
    span, still = np.empty((0, len(met))), np.eye(len(met))
    while still.shape[1]:
        probe = np.zeros((size, PROBES))
        probe[met] = still @ rng.standard_normal((still.shape[1], PROBES))
        new = _outside(rows, probe)[:, met]
        joined = np.vstack([span, new])
        _, sizes, basis = np.linalg.svd(joined, full_matrices=len(joined) < len(met))
        rank = int((sizes > NEGLIGIBLE * max(1.0, sizes[0])).sum())
        if rank <= len(span):
            break
        span, still = basis[:rank], basis[rank:].T
    return still


def _outside(rows: Rows, probe: Floats) -> Floats:
    """Return rows, dense, that the probes show not to be in the span: for each element, the furthest that uses it."""
    size = len(probe)
    best, found = np.full((PROBES, size), NEGLIGIBLE), np.zeros((PROBES, size, size))
    for codes, weights in rows():
        distances = np.abs(np.einsum("nk,nkp->pn", weights, probe[codes]))
        for distance, far, dense in zip(distances, best, found, strict=True):
            order = np.argsort(-distance, kind="stable")
            order = order[: int((distance > NEGLIGIBLE).sum())]
            used, first = np.unique(np.where(weights[order] > 0, codes[order], -1), return_index=True)
            row = order[first // codes.shape[1]]
            better = (used >= 0) & (distance[row] > far[used])
            for code, k in zip(used[better].tolist(), row[better].tolist(), strict=True):
                far[code] = distance[k]
                dense[code] = np.bincount(codes[k], weights[k], minlength=size)
    return found.reshape(-1, size)[(best > NEGLIGIBLE).ravel()]


@dataclass(frozen=True)
class _Polytope:
    """Changes d of the moving elements: ``order @ d <= room``, ``equal @ d = 0``, ``low <= d <= high``."""

    order: sp.csr_array
    room: Floats
    equal: sp.csr_array
    low: Floats
    high: Floats

    def minimise(self, cost: Floats) -> Floats:
        from scipy.optimize import linprog  # takes long to import

        found = linprog(
            cost,
            A_ub=self.order if len(self.room) else None,
            b_ub=self.room if len(self.room) else None,
            A_eq=self.equal if self.equal.shape[0] else None,
            b_eq=np.zeros(self.equal.shape[0]) if self.equal.shape[0] else None,
            bounds=np.column_stack([self.low, self.high]),
            method="highs",
        )
        if found.x is None:  # no change at all is always possible, so this is rounding
            return np.zeros(len(cost))
        return np.asarray(found.x, dtype=np.float64)


def _ends(lattice: Lattice, values: Floats, determined: Flags, still: Floats, linked: Ints) -> SameOutputs:
    """Return the ends of the intervals; `still` holds the directions in which the elements `linked` can move."""
    # If only what is determined is known, intervals are too wide; if all that is linked is, too narrow. Where both
    # agree, there is nothing to compute.
    widest = _ordered(lattice.bounds(np.where(determined, values, np.nan)))
    held = determined.copy()
    held[linked] = True
    inner = _ordered(lattice.bounds(np.where(held, values, np.nan)))
    lower, upper = (np.where(held, values, end) for end in inner)
    free = np.flatnonzero(~determined)
    exact = not len(linked) or len(free) <= MOST_OPEN
    if len(linked) and exact:
        polytope = _polytope(lattice, values, free, still, linked)
        for sign, end, bound in ((1.0, lower, widest[0]), (-1.0, upper, widest[1])):
            _push(polytope, sign, end, bound, values, free)
    return SameOutputs(lower, upper, determined, exact)


def _push(polytope: _Polytope, sign: float, end: Floats, bound: Floats, values: Floats, free: Ints) -> None:
    """Move the ends of intervals outwards, down for sign 1, to what the polytope allows, in place."""

    def solve(cost: Floats) -> None:
        found = values[free] + polytope.minimise(sign * cost)
        end[free] = np.minimum(end[free], found) if sign > 0 else np.maximum(end[free], found)

    solve(np.ones(len(free)))  # one solution often has the ends of many
    for k, code in enumerate(free):
        if sign * (end[code] - bound[code]) > PRECISION / 10:
            solve(np.eye(1, len(free), k)[0])


def _polytope(lattice: Lattice, values: Floats, free: Ints, still: Floats, linked: Ints) -> _Polytope:
    position = np.full(lattice.size, -1)
    position[free] = np.arange(len(free))
    lower, upper = lattice.covers()
    room = np.maximum(values[upper] - values[lower], 0.0)
    at_low, at_high = position[lower], position[upper]
    both = (at_low >= 0) & (at_high >= 0)
    count = int(both.sum())
    index = np.arange(count)
    entries = (np.repeat([1.0, -1.0], count), (np.tile(index, 2), np.concatenate([at_low[both], at_high[both]])))
    low, high = lattice.low - values[free], 1.0 - values[free]
    rises, falls = (at_low >= 0) & (at_high < 0), (at_low < 0) & (at_high >= 0)
    np.minimum.at(high, at_low[rises], room[rises])
    np.maximum.at(low, at_high[falls], -room[falls])
    vectors, sizes, _ = np.linalg.svd(still, full_matrices=True)
    constraints = vectors[:, int((sizes > STILL).sum()) :]  # a basis of what is orthogonal to all directions
    equal = sp.lil_array((constraints.shape[1], len(free)))
    equal[:, position[linked]] = constraints.T
    order = sp.csr_array(entries, shape=(count, len(free)))
    return _Polytope(order, room[both], sp.csr_array(equal), np.minimum(low, 0.0), np.maximum(high, 0.0))


def _ordered(ends: tuple[NDArray[Any], NDArray[Any]]) -> tuple[Floats, Floats]:
    """A measure may break the order by the tolerance, so that bounds may cross by as much."""
    return np.minimum(*ends), np.maximum(*ends)
