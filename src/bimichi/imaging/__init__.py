"""From co-registered images and boxes to sources and labelled bags.

Packages of the extra `image` are imported when a function needs them: install them with ``pip install 'bimichi[image]'``.
"""

from bimichi.imaging.pedestrians import pedestrian_sources
from bimichi.imaging.regions import box_mask, boxes_of, label_bags, polygon_mask
from bimichi.imaging.segments import grid_segments, superpixels
from bimichi.imaging.sources import (
    SOURCE_RECIPES,
    adaptive_threshold,
    difference,
    edge_strength,
    equalize,
    gamma_correction,
    grey,
    local_contrast,
    to_bipolar,
)

__all__ = [
    "SOURCE_RECIPES",
    "adaptive_threshold",
    "box_mask",
    "boxes_of",
    "difference",
    "edge_strength",
    "equalize",
    "gamma_correction",
    "grey",
    "grid_segments",
    "label_bags",
    "local_contrast",
    "pedestrian_sources",
    "polygon_mask",
    "superpixels",
    "to_bipolar",
]
