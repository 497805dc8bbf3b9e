"""What is learned, by `additivity`: any bi-capacity, or one that is told by terms; and how model files hold it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.learning.objectives import ADDITIVE_OBJECTIVES, OBJECTIVES, Objective, get_objective
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity

__all__ = ["chosen_objective", "learned_measure"]


def chosen_objective(name: str, additivity: Any) -> Objective:
    """Return the objective of this name, for the measure that `additivity` asks for."""
    if additivity is None:
        return get_objective(name)
    if isinstance(additivity, bool) or not isinstance(additivity, int | np.integer) or additivity not in (1, 2):
        raise InvalidInputError(f"additivity must be None, 1 or 2, got {additivity!r}.")
    if isinstance(name, str) and name in OBJECTIVES and name not in ADDITIVE_OBJECTIVES:
        raise InvalidInputError(
            f"objective={name!r} has no zero bound, but every {additivity}-additive bi-capacity has it. With "
            f"additivity={additivity}, choose one of {', '.join(ADDITIVE_OBJECTIVES)}."
        )
    return replace(get_objective(name, ADDITIVE_OBJECTIVES), additivity=1 if additivity == 1 else 2)


def learned_measure(objective: Objective, values: NDArray[np.float64], names: Sequence[str] | None) -> Measure:
    """Return the measure that a solver's values stand for."""
    if objective.additivity:
        return AdditiveBiCapacity(values, names, objective.additivity)
    if objective.measure == "capacity":
        return Capacity(values, names)
    return BiCapacity(values, names, objective.zero_bound)
