"""Scenes to learn from and to compare on: drawn ones, and readers of public ones, which are not included."""

from bimichi.datasets.letters import UMOptimum, um, um_optimum
from bimichi.datasets.public import kaist, msrs
from bimichi.datasets.streets import street
from bimichi.learning.scene import Scenes

__all__ = ["Scenes", "UMOptimum", "kaist", "msrs", "street", "um", "um_optimum"]
