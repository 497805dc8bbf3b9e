"""What learning minimises. One file each; a new one adds a line to `OBJECTIVES` and one to `bag_term`."""

import numba

from bimichi.errors import InvalidInputError
from bimichi.objectives import bipolar, magnitude, mean
from bimichi.objectives.base import ConvexForm, Objective

__all__ = ["OBJECTIVES", "ConvexForm", "Objective", "bag_term", "get_objective"]

OBJECTIVES = {objective.name: objective for objective in (bipolar.BIPOLAR, magnitude.MAGNITUDE, mean.MEAN)}


def get_objective(name: str) -> Objective:
    """Return the objective of this name."""
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise InvalidInputError(f"objective must be one of {', '.join(OBJECTIVES)}, got {name!r}.")
    return OBJECTIVES[name]


@numba.njit(cache=True, nogil=True)
def bag_term(code, fused, counts, positive):  # type: ignore[no-untyped-def]
    """Term of one bag, from the integrals of its instances, by the objective with this code."""
    if code == 0:
        return bipolar.bag_term(fused, positive)
    if code == 1:
        return magnitude.bag_term(fused, positive)
    return mean.bag_term(fused, counts, positive)
