"""MICI's noisy-or objective: a bag is positive if any of its instances speaks."""

import math

import numba

from bimichi.objectives.base import Objective

__all__ = ["NOISY_OR", "bag_term"]

NOISY_OR = Objective(name="noisy-or", code=4, measure="capacity", parameters=(1.0, 0.1))

SURE = 1.0 - 2.0**-53
"""The most that N may be: ones in a negative bag, which no measure can help, cost 37 an instance, not infinity."""

IMPOSSIBLE = 1e-300


@numba.njit(cache=True, nogil=True)
def bag_term(fused, counts, positive, mu, sigma):  # type: ignore[no-untyped-def]
    """Return minus sum ln(1 - N) over a negative bag, minus ln(1 - prod (1 - N)) over a positive one.

    N = exp(-(C - mu)^2 / (2 sigma^2)) is how surely an instance is a target.
    """
    silence = 0.0  # ln of the probability that no instance speaks
    factor = -0.5 / (sigma * sigma)
    for i in range(fused.size):
        distance = fused[i] - mu
        chance = min(SURE, math.exp(factor * distance * distance))
        if chance < 1e-5:  # where three terms of the series are exact, and quicker
            silence -= counts[i] * chance * (1.0 + chance * (0.5 + chance / 3.0))
        else:
            silence += counts[i] * math.log1p(-chance)
    return -math.log(max(IMPOSSIBLE, -math.expm1(silence))) if positive else -silence
