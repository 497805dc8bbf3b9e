"""Estimators in the manner of scikit-learn. One file each."""

from bimichi.estimators.bimichi import BiMIChI

__all__ = ["BiMIChI"]
