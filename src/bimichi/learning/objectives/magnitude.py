"""Objective Function 2 of the paper: negative bags to 0, positive bags to either pole, with the zero bound."""

from bimichi.learning.objectives.base import ConvexForm, Objective


def bag_term(fused, counts, size, label, first, second):
    """Eqs. (5) and (6): max C^2 over a negative bag, min (1 - |C|)^2 over a positive one: the largest |C|."""
    top = 0.0
    for i in range(size):
        top = max(top, abs(fused[i]))
    return (1.0 - top) ** 2 if label > 0 else top**2


MAGNITUDE = Objective(
    name="magnitude",
    bag_term=bag_term,
    about="targets to +1 or −1, the rest to 0; one pixel decides a bag",
    absolute=True,
    additive=True,
    convex=ConvexForm(negative=((1, 0.0), (-1, 0.0)), positive=(1, -1), completion="nearest-zero"),
    relevant="extreme",
    fastmath=True,
)
