"""MICI for regression: each bag has a real label, and the instance nearest to it counts."""

from bimichi.learning.objectives.base import Objective


def bag_term(fused, counts, size, label, first, second):
    """Return min (C - label)^2 over the bag."""
    best = (fused[0] - label) ** 2
    for i in range(size):
        best = min(best, (fused[i] - label) ** 2)
    return best


REGRESSION = Objective(
    name="regression",
    bag_term=bag_term,
    about="the pixel nearest to the label decides a bag",
    measure="capacity",
    labels="real",
    fastmath=True,
)
