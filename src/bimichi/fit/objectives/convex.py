"""Objectives that are one convex problem, not in the paper: every instance of a bag counts, softly."""

from dataclasses import replace
from math import exp, log1p

from bimichi.fit.objectives.base import Objective


def mean_term(fused, counts, size, label, first, second):
    """Return the mean of (C - target)^2 over a bag; an instance that stands for several counts as often."""
    target = second if label > 0 else first
    total, number = 0.0, 0.0
    for i in range(size):
        total += counts[i] * (fused[i] - target) ** 2
        number += counts[i]
    return total / number


MEAN = Objective(
    name="mean",
    bag_term=mean_term,
    about="targets to +1, the rest to −1; every pixel of a bag counts",
    zero_bound=False,
    additive=True,
    convex="mean",
    parameters=(-1.0, 1.0),
    fastmath=True,
)

NORMALISED_MEAN = replace(
    MEAN,
    about="targets to +1, the rest to 0; every pixel of a bag counts",
    measure="capacity",
    zero_bound=True,
    additive=False,
    parameters=(0.0, 1.0),
)


def logistic_term(fused, counts, size, label, first, second):
    """Return the sum of log(1 + e^f) - y f over a bag, f the log-odds; an instance counts as often as it occurs."""
    total = 0.0
    for i in range(size):
        f = fused[i]
        total += counts[i] * (max(f, 0.0) + log1p(exp(-abs(f))) - (f if label > 0 else 0.0))
    return total


LOGISTIC = Objective(
    name="logistic",
    bag_term=logistic_term,
    about="the probability of a target, by its log-odds; every pixel counts with the label of its bag",
    zero_bound=False,
    additive=True,
    convex="logistic",
    free_scale=True,
)
