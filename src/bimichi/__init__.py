"""Sensor fusion with bi-capacities and the Choquet integral, learned from imprecise labels.

The method is Bi-MIChI [1]_. Public names are imported when first used, so that ``import bimichi`` is quick.

References
----------
.. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
   FUZZ-IEEE 2024.
"""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bimichi._moved import MovedFinder
from bimichi._version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which cannot read the table below; a test compares the two
    from bimichi import metrics as metrics
    from bimichi.decision import Decision as Decision
    from bimichi.errors import (
        BimichiError as BimichiError,
        InvalidInputError as InvalidInputError,
        ModelFileError as ModelFileError,
        NotRunError as NotRunError,
    )
    from bimichi.estimators import (
        MICI as MICI,
        BiCapacityQP as BiCapacityQP,
        BiMIChI as BiMIChI,
        BiMIChICV as BiMIChICV,
        BinaryMICI as BinaryMICI,
        ChoquetQP as ChoquetQP,
        ConstantFusion as ConstantFusion,
        DetectorMask as DetectorMask,
        KNNFusion as KNNFusion,
        MaxFusion as MaxFusion,
        MeanFusion as MeanFusion,
        MICIRegressor as MICIRegressor,
        MinFusion as MinFusion,
        SceneKFold as SceneKFold,
        SingleSource as SingleSource,
        SVMFusion as SVMFusion,
        WeightedMeanFusion as WeightedMeanFusion,
        make_bag_scorer as make_bag_scorer,
    )
    from bimichi.evaluation.comparison import Comparison as Comparison, compare as compare
    from bimichi.evaluation.methods import paper_methods as paper_methods
    from bimichi.integral.labelled import choquet as choquet
    from bimichi.integral.linear import linear_form as linear_form, usage_counts as usage_counts
    from bimichi.interactive.starting import studio as studio
    from bimichi.learning.bags import Bags as Bags
    from bimichi.learning.scene import Scene as Scene, join_bags as join_bags
    from bimichi.learning.solvers import ConvexSolver as ConvexSolver, EvolutionarySolver as EvolutionarySolver
    from bimichi.link import Link as Link
    from bimichi.measures.additive import AdditiveBiCapacity as AdditiveBiCapacity
    from bimichi.measures.bicapacity import BiCapacity as BiCapacity
    from bimichi.measures.capacity import Capacity as Capacity
    from bimichi.report import write_report as write_report
    from bimichi.rule import FusionRule as FusionRule, as_rule as as_rule

_NAMES = {
    "decision": "Decision",
    "errors": "BimichiError InvalidInputError ModelFileError NotRunError",
    "estimators": (
        "BiCapacityQP BiMIChI BiMIChICV BinaryMICI ChoquetQP ConstantFusion DetectorMask KNNFusion MICI MICIRegressor "
        "MaxFusion MeanFusion MinFusion SVMFusion SceneKFold SingleSource WeightedMeanFusion make_bag_scorer"
    ),
    "evaluation.comparison": "Comparison compare",
    "evaluation.methods": "paper_methods",
    "integral.labelled": "choquet",
    "integral.linear": "linear_form usage_counts",
    "interactive.starting": "studio",
    "learning.bags": "Bags",
    "learning.scene": "Scene join_bags",
    "learning.solvers": "ConvexSolver EvolutionarySolver",
    "link": "Link",
    "measures.additive": "AdditiveBiCapacity",
    "measures.bicapacity": "BiCapacity",
    "measures.capacity": "Capacity",
    "report": "write_report",
    "rule": "FusionRule as_rule",
}
_HOME = {name: f"bimichi.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME)

sys.meta_path.insert(0, MovedFinder())


def __getattr__(name: str) -> Any:
    if name == "TwoAdditive":
        warnings.warn("TwoAdditive is now called AdditiveBiCapacity.", DeprecationWarning, stacklevel=2)
        name = "AdditiveBiCapacity"
    if name == "metrics":
        return import_module("bimichi.metrics")
    if name not in _HOME:
        raise AttributeError(f"module 'bimichi' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "metrics"})
