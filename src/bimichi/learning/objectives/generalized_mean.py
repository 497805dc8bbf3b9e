"""MICI's generalised-mean objective: a soft maximum over negative bags, a soft minimum over positive ones."""

from numba import carray  # type: ignore[attr-defined]

from bimichi._jit import jit
from bimichi.learning.objectives.base import Objective, Parameter


def bag_term(fused, counts, size, label, first, second):
    """Return (mean (C - target)^(2 power))^(1 / power), taken relative to the leading square: nothing overflows."""
    target, power = (1.0, second) if label > 0 else (0.0, first)
    lead = (fused[0] - target) ** 2
    for i in range(size):
        square = (fused[i] - target) ** 2
        lead = max(lead, square) if power > 0 else min(lead, square)
    if lead == 0.0:  # all are on target, or, with a negative power, one is
        return 0.0
    number = carray(counts, size).sum()
    whole = round(abs(power))
    if abs(power) == whole and whole < 16:
        total = _whole_powers(fused, counts, size, target, lead, whole, power > 0)
    else:
        total = 0.0
        for i in range(size):
            total += counts[i] * ((fused[i] - target) ** 2 / lead) ** power
    return lead * (total / number) ** (1.0 / power)


@jit(fastmath=True)
def _whole_powers(fused, counts, size, target, lead, power, rising):
    """Sum of whole powers below 16 of squares over the leading one (or its inverse); vectorised, unlike a power."""
    one, two, four, eight = power & 1 != 0, power & 2 != 0, power & 4 != 0, power & 8 != 0
    total = 0.0
    for i in range(size):
        square = (fused[i] - target) * (fused[i] - target)
        ratio = square / lead if rising else lead / square
        ratio2 = ratio * ratio
        ratio4 = ratio2 * ratio2
        product = ratio if one else 1.0
        product *= ratio2 if two else 1.0
        product *= ratio4 if four else 1.0
        product *= ratio4 * ratio4 if eight else 1.0
        total += counts[i] * product
    return total


GENERALIZED_MEAN = Objective(
    name="generalized-mean",
    bag_term=bag_term,
    about="targets to +1, the rest to 0; the most extreme pixels of a bag count most",
    measure="capacity",
    settings=(
        Parameter("p1", 10.0, above=0.0),  # the power for negative bags; near a maximum when large
        Parameter("p2", -10.0, below=0.0),  # the power for positive bags; near a minimum when far below zero
    ),
    fastmath=True,
)
