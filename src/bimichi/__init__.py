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
    from bimichi.comparison import Comparison, compare
    from bimichi.errors import BimichiError, InvalidInputError, ModelFileError, NotRunError
    from bimichi.estimators import (
        MICI,
        BiCapacityQP,
        BiMIChI,
        BinaryMICI,
        ChoquetQP,
        ConstantFusion,
        DetectorMask,
        KNNFusion,
        MaxFusion,
        MeanFusion,
        MICIRegressor,
        MinFusion,
        SingleSource,
        SVMFusion,
        WeightedMeanFusion,
    )
    from bimichi.integral import choquet
    from bimichi.linear import linear_form, usage_counts
    from bimichi.methods import paper_methods
    from bimichi.scene import Scene, join_bags
    from bimichi.solvers import ConvexSolver, EvolutionarySolver
    from bimichi.two_additive import TwoAdditive

__version__ = "0.1.0"

__all__ = [
    "MICI",
    "Bags",
    "BiCapacity",
    "BiCapacityQP",
    "BiMIChI",
    "BimichiError",
    "BinaryMICI",
    "Capacity",
    "ChoquetQP",
    "Comparison",
    "ConstantFusion",
    "ConvexSolver",
    "DetectorMask",
    "EvolutionarySolver",
    "InvalidInputError",
    "KNNFusion",
    "MICIRegressor",
    "MaxFusion",
    "MeanFusion",
    "MinFusion",
    "ModelFileError",
    "NotRunError",
    "SVMFusion",
    "Scene",
    "SingleSource",
    "TwoAdditive",
    "WeightedMeanFusion",
    "choquet",
    "compare",
    "join_bags",
    "linear_form",
    "paper_methods",
    "usage_counts",
]

_HOME = {
    "Bags": "bags",
    "BiCapacity": "bicapacity",
    "BiCapacityQP": "estimators",
    "BiMIChI": "estimators",
    "BimichiError": "errors",
    "BinaryMICI": "estimators",
    "Capacity": "capacity",
    "choquet": "integral",
    "ChoquetQP": "estimators",
    "compare": "comparison",
    "Comparison": "comparison",
    "ConstantFusion": "estimators",
    "ConvexSolver": "solvers",
    "DetectorMask": "estimators",
    "EvolutionarySolver": "solvers",
    "InvalidInputError": "errors",
    "join_bags": "scene",
    "KNNFusion": "estimators",
    "linear_form": "linear",
    "MaxFusion": "estimators",
    "MeanFusion": "estimators",
    "MICI": "estimators",
    "MICIRegressor": "estimators",
    "MinFusion": "estimators",
    "ModelFileError": "errors",
    "NotRunError": "errors",
    "paper_methods": "methods",
    "Scene": "scene",
    "SingleSource": "estimators",
    "SVMFusion": "estimators",
    "TwoAdditive": "two_additive",
    "usage_counts": "linear",
    "WeightedMeanFusion": "estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bimichi' has no attribute {name!r}")
    value = getattr(import_module(f"bimichi.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
