"""How model files hold a learned measure."""

from functools import partial
from typing import Any

from bimichi.learning.objectives import Objective, get_objective
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.compact import pack_values, unpack_values
from bimichi.measures.files import Arrays
from bimichi.measures.lattice import pair_lattice

__all__ = ["Learned", "chosen_objective", "pack_measure", "unpack_measure", "version_for"]

Learned = BiCapacity | TwoAdditive


def chosen_objective(name: str, additivity: Any) -> Objective:
    """Return the objective of this name, for the measure that `additivity` asks for."""
    return get_objective(name, additivity=additivity)


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
