"""MICI's objectives: negative bags to 0, positive bags to 1, by a capacity."""

import math

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from bimichi._jit import jit
from bimichi.fit.objectives import ConvexForm, Objective, Parameter


def min_max_term(fused, counts, size, label, first, second):
    """Return max C^2 over a negative bag, min (C - 1)^2 over a positive one: since C is in [0, 1], the largest C."""
    top = fused[0]
    for i in range(size):
        top = max(top, fused[i])
    return (1.0 - top) ** 2 if label > 0 else top**2


MIN_MAX = Objective(
    name="min-max",
    bag_term=min_max_term,
    about="targets to +1, the rest to 0; one pixel decides a bag",
    measure="capacity",
    convex=ConvexForm(negative=((1, 0.0),), positive=(1,), completion="lowest"),
    relevant="maximal",
    fastmath=True,
)


def generalized_mean_term(fused, counts, size, label, first, second):
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
    bag_term=generalized_mean_term,
    about="targets to +1, the rest to 0; the most extreme pixels of a bag count most",
    measure="capacity",
    settings=(
        Parameter("p1", 10.0, above=0.0),  # the power for negative bags; near a maximum when large
        Parameter("p2", -10.0, below=0.0),  # the power for positive bags; near a minimum when far below zero
    ),
    fastmath=True,
)


SURE = 1.0 - 2.0**-53  # the largest N: a 1 in a negative bag, which no measure can help, costs 37, not infinity
QUIET = 1e-5  # below it, three terms of the series of ln(1 - N) are exact
SMALL = 32  # up to so many instances, an array of their chances would take longer to make than to fill
FACTORS = 16  # so many factors of at least 2^-53 do not underflow
FAR = -36.0  # below it, ln N is divided by a further 32 before its exponential is computed
IMPOSSIBLE = -690.0  # the least ln N, so that N is not 0 in double precision; beyond it, J is flat

_vectorised = jit(fastmath={"contract", "reassoc", "arcp", "nsz"})


def noisy_or_term(fused, counts, size, label, first, second):
    """Return minus sum ln(1 - N) over a negative bag, minus ln(1 - prod (1 - N)) over a positive one.

    N = exp(-(C - mu)^2 / (2 sigma^2)) is how surely an instance is a target, kept between e^-690 and 1 - 2^-53. Also
    where all N are so small that 1 - N is 1 in double precision, their sum counts: n equal instances of a positive bag
    cost -ln N - ln n.
    """
    mu, factor = first, -0.5 / (second * second)
    values, numbers = carray(fused, size), carray(counts, size)
    if size > SMALL:
        silence = _silence_of_many(values, numbers, mu, factor)
    else:
        silence = _silence(values, numbers, mu, factor, label > 0)
    return -silence if label <= 0 else -math.log(-math.expm1(silence))


@jit
def _silence(fused, counts, mu, factor, positive):
    """Return ln of the probability that no instance is a target; without an array of their chances."""
    silence, product, factors = 0.0, 1.0, 0.0
    for i in range(fused.size):
        x = factor * (fused[i] - mu) * (fused[i] - mu)
        if x < FAR:
            if positive:  # in a negative bag it would not change the sum
                silence -= counts[i] * math.exp(max(IMPOSSIBLE, x))
            continue
        chance = _near(x)
        if chance >= QUIET:
            silence, product, factors = _add_loud(chance, counts[i], silence, product, factors)
        else:
            silence -= counts[i] * chance * (1.0 + chance * (0.5 + chance * (1 / 3)))
    return silence + math.log(product) if factors > 0 else silence


@jit
def _silence_of_many(fused, counts, mu, factor):
    """Return the same; chances, and the small ones' sum, are computed side by side."""
    chances = np.empty_like(fused)
    for i in range(fused.size):
        chances[i] = _chance(fused[i] - mu, factor)
    silence, loud = _quiet(chances, counts)
    product, factors = 1.0, 0.0
    i = 0
    while loud > 0:  # those for which the series is not enough
        if chances[i] >= QUIET:
            loud -= 1
            silence, product, factors = _add_loud(chances[i], counts[i], silence, product, factors)
        i += 1
    return silence + math.log(product) if factors > 0 else silence


@jit
def _add_loud(chance, count, silence, product, factors):
    """Add a likely target: ``ln(1 - N)``, of many at a time as the logarithm of their product."""
    left = 1.0 - min(SURE, chance)
    if count > FACTORS or count != math.floor(count):
        return silence + count * math.log(left), product, factors
    if factors + count > FACTORS:
        silence, product, factors = silence + math.log(product), 1.0, 0.0
    for _ in range(int(count)):
        product *= left
    return silence, product, factors + count


@_vectorised
def _chance(distance, factor):
    """Return N; far from the mean as the 32nd power of ``exp(x / 32)``, right to 1e-11."""
    x = factor * distance * distance
    x = x if x > IMPOSSIBLE else IMPOSSIBLE
    far = x < FAR
    y = _near(x * (1 / 32) if far else x)
    power = y * y
    power *= power
    power *= power
    power *= power
    power *= power
    return power if far else y


@_vectorised
def _near(x):
    """Return ``exp(x)``: ``exp(x / 256)`` by nine terms of its series, squared eight times; right to 1e-13, no call."""
    x = x * (1 / 256)
    y = 1.0 + x * (1 / 9)
    y = 1.0 + x * (1 / 8) * y
    y = 1.0 + x * (1 / 7) * y
    y = 1.0 + x * (1 / 6) * y
    y = 1.0 + x * (1 / 5) * y
    y = 1.0 + x * (1 / 4) * y
    y = 1.0 + x * (1 / 3) * y
    y = 1.0 + x * (1 / 2) * y
    y = 1.0 + x * y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    return y


@_vectorised
def _quiet(chance, counts):
    """Sum of ln(1 - N) over quiet instances, and how many are not."""
    silence, loud = 0.0, 0.0
    for i in range(chance.size):
        quiet = chance[i] if chance[i] < QUIET else 0.0
        silence -= counts[i] * quiet * (1.0 + quiet * (0.5 + quiet * (1 / 3)))
        loud += 0.0 if chance[i] < QUIET else 1.0
    return silence, loud


NOISY_OR = Objective(
    name="noisy-or",
    bag_term=noisy_or_term,
    about="pixels of a bag are independent chances of a target",
    measure="capacity",
    settings=(
        Parameter("mu", 1.0),  # the mean of a target's C
        Parameter("sigma", 0.1, above=0.0),  # the standard deviation of a target's C
    ),
)


def regression_term(fused, counts, size, label, first, second):
    """Return min (C - label)^2 over the bag."""
    best = (fused[0] - label) ** 2
    for i in range(size):
        best = min(best, (fused[i] - label) ** 2)
    return best


REGRESSION = Objective(
    name="regression",
    bag_term=regression_term,
    about="the pixel nearest to the label decides a bag",
    measure="capacity",
    labels="real",
    fastmath=True,
)
