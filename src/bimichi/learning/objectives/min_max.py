"""MICI's min-max objective: negative bags to 0, positive bags to 1."""

from bimichi.learning.objectives.base import ConvexForm, Objective


def bag_term(fused, counts, size, label, first, second):
    """Return max C^2 over a negative bag, min (C - 1)^2 over a positive one: since C is in [0, 1], the largest C."""
    top = fused[0]
    for i in range(size):
        top = max(top, fused[i])
    return (1.0 - top) ** 2 if label > 0 else top**2


MIN_MAX = Objective(
    name="min-max",
    bag_term=bag_term,
    about="targets to +1, the rest to 0; one pixel decides a bag",
    measure="capacity",
    convex=ConvexForm(negative=((1, 0.0),), positive=(1,), completion="lowest"),
    relevant="maximal",
    fastmath=True,
)
