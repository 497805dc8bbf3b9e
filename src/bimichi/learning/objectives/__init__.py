"""What learning minimises. One file each; a new one adds a line to a table here, and one to `bag_term`."""

from dataclasses import replace

import numba

from bimichi.errors import InvalidInputError
from bimichi.learning.objectives import bipolar, generalized_mean, magnitude, mean, min_max, noisy_or, regression
from bimichi.learning.objectives.base import ConvexForm, Objective, to_common_scale

__all__ = [
    "ADDITIVE_OBJECTIVES",
    "CAPACITY_OBJECTIVES",
    "OBJECTIVES",
    "REGRESSION",
    "ConvexForm",
    "Objective",
    "bag_term",
    "get_objective",
    "to_common_scale",
]

OBJECTIVES = {objective.name: objective for objective in (bipolar.BIPOLAR, magnitude.MAGNITUDE, mean.MEAN)}
"""For bi-capacities."""

CAPACITY_OBJECTIVES = {
    objective.name: objective
    for objective in (
        noisy_or.NOISY_OR,
        min_max.MIN_MAX,
        generalized_mean.GENERALIZED_MEAN,
        mean.NORMALISED_MEAN,
    )
}
"""For normalised measures."""

ADDITIVE_OBJECTIVES = {
    objective.name: replace(objective, additivity=2, zero_bound=True) for objective in (magnitude.MAGNITUDE, mean.MEAN)
}
"""For bi-capacities that are told by terms, which have the zero bound."""

REGRESSION = regression.REGRESSION


def get_objective(
    name: str, among: dict[str, Objective] = OBJECTIVES, parameters: tuple[float, float] | None = None
) -> Objective:
    """Return the objective of this name, with its own parameters or with these."""
    if not isinstance(name, str) or name not in among:
        raise InvalidInputError(f"objective must be one of {', '.join(among)}, got {name!r}.")
    return among[name] if parameters is None else replace(among[name], parameters=parameters)


@numba.njit(cache=True, nogil=True)
def bag_term(term, fused, counts, label):  # type: ignore[no-untyped-def]
    """Term of one bag, from the integrals of its instances; `label` is above 0 for a positive bag, or real."""
    positive = label > 0
    if term.code == 0:
        return bipolar.bag_term(fused, positive)
    if term.code == 1:
        return magnitude.bag_term(fused, positive)
    if term.code == 2:
        return mean.bag_term(fused, counts, term.second if positive else term.first)
    if term.code == 3:
        return min_max.bag_term(fused, positive)
    if term.code == 4:
        return noisy_or.bag_term(fused, counts, positive, term.first, term.second)
    if term.code == 5:
        target, power = (1.0, term.second) if positive else (0.0, term.first)
        return generalized_mean.bag_term(fused, counts, target, power)
    return regression.bag_term(fused, label)
