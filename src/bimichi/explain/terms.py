"""The terms of an additive bi-capacity, as explanations see them: all in O(m^2), up to 64 sources.

The integral is a sum of terms, each b times |x| of its source, or times the smaller |x| of its two sources. In the game
``v(S) = C(x with the sources outside S set to 0)`` a term is there when all its sources are. So its Shapley values are
equal shares: a term of one source belongs to it, and that of a pair to each of the two by half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Flags, Floats, Ints
from bimichi.explain.base import Parts
from bimichi.integral.terms import LANES, add_features, sign_table, term_rows
from bimichi.measures.lattice import set_label
from bimichi.measures.terms import Terms

_fast = jit(error_model="numpy", fastmath={"contract", "nsz"})


@dataclass(frozen=True, eq=False)
class TermParts(Parts):
    """The terms of an additive bi-capacity; the weight of a term is |x|, or the smaller |x| of its two sources."""

    space: Terms
    columns = ("term", "min |x|", "b", "product")

    @property
    def n_free(self) -> int:
        return self.space.size if self.space.pairs else 2 * self.space.n_sources

    @property
    def listed(self) -> Ints:
        return np.argsort(-np.abs(self.values[: self.n_free]), kind="stable")  # those that may differ from 0

    def label(self, k: int) -> str:
        m, sides = self.space.n_sources, sorted({int(side[k]) for side in self.space.both_sides})
        up, down = [s for s in sides if s < m], [s - m for s in sides if s >= m]
        return f"b_{{{set_label(up, self.names)},{set_label(down, self.names)}}}"

    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        """Return the terms that are not 0: sources in their order, then pairs, those that move C most first."""
        shape = (1, self.space.row_length)
        rows, features = np.empty(shape, np.int32), np.empty(shape)
        term_rows(np.asarray(x, np.float64)[None], self.space.index, rows, features)
        codes, weights = rows[0].astype(np.int64), features[0]
        products = np.abs(weights * self.values[codes])
        single = codes < 2 * self.space.n_sources
        order = np.lexsort((codes, np.where(single, codes % self.space.n_sources, -products), ~single))
        kept = order[products[order] > 0]
        return codes[kept], weights[kept]

    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return what writes contributions; O(m^2) per instance, O(m) without pairs."""
        table = sign_table(self.space, self.values)
        return lambda sources, out: _contribute(sources, table, self.space.pairs, out)

    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        """Count rows on the sides of each term, exactly; a zero is above zero, but gives no weight."""
        both = (np.hstack([above, rows < 0]).astype(np.float32) for above in (rows >= 0, rows > 0))
        touched, weighted = ((sides.T @ sides)[self.space.both_sides].astype(np.int64) for sides in both)
        weight = np.zeros(self.space.size)
        add_features(np.ascontiguousarray(rows), np.ones(len(rows)), self.space.index, True, weight)
        return np.arange(self.space.size), touched, weighted, weight

    def _tables(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Terms of pairs that are both up, both down, and (row up, column down); NaN on the diagonals."""
        m, table = self.space.n_sources, self.space.matrix(values)
        off = np.where(np.eye(m, dtype=bool), np.nan, 0.0)
        return table[:m, :m] + off, table[m:, m:] + off, table[:m, m:] + off

    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the averages in closed form: of every other source, half of the sets hold it, and half do not.

        So a source rising from silent to for adds its own term, and half of its terms with each other source for and
        against; the difference of two sources rising at once is their one term.
        """
        m = self.space.n_sources
        up, down, cross = self._tables(self.values)
        own = self.values[: 2 * m]
        rising = own[:m] + (np.nansum(up, axis=1) + np.nansum(cross, axis=1)) / 2
        leaving = -own[m:] - (np.nansum(down, axis=1) + np.nansum(cross, axis=0)) / 2
        return rising, leaving, up, down, 0.0 - cross

    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions: the index of a pair in the game of an instance is its one term there."""
        up, down, cross = self._tables(self.values * weight)
        return up, down, 0.0 - cross

    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        """Return NaN: terms are not in order, so that none bounds another."""
        nothing = np.full(len(self.values), np.nan)
        return nothing, nothing


@_fast
def _contribute(sources, table, pairs, out):  # type: ignore[no-untyped-def]
    m, n = sources.shape
    size, sign, total = np.zeros((m, LANES)), np.zeros((m, LANES)), np.zeros((m, LANES))
    missing = np.empty(LANES, np.bool_)
    for start in range(0, n, LANES):
        width = min(LANES, n - start)
        missing[:] = False
        for i in range(m):
            a, b = table[i, i, 0], table[i, i, 1]
            for lane in range(width):
                x = np.float64(sources[i, start + lane])
                missing[lane] |= x != x
                size[i, lane], sign[i, lane] = abs(x), -1.0 if x < 0 else 1.0
                total[i, lane] = size[i, lane] * (a + b * sign[i, lane])
            for k in range(i if pairs else 0):
                _share_pair(size[k], sign[k], size[i], sign[i], table[k, i], total[k], total[i])
        for lane in range(width):
            for i in range(m):
                out[start + lane, i] = np.nan if missing[lane] else total[i, lane]


@_fast
def _share_pair(size, sign, other_size, other_sign, parts, total, other_total):  # type: ignore[no-untyped-def]
    """Add the term of a pair by half to each of the two; `parts` as in `bimichi.integral.terms.sign_table`."""
    a, b, c, d = parts[0], parts[1], parts[2], parts[3]
    for lane in range(LANES):
        s, t = sign[lane], other_sign[lane]
        x, y = size[lane], other_size[lane]
        half = 0.5 * (x if x < y else y) * (a + b * s + t * (c + d * s))
        total[lane] += half
        other_total[lane] += half
