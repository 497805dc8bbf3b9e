"""Scenes to learn from and to compare on: drawn ones, and readers of public ones, which are not included."""

from bimichi.datasets.brains import BrainImages, draw_lesions, lesions
from bimichi.datasets.drawing import UMOptimum, um, um_optimum
from bimichi.datasets.floods import FloodImages, draw_flood, flood
from bimichi.datasets.public import kaist, msrs, pedestrian_sources
from bimichi.datasets.streets import street
from bimichi.scenes.dataset import Dataset

__all__ = [
    "BrainImages",
    "Dataset",
    "FloodImages",
    "UMOptimum",
    "draw_flood",
    "draw_lesions",
    "flood",
    "kaist",
    "lesions",
    "msrs",
    "pedestrian_sources",
    "street",
    "um",
    "um_optimum",
]
