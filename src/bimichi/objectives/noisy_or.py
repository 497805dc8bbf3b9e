"""MICI's noisy-or objective: a bag is positive if any of its instances speaks."""

import math

import numba
import numpy as np

from bimichi.objectives.base import Objective

__all__ = ["NOISY_OR", "bag_term"]

NOISY_OR = Objective(name="noisy-or", code=4, measure="capacity", parameters=(1.0, 0.1))

SURE = 1.0 - 2.0**-53
"""The most that N may be: ones in a negative bag, which no measure can help, cost 37 an instance, not infinity."""

SILENT = -53 * math.log(2.0)
"""Where ln N is below this, 1 - N is 1 in double precision."""

IMPOSSIBLE = 1e-300


@numba.njit(cache=True, nogil=True)
def bag_term(fused, counts, positive, mu, sigma):  # type: ignore[no-untyped-def]
    """Return minus sum ln(1 - N) over a negative bag, minus ln(1 - prod (1 - N)) over a positive one.

    N = exp(-(C - mu)^2 / (2 sigma^2)) is how surely an instance is a target.
    """
    chance = np.empty_like(fused)
    loudest = _chances(fused, mu, -0.5 / (sigma * sigma), chance)
    silence = 0.0  # ln of the probability that no instance speaks
    product, factors = 1.0, 0
    for i in range(fused.size):
        if chance[i] < 1e-5:  # where three terms of the series are exact, and quicker
            silence -= counts[i] * chance[i] * (1.0 + chance[i] * (0.5 + chance[i] / 3.0))
        elif counts[i] == 1.0:  # one logarithm for sixteen
            product *= 1.0 - min(SURE, chance[i])
            factors += 1
            if factors == 16:
                silence += math.log(product)
                product, factors = 1.0, 0
        else:
            silence += counts[i] * math.log1p(-min(SURE, chance[i]))
    silence += math.log(product)
    if not positive:
        return -silence
    if silence == 0.0:  # none speaks aloud: the loudest whisper counts, so that there is a way to go
        return -max(loudest, math.log(IMPOSSIBLE))
    return -math.log(-math.expm1(silence))


@numba.njit(cache=True, nogil=True, fastmath=True)
def _chances(fused, mu, factor, chance):  # type: ignore[no-untyped-def]
    """Write N, 0 where it is silent; the largest ln N is returned.

    The exponential is ``exp(x / 256)`` by nine terms of its series, squared eight times: right to 1e-13, and, unlike a
    call, vectorised.
    """
    loudest = -np.inf
    for i in range(fused.size):
        exponent = factor * (fused[i] - mu) * (fused[i] - mu)
        loudest = max(loudest, exponent)
        x = max(exponent, SILENT) / 256.0
        y = 1.0 + x / 9.0
        y = 1.0 + x / 8.0 * y
        y = 1.0 + x / 7.0 * y
        y = 1.0 + x / 6.0 * y
        y = 1.0 + x / 5.0 * y
        y = 1.0 + x / 4.0 * y
        y = 1.0 + x / 3.0 * y
        y = 1.0 + x / 2.0 * y
        y = 1.0 + x * y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        chance[i] = y if exponent > SILENT else 0.0
    return loudest
