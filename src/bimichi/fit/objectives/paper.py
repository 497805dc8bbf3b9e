"""Objective Function 1 of the paper: negative bags to -1, positive bags to +1, without the zero bound."""

from bimichi.fit.objectives.base import ConvexForm, Objective


def bipolar_term(fused, counts, size, label, first, second):
    """Eqs. (2) and (3): max (C + 1)^2 over a negative bag, min (C - 1)^2 over a positive one.

    Since C lies in [-1, 1], both are decided by the largest C.
    """
    top = fused[0]
    for i in range(size):
        top = max(top, fused[i])
    return (1.0 - top) ** 2 if label > 0 else (1.0 + top) ** 2


BIPOLAR = Objective(
    name="bipolar",
    bag_term=bipolar_term,
    about="targets to +1, the rest to −1; one pixel decides a bag",
    zero_bound=False,
    convex=ConvexForm(negative=((1, 1.0),), positive=(1,), completion="lowest"),
    relevant="maximal",
    fastmath=True,
)


def magnitude_term(fused, counts, size, label, first, second):
    """Eqs. (5) and (6): max C^2 over a negative bag, min (1 - |C|)^2 over a positive one: the largest |C|."""
    top = 0.0
    for i in range(size):
        top = max(top, abs(fused[i]))
    return (1.0 - top) ** 2 if label > 0 else top**2


MAGNITUDE = Objective(
    name="magnitude",
    bag_term=magnitude_term,
    about="targets to +1 or −1, the rest to 0; one pixel decides a bag",
    absolute=True,
    additive=True,
    convex=ConvexForm(negative=((1, 0.0), (-1, 0.0)), positive=(1, -1), completion="nearest-zero"),
    relevant="extreme",
    fastmath=True,
)
