"""Kernels that find the instances that matter; `Bags.reduced` says why the others do not."""

import numba
import numpy as np

__all__ = ["merge_equal", "undominated"]

FRONT_LIMIT = 256
"""With how many kept instances a further one is compared at most; more would cost time and drop little."""


@numba.njit(cache=True, nogil=True)
def merge_equal(X, offsets, counts):  # type: ignore[no-untyped-def]
    """Indices of the first of equal rows within each bag, what they count together, and new offsets."""
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
                h = (h ^ np.uint64(hash(X[i, k]))) * np.uint64(1099511628211)
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


@numba.njit(cache=True, nogil=True)
def undominated(X, offsets, zero_bound):  # type: ignore[no-untyped-def]
    """Mark rows that no other row of their bag is above of; without the zero bound only equal peaks compare."""
    n, m = X.shape
    keep = np.zeros(n, np.bool_)
    peak = np.zeros(n, X.dtype)
    total = np.zeros(n, np.float64)
    for i in range(n):
        for k in range(m):
            peak[i] = max(peak[i], abs(X[i, k]))
            total[i] += X[i, k]
    front = np.empty(FRONT_LIMIT, np.int64)
    for b in range(offsets.size - 1):
        start = offsets[b]
        order = np.argsort(-total[start : offsets[b + 1]])
        found = 0
        for position in order:
            i = start + position
            below = False
            for f in range(found):
                j = front[f]
                if zero_bound or peak[i] == peak[j]:
                    below = True
                    for k in range(m):
                        if X[i, k] > X[j, k]:
                            below = False
                            break
                    if below:
                        break
            keep[i] = not below
            if not below and found < FRONT_LIMIT:
                front[found] = i
                found += 1
    return keep
