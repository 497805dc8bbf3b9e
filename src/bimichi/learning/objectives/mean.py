"""The mean objective, not in the paper: every instance of a bag counts, softly; one convex problem."""

import numba

from bimichi.learning.objectives.base import Objective

__all__ = ["MEAN", "NORMALISED_MEAN", "bag_term"]

MEAN = Objective(name="mean", code=2, zero_bound=False, convex="mean", parameters=(-1.0, 1.0))

NORMALISED_MEAN = Objective(name="mean", code=2, measure="capacity", convex="mean", parameters=(0.0, 1.0))


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, counts, target):  # type: ignore[no-untyped-def]
    """Mean of (C - target)^2 over a bag; merged instances count as many."""
    total, number = 0.0, 0.0
    for i in range(fused.size):
        total += counts[i] * (fused[i] - target) ** 2
        number += counts[i]
    return total / number
