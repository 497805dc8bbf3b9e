"""MICI's min-max objective: negative bags to 0, positive bags to 1."""

import numba

from bimichi.learning.objectives.base import ConvexForm, Objective

__all__ = ["MIN_MAX", "bag_term"]

MIN_MAX = Objective(
    name="min-max",
    code=3,
    measure="capacity",
    convex=ConvexForm(negative=((1, 0.0),), positive=(1,), completion="lowest"),
    keeps="maximal",
)


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, positive):  # type: ignore[no-untyped-def]
    """Return max C^2 over a negative bag, min (C - 1)^2 over a positive one: since C is in [0, 1], the largest C."""
    top = fused[0]
    for value in fused:
        top = max(top, value)
    return (1.0 - top) ** 2 if positive else top**2
