"""Objective Function 2 of the paper: negative bags to 0, positive bags to either pole, with the zero bound."""

import numba

from bimichi.learning.objectives.base import ConvexForm, Objective

__all__ = ["MAGNITUDE", "bag_term"]

MAGNITUDE = Objective(
    name="magnitude",
    code=1,
    absolute=True,
    convex=ConvexForm(negative=((1, 0.0), (-1, 0.0)), positive=(1, -1), completion="nearest-zero"),
    keeps="extreme",
)


@numba.njit(cache=True, nogil=True, fastmath=True)
def bag_term(fused, positive):  # type: ignore[no-untyped-def]
    """Eqs. (5) and (6): max C^2 over a negative bag, min (1 - |C|)^2 over a positive one: the largest |C|."""
    top = 0.0
    for value in fused:
        top = max(top, abs(value))
    return (1.0 - top) ** 2 if positive else top**2
