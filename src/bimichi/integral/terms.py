"""Kernels on the terms of 2-additive bi-capacities; see `bimichi.measures.additive` for sides and terms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Floats
from bimichi.measures.additive import Terms

_fast = jit(error_model="numpy", fastmath={"contract", "nsz"})

LANES = 512
"""Instances taken side by side: enough that the cost of a pair before its loop matters little."""


def sign_table(space: Terms, values: Floats) -> Floats:
    """Return terms as polynomials in the signs of their sources, shape (m, m, 4), for `integrate_terms`.

    The term of sources i and k with signs s and t is ``a + b s + c t + d s t``; that of source i alone ``a + b s``.
    """
    m, table = space.n_sources, space.matrix(values)
    by_signs = np.stack([table[:m, :m], table[m:, :m], table[:m, m:], table[m:, m:]], axis=-1)  # ++, -+, +-, --
    walsh = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 4
    parts = by_signs @ walsh.T
    own = np.arange(m)
    up, down = table.diagonal()[:m], table.diagonal()[m:]
    parts[own, own] = np.stack([(up + down) / 2, (up - down) / 2, 0 * up, 0 * up], axis=-1)
    return parts


@_fast
def largest(peak):
    """Return the largest of some numbers, none of them NaN; numba's own maximum takes half a second to compile."""
    most = peak[0]
    for lane in range(peak.size):
        most = peak[lane] if peak[lane] > most else most
    return most


def integrate_terms(sources: NDArray[Any], table: Floats, out: NDArray[Any]) -> float:
    """Integrate sources of shape (m, n) into out; the largest |x| is returned.

    `table` holds, for each source (i, i) and each pair (i, k), i < k, the four numbers a, b, c, d with which
    ``a + b s + c t + d s t`` is the term for signs s and t; see `sign_table`. Rows are copied to planes: no slower than
    reading them with strides, and one kernel to compile instead of two.
    """
    return float(_integrate(np.ascontiguousarray(sources), table, out))


@_fast
def _integrate(sources, table, out):
    m, n = sources.shape
    size, sign = np.zeros((m, LANES), out.dtype), np.zeros((m, LANES), out.dtype)
    total, top, peak = np.empty(LANES, out.dtype), np.empty(LANES, out.dtype), np.zeros(LANES, out.dtype)
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        for lane in range(LANES):
            total[lane], top[lane] = 0, 0
        for i in range(m):
            _load(sources[i, start:stop], size[i], sign[i], top)
            _add_single(size[i], sign[i], table[i, i], total)
            for k in range(i):
                if table[k, i, 0] != 0 or table[k, i, 1] != 0 or table[k, i, 2] != 0 or table[k, i, 3] != 0:
                    _add_pair(size[k], sign[k], size[i], sign[i], table[k, i], total)
        for lane in range(stop - start):
            value = total[lane]
            value = top[lane] if value > top[lane] else value  # rounding must not carry it out of range; NaN stays
            out[start + lane] = -top[lane] if value < -top[lane] else value
            peak[lane] = top[lane] if top[lane] > peak[lane] else peak[lane]
    return largest(peak)


@_fast
def _load(x, size, sign, top):
    unit = size.dtype.type(1)
    for lane in range(x.size):
        v = abs(size.dtype.type(x[lane]))
        size[lane] = v
        sign[lane] = -unit if x[lane] < 0 else unit
        top[lane] = v if v > top[lane] else top[lane]


@_fast
def _add_single(size, sign, parts, total):
    a, b = parts[0], parts[1]
    for lane in range(LANES):
        total[lane] += size[lane] * (a + b * sign[lane])


@_fast
def _add_pair(size, sign, other_size, other_sign, parts, total):
    a, b, c, d = parts[0], parts[1], parts[2], parts[3]
    for lane in range(LANES):
        s, t = sign[lane], other_sign[lane]
        x, y = size[lane], other_size[lane]
        total[lane] += (x if x < y else y) * (a + b * s + t * (c + d * s))


@jit
def term_features(X, first, second, out):
    """Write, for rows X, the features of some terms into out; `first` and `second` are their sides, or twice one."""
    n, m = X.shape
    y = np.empty(2 * m)
    for j in range(n):
        for k in range(m):
            x = np.float64(X[j, k])
            y[k], y[k + m] = max(x, 0.0), max(-x, 0.0)
        for c in range(first.size):
            out[j, c] = min(y[first[c]], y[second[c]])


@jit
def add_features(X, factor, index, pairs, total):
    """Add the features of all rows X, times a factor each, to total, of shape (2 m^2,); of pairs only if `pairs`."""
    n, m = X.shape
    for j in range(n):
        for i in range(m):
            x = np.float64(X[j, i])
            side = i if x >= 0 else i + m
            total[side] += factor[j] * abs(x)
            for k in range(i if pairs else 0):
                y = np.float64(X[j, k])
                total[index[k if y >= 0 else k + m, side]] += factor[j] * min(abs(x), abs(y))


@jit
def add_single_squares(X, share, matrix, linear):
    """Add share * (C - 1)^2 of all rows X, as a form in the terms of single sources, to its matrix and linear part."""
    n, m = X.shape
    for j in range(n):
        for i in range(m):
            x = np.float64(X[j, i])
            weight, side = share[j] * abs(x), i if x >= 0 else i + m
            linear[side] += abs(x) * share[j]
            if weight != 0:
                for k in range(i + 1):
                    y = np.float64(X[j, k])
                    matrix[side, k if y >= 0 else k + m] += weight * abs(y)


@jit
def term_rows(X, index, codes, weights):
    """Write the terms that rows X use, and their features: one per source, and one per pair if there is room."""
    n, m = X.shape
    pairs = codes.shape[1] > m
    for j in range(n):
        at = 0
        for i in range(m):
            x = X[j, i]
            side = i if x >= 0 else i + m
            for k in range(i if pairs else 0):
                y = X[j, k]
                codes[j, at] = index[k if y >= 0 else k + m, side]
                weights[j, at] = min(abs(x), abs(y))
                at += 1
            codes[j, at] = side
            weights[j, at] = abs(x)
            at += 1
