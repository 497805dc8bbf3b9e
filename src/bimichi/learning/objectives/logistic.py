"""The logistic objective, not in the paper: the log-loss of every instance; one convex problem, and probabilities."""

from math import exp, log1p

from bimichi.learning.objectives.base import Objective


def bag_term(fused, counts, size, label, first, second):
    """Sum of log(1 + e^f) - y f over a bag, f the log-odds; an instance that stands for several counts as often."""
    total = 0.0
    for i in range(size):
        f = fused[i]
        total += counts[i] * (max(f, 0.0) + log1p(exp(-abs(f))) - (f if label > 0 else 0.0))
    return total


LOGISTIC = Objective(
    name="logistic",
    bag_term=bag_term,
    about="the probability of a target, by its log-odds; every pixel counts with the label of its bag",
    zero_bound=False,
    additive=True,
    convex="logistic",
    free_scale=True,
)
