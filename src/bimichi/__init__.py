"""Sensor fusion with bi-capacities and the Choquet integral, learned from imprecise labels.

The method is Bi-MIChI [1]_. Public names are imported when first used, so that ``import bimichi`` is quick.

References
----------
.. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
   FUZZ-IEEE 2024.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bimichi.bags import Bags
    from bimichi.bicapacity import BiCapacity
    from bimichi.capacity import Capacity
    from bimichi.errors import BimichiError, InvalidInputError, ModelFileError
    from bimichi.estimators import BiMIChI
    from bimichi.integral import choquet
    from bimichi.linear import linear_form, usage_counts
    from bimichi.solvers import ConvexSolver, EvolutionarySolver

__version__ = "0.1.0"

__all__ = [
    "Bags",
    "BiCapacity",
    "BiMIChI",
    "BimichiError",
    "Capacity",
    "ConvexSolver",
    "EvolutionarySolver",
    "InvalidInputError",
    "ModelFileError",
    "choquet",
    "linear_form",
    "usage_counts",
]

_HOME = {
    "Bags": "bags",
    "BiCapacity": "bicapacity",
    "BiMIChI": "estimators",
    "BimichiError": "errors",
    "Capacity": "capacity",
    "ConvexSolver": "solvers",
    "EvolutionarySolver": "solvers",
    "InvalidInputError": "errors",
    "ModelFileError": "errors",
    "choquet": "integral",
    "linear_form": "linear",
    "usage_counts": "linear",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bimichi' has no attribute {name!r}")
    value = getattr(import_module(f"bimichi.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
