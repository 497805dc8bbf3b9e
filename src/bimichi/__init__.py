"""Sensor fusion with bi-capacities and the Choquet integral, learned from imprecise labels.

The method is Bi-MIChI [1]_. Public names are imported when first used, so that ``import bimichi`` is quick.

References
----------
.. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
   FUZZ-IEEE 2024.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from bimichi.evaluation.comparison import Comparison, compare
    from bimichi.evaluation.methods import paper_methods
    from bimichi.integral.integrals import choquet
    from bimichi.integral.linear import linear_form, usage_counts
    from bimichi.learning.bags import Bags
    from bimichi.learning.scene import Scene, join_bags
    from bimichi.learning.solvers import ConvexSolver, EvolutionarySolver
    from bimichi.measures.additive import AdditiveBiCapacity
    from bimichi.measures.bicapacity import BiCapacity
    from bimichi.measures.capacity import Capacity
    from bimichi.rule import FusionRule, as_rule

__version__ = "0.1.0"

__all__ = [
    "MICI",
    "AdditiveBiCapacity",
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
    "FusionRule",
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
    "WeightedMeanFusion",
    "as_rule",
    "choquet",
    "compare",
    "join_bags",
    "linear_form",
    "paper_methods",
    "usage_counts",
]

_HOME = {
    "AdditiveBiCapacity": "measures.additive",
    "as_rule": "rule",
    "FusionRule": "rule",
    "Bags": "learning.bags",
    "BiCapacity": "measures.bicapacity",
    "BiCapacityQP": "estimators",
    "BiMIChI": "estimators",
    "BimichiError": "errors",
    "BinaryMICI": "estimators",
    "Capacity": "measures.capacity",
    "choquet": "integral.integrals",
    "ChoquetQP": "estimators",
    "compare": "evaluation.comparison",
    "Comparison": "evaluation.comparison",
    "ConstantFusion": "estimators",
    "ConvexSolver": "learning.solvers",
    "DetectorMask": "estimators",
    "EvolutionarySolver": "learning.solvers",
    "InvalidInputError": "errors",
    "join_bags": "learning.scene",
    "KNNFusion": "estimators",
    "linear_form": "integral.linear",
    "MaxFusion": "estimators",
    "MeanFusion": "estimators",
    "MICI": "estimators",
    "MICIRegressor": "estimators",
    "MinFusion": "estimators",
    "ModelFileError": "errors",
    "NotRunError": "errors",
    "paper_methods": "evaluation.methods",
    "Scene": "learning.scene",
    "SingleSource": "estimators",
    "SVMFusion": "estimators",
    "usage_counts": "integral.linear",
    "WeightedMeanFusion": "estimators",
}


def __getattr__(name: str) -> Any:
    if name == "TwoAdditive":
        warnings.warn("TwoAdditive is now called AdditiveBiCapacity.", DeprecationWarning, stacklevel=2)
        name = "AdditiveBiCapacity"
    if name not in _HOME:
        raise AttributeError(f"module 'bimichi' has no attribute {name!r}")
    value = getattr(import_module(f"bimichi.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
