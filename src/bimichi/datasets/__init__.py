"""Scenes to learn from and to compare on."""

from bimichi.datasets.letters import UMOptimum, um, um_optimum
from bimichi.datasets.pedestrians import Scenes
from bimichi.datasets.streets import street

__all__ = ["Scenes", "UMOptimum", "street", "um", "um_optimum"]
