"""What is learned, by `additivity`: any bi-capacity, or one that is told by terms; and how model files hold it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.learning.objectives import ADDITIVE_OBJECTIVES, OBJECTIVES, Objective, get_objective
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.compact import pack_values, unpack_values
from bimichi.measures.files import Arrays
from bimichi.measures.lattice import pair_lattice

__all__ = ["Learned", "chosen_objective", "learned_measure", "pack_measure", "unpack_measure", "version_for"]

Learned = BiCapacity | TwoAdditive


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


def learned_measure(objective: Objective, values: NDArray[np.float64], names: Sequence[str] | None) -> Learned:
    """Return the measure that a solver's values stand for."""
    if objective.additivity:
        return TwoAdditive(values, names)
    return BiCapacity(values, names, objective.zero_bound)


def pack_measure(g: Learned) -> tuple[dict[str, Any], Arrays]:
    """Return header fields and arrays of a model file; see `bimichi.measures.compact.pack_values`."""
    return ({}, {"terms": g.terms}) if isinstance(g, TwoAdditive) else pack_values(g.lattice, g.values)


def unpack_measure(objective: Objective, header: dict[str, Any], arrays: Arrays) -> Learned:
    """Return the measure in a model file; the inverse of `pack_measure`."""
    if objective.additivity:
        return TwoAdditive(arrays["terms"], header["source_names"])
    values = unpack_values(partial(pair_lattice, zero_bound=objective.zero_bound), header, arrays)
    return BiCapacity(values, header["source_names"], objective.zero_bound)


def version_for(header: dict[str, Any], arrays: Arrays) -> int:
    """Return the first version of the format that can hold this."""
    return 2 if "completion" in header or "terms" in arrays or "touched_codes" in arrays else 1
