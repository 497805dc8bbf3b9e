"""The mean objective, not in the paper: every instance of a bag counts, softly; one convex problem."""

import numba

from bimichi.objectives.base import Objective

__all__ = ["MEAN", "bag_term"]

MEAN = Objective(
    name="mean",
    code=2,
    zero_bound=False,
    absolute=False,
    convex="mean",
    keeps="all",
)


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, counts, positive):  # type: ignore[no-untyped-def]
    """Mean of (C - 1)^2 over a positive bag, of (C + 1)^2 over a negative one; merged instances count as many."""
    target = 1.0 if positive else -1.0
    total, number = 0.0, 0.0
    for i in range(fused.size):
        total += counts[i] * (fused[i] - target) ** 2
        number += counts[i]
    return total / number
