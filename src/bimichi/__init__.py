"""Sensor fusion with bi-capacities and the Choquet integral, learned from imprecise labels.

The method is Bi-MIChI [1]_. Public names are imported when first used, so that ``import bimichi`` is quick.

References
----------
.. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
   FUZZ-IEEE 2024.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bimichi._moved import MovedFinder
from bimichi._version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which cannot read the table below; a test compares the two
    from bimichi import metrics as metrics
    from bimichi.errors import BimichiError as BimichiError
    from bimichi.errors import InvalidInputError as InvalidInputError
    from bimichi.errors import ModelFileError as ModelFileError
    from bimichi.errors import NotRunError as NotRunError
    from bimichi.estimators import MICI as MICI
    from bimichi.estimators import BiCapacityQP as BiCapacityQP
    from bimichi.estimators import BiMIChI as BiMIChI
    from bimichi.estimators import BinaryMICI as BinaryMICI
    from bimichi.estimators import ChoquetQP as ChoquetQP
    from bimichi.estimators import ConstantFusion as ConstantFusion
    from bimichi.estimators import DetectorMask as DetectorMask
    from bimichi.estimators import KNNFusion as KNNFusion
    from bimichi.estimators import MaxFusion as MaxFusion
    from bimichi.estimators import MeanFusion as MeanFusion
    from bimichi.estimators import MICIRegressor as MICIRegressor
    from bimichi.estimators import MinFusion as MinFusion
    from bimichi.estimators import SingleSource as SingleSource
    from bimichi.estimators import SVMFusion as SVMFusion
    from bimichi.estimators import WeightedMeanFusion as WeightedMeanFusion
    from bimichi.evaluation.comparison import Comparison as Comparison
    from bimichi.evaluation.comparison import compare as compare
    from bimichi.evaluation.methods import paper_methods as paper_methods
    from bimichi.integral.integrals import choquet as choquet
    from bimichi.integral.linear import linear_form as linear_form
    from bimichi.integral.linear import usage_counts as usage_counts
    from bimichi.learning.bags import Bags as Bags
    from bimichi.learning.scene import Scene as Scene
    from bimichi.learning.scene import join_bags as join_bags
    from bimichi.learning.solvers import ConvexSolver as ConvexSolver
    from bimichi.learning.solvers import EvolutionarySolver as EvolutionarySolver
    from bimichi.measures.additive import TwoAdditive as TwoAdditive
    from bimichi.measures.bicapacity import BiCapacity as BiCapacity
    from bimichi.measures.capacity import Capacity as Capacity

_NAMES = {
    "errors": "BimichiError InvalidInputError ModelFileError NotRunError",
    "estimators": (
        "BiCapacityQP BiMIChI BinaryMICI ChoquetQP ConstantFusion DetectorMask KNNFusion MICI MICIRegressor MaxFusion "
        "MeanFusion MinFusion SVMFusion SingleSource WeightedMeanFusion"
    ),
    "evaluation.comparison": "Comparison compare",
    "evaluation.methods": "paper_methods",
    "integral.integrals": "choquet",
    "integral.linear": "linear_form usage_counts",
    "learning.bags": "Bags",
    "learning.scene": "Scene join_bags",
    "learning.solvers": "ConvexSolver EvolutionarySolver",
    "measures.additive": "TwoAdditive",
    "measures.bicapacity": "BiCapacity",
    "measures.capacity": "Capacity",
}
_HOME = {name: f"bimichi.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME)

sys.meta_path.insert(0, MovedFinder())


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("bimichi.metrics")
    if name not in _HOME:
        raise AttributeError(f"module 'bimichi' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "metrics"})
