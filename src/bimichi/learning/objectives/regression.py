"""MICI for regression: each bag has a real label, and the instance nearest to it counts."""

import numba

from bimichi.learning.objectives.base import Objective

__all__ = ["REGRESSION", "bag_term"]

REGRESSION = Objective(name="regression", code=6, measure="capacity")


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, label):  # type: ignore[no-untyped-def]
    """Return min (C - label)^2 over the bag."""
    best = (fused[0] - label) ** 2
    for value in fused:
        best = min(best, (value - label) ** 2)
    return best
