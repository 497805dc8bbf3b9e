"""What users fit: Bi-MIChI, and the methods it is measured against."""

from bimichi.methods.baselines import (
    ConstantFusion,
    GradientBoosting,
    KNNFusion,
    MaxFusion,
    MeanFusion,
    MinFusion,
    SignedSource,
    SingleSource,
    SVMFusion,
    WeightedMeanFusion,
)
from bimichi.methods.bimichi import BiMIChI
from bimichi.methods.capacities import MICI, BiCapacityQP, BinaryMICI, ChoquetQP, MICIRegressor
from bimichi.methods.cross_validated import BiMIChICV, SceneKFold, make_bag_scorer
from bimichi.methods.detector import DetectorMask

__all__ = [
    "MICI",
    "BiCapacityQP",
    "BiMIChI",
    "BiMIChICV",
    "BinaryMICI",
    "ChoquetQP",
    "ConstantFusion",
    "DetectorMask",
    "GradientBoosting",
    "KNNFusion",
    "MICIRegressor",
    "MaxFusion",
    "MeanFusion",
    "MinFusion",
    "SVMFusion",
    "SceneKFold",
    "SignedSource",
    "SingleSource",
    "WeightedMeanFusion",
    "make_bag_scorer",
]
