"""MICI's generalised-mean objective: a soft maximum over negative bags, a soft minimum over positive ones."""

import numba

from bimichi.objectives.base import Objective

__all__ = ["GENERALIZED_MEAN", "bag_term"]

GENERALIZED_MEAN = Objective(name="generalized-mean", code=5, measure="capacity", parameters=(10.0, -10.0))


@numba.njit(cache=True, nogil=True)
def bag_term(fused, counts, target, power):  # type: ignore[no-untyped-def]
    """Return (mean (C - target)^(2 power))^(1 / power), taken relative to the leading square: nothing overflows."""
    lead = (fused[0] - target) ** 2
    for value in fused:
        square = (value - target) ** 2
        lead = max(lead, square) if power > 0 else min(lead, square)
    if lead == 0.0:  # all are on target, or, with a negative power, one is
        return 0.0
    total, number = 0.0, 0.0
    for i in range(fused.size):
        total += counts[i] * ((fused[i] - target) ** 2 / lead) ** power
        number += counts[i]
    return lead * (total / number) ** (1.0 / power)
