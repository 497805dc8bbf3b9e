"""Kernels that find the instances that matter; `Bags.reduced` says why the others do not.

They sort, hash and copy by plain loops: what numba offers for that (`argsort`, `hash`, assignments of slices) takes it
seconds to compile, which the first fit would wait for.
"""

import numpy as np

from bimichi._jit import jit

FRONT_LIMIT = 256  # how many kept instances a further one is compared with; more would take time and drop little
RUN = 16  # rows that are sorted by insertion
PROBE = 16  # then each 16th further one is tried first; if few of these are dropped, all the others stay


@jit
def merge_equal(X, bits, offsets, counts):
    """Indices of the first of equal rows within each bag, what they count together, and new offsets.

    `bits` is X as unsigned integers of the same size. X must have no -0, which equals 0 in other bits.
    """
    n, m = X.shape
    first = np.empty(n, np.int64)
    merged = np.empty(n, np.float64)
    starts = np.zeros(offsets.size, np.int64)
    longest = 1
    for b in range(offsets.size - 1):
        longest = max(longest, offsets[b + 1] - offsets[b])
    size = 1
    while size < 2 * longest:
        size *= 2
    table = np.full(size, -1, np.int64)  # row numbers of the current bag, by hash, in `first`
    kept = 0
    for b in range(offsets.size - 1):
        for i in range(offsets[b], offsets[b + 1]):
            h = np.uint64(1469598103934665603)
            for k in range(m):
                h = (h ^ np.uint64(bits[i, k])) * np.uint64(1099511628211)
                h ^= h >> np.uint64(32)
            h = (h ^ (h >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # low bits of round numbers are all alike
            slot = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(size - 1))
            while table[slot] >= starts[b]:
                same = True
                for k in range(m):
                    same &= X[first[table[slot]], k] == X[i, k]
                if same:
                    break
                slot = (slot + 1) & (size - 1)
            if table[slot] >= starts[b]:
                merged[table[slot]] += counts[i]
            else:
                table[slot] = kept
                first[kept] = i
                merged[kept] = counts[i]
                kept += 1
        starts[b + 1] = kept
    return first[:kept].copy(), merged[:kept].copy(), starts


@jit
def undominated(X, offsets, zero_bound):
    """Mark rows that no other row of their bag is above of; without the zero bound only equal peaks compare."""
    n, m = X.shape
    keep = np.ones(n, np.bool_)
    peak = np.zeros(n, X.dtype)
    total = np.zeros(n, X.dtype)
    for i in range(n):
        for k in range(m):
            peak[i] = max(peak[i], abs(X[i, k]))
            total[i] -= X[i, k]
    front = np.empty((FRONT_LIMIT, m + 1), X.dtype)  # the row, and its peak
    rows, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    for b in range(offsets.size - 1):
        order = rows[offsets[b] : offsets[b + 1]]
        for k in range(order.size):
            order[k] = offsets[b] + k
        _sort(order, total, spare)
        found, at = 0, 0
        while at < order.size and found < FRONT_LIMIT:
            i = order[at]
            at += 1
            keep[i] = not _below(X[i], peak[i], front[:found], zero_bound)
            if keep[i]:
                for k in range(m):
                    front[found, k] = X[i, k]
                front[found, m] = peak[i]
                found += 1
        rest = order[at:]
        probed, gone = 0, 0
        for i in rest[::PROBE]:
            probed += 1
            gone += _below(X[i], peak[i], front, zero_bound)
        if 10 * gone >= probed:
            for i in rest:
                keep[i] = not _below(X[i], peak[i], front, zero_bound)
    return keep


@jit
def _sort(order, key, spare):
    """Sort row numbers by their keys: short runs by insertion, which are then merged, two by two; stable."""
    n = order.size
    for start in range(0, n, RUN):
        for i in range(start + 1, min(start + RUN, n)):
            row, j = order[i], i
            while j > start and key[order[j - 1]] > key[row]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = row
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if j >= stop or (i < middle and key[order[i]] <= key[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2


@jit
def _below(x, peak, front, zero_bound):
    """Whether x is below a row of the front; that row then moves ahead, as it will be above others, too."""
    m = x.size
    for f in range(front.shape[0]):
        below = zero_bound or peak == front[f, m]
        k = 0
        while below and k < m:
            below = x[k] <= front[f, k]
            k += 1
        if below:
            ahead = f // 2
            for k in range(m + 1):
                front[f, k], front[ahead, k] = front[ahead, k], front[f, k]
            return True
    return False
