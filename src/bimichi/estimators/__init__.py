"""What users fit: Bi-MIChI, and the methods it is measured against."""

from bimichi.estimators.averages import (
    ConstantFusion,
    MaxFusion,
    MeanFusion,
    MinFusion,
    SignedSource,
    SingleSource,
    WeightedMeanFusion,
)
from bimichi.estimators.bimichi import BiMIChI
from bimichi.estimators.choquet_qp import BiCapacityQP, ChoquetQP
from bimichi.estimators.classifiers import GradientBoosting, KNNFusion, SVMFusion
from bimichi.estimators.cross_validated import BiMIChICV
from bimichi.estimators.detector import DetectorMask
from bimichi.estimators.mici import MICI, BinaryMICI, MICIRegressor
from bimichi.estimators.splitting import SceneKFold, make_bag_scorer

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
