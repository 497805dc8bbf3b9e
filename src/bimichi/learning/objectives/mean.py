"""The mean objective, not in the paper: every instance of a bag counts, softly; one convex problem."""

from dataclasses import replace

from bimichi.learning.objectives.base import Objective


def bag_term(fused, counts, size, label, first, second):
    """Mean of (C - target)^2 over a bag; an instance that stands for several counts as often."""
    target = second if label > 0 else first
    total, number = 0.0, 0.0
    for i in range(size):
        total += counts[i] * (fused[i] - target) ** 2
        number += counts[i]
    return total / number


MEAN = Objective(
    name="mean",
    bag_term=bag_term,
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
