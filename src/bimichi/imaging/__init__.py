"""From co-registered images and annotations to sources and labelled bags.

Packages of the extra `image` are imported when a function needs them; ``pip install 'bimichi[image]'`` installs them.
"""

from bimichi.imaging.annotations import ANNOTATION_FORMATS, read_annotations, read_boxes, register_annotation_format
from bimichi.imaging.cores import bag_sizes, core_bags, label_pixels
from bimichi.imaging.formats import AnnotationFormat, ImageAnnotations
from bimichi.imaging.pedestrians import pedestrian_sources
from bimichi.imaging.reading import read_image, read_sources
from bimichi.imaging.recipes import RECIPES, SOURCE_RECIPES, Recipe, load_recipe, register_recipe
from bimichi.imaging.regions import box_mask, boxes_of, label_bags, polygon_mask
from bimichi.imaging.scales import inverted, quantile, rarity
from bimichi.imaging.segments import grid_segments, superpixels
from bimichi.imaging.sources import (
    adaptive_threshold,
    difference,
    edge_strength,
    equalize,
    gamma_correction,
    grey,
    local_contrast,
    local_difference,
    to_bipolar,
    vertical_edges,
)
from bimichi.imaging.writing import write_image

__all__ = [
    "ANNOTATION_FORMATS",
    "RECIPES",
    "SOURCE_RECIPES",
    "AnnotationFormat",
    "ImageAnnotations",
    "Recipe",
    "adaptive_threshold",
    "bag_sizes",
    "box_mask",
    "boxes_of",
    "core_bags",
    "difference",
    "edge_strength",
    "equalize",
    "gamma_correction",
    "grey",
    "grid_segments",
    "inverted",
    "label_bags",
    "label_pixels",
    "load_recipe",
    "local_contrast",
    "local_difference",
    "pedestrian_sources",
    "polygon_mask",
    "quantile",
    "rarity",
    "read_annotations",
    "read_boxes",
    "read_image",
    "read_sources",
    "register_annotation_format",
    "register_recipe",
    "superpixels",
    "to_bipolar",
    "vertical_edges",
    "write_image",
]
