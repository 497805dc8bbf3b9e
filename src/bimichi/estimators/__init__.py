"""Estimators in the manner of scikit-learn. One file each."""

from bimichi.estimators.bimichi import BiMIChI
from bimichi.estimators.detector import DetectorMask

__all__ = ["BiMIChI", "DetectorMask"]
