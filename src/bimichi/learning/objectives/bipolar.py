"""Objective Function 1 of the paper: negative bags to -1, positive bags to +1, without the zero bound."""

import numba

from bimichi.learning.objectives.base import ConvexForm, Objective

__all__ = ["BIPOLAR", "bag_term"]

BIPOLAR = Objective(
    name="bipolar",
    code=0,
    zero_bound=False,
    convex=ConvexForm(negative=((1, 1.0),), positive=(1,), completion="lowest"),
    keeps="maximal",
)


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, positive):  # type: ignore[no-untyped-def]
    """Eqs. (2) and (3): max (C + 1)^2 over a negative bag, min (C - 1)^2 over a positive one.

    Since C lies in [-1, 1], both are decided by the largest C.
    """
    top = fused[0]
    for value in fused:
        top = max(top, value)
    return (1.0 - top) ** 2 if positive else (1.0 + top) ** 2
