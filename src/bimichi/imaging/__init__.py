"""From co-registered images and annotations to sources and labelled bags.

Packages of the extra `image` are imported when a function needs them; ``pip install 'bimichi[image]'`` installs them.
"""

from bimichi.imaging.annotation_writing import write_annotations
from bimichi.imaging.annotations import ANNOTATION_FORMATS, read_annotations, read_boxes, register_annotation_format
from bimichi.imaging.band_maths import BandExpression, parse_expression
from bimichi.imaging.checking import DatasetCheck, DatasetChecker
from bimichi.imaging.collecting import SceneCollection, open_scenes, read_sources
from bimichi.imaging.detections import Detections, Georeference, detect, write_detections
from bimichi.imaging.formats import AnnotationFormat, ImageAnnotations
from bimichi.imaging.pedestrians import pedestrian_sources
from bimichi.imaging.placement import Placement, Regions, in_pixels, rasterise
from bimichi.imaging.reading import read_image
from bimichi.imaging.recipes import RECIPES, SOURCE_RECIPES, Recipe, load_recipe, register_recipe
from bimichi.imaging.regions import box_mask, boxes_of, label_bags, polygon_mask
from bimichi.imaging.registration import Shift, estimate_shift
from bimichi.imaging.sanity import Doubt, check_annotations, check_targets
from bimichi.imaging.scales import inverted, quantile, rarity
from bimichi.imaging.scenes import OpenScene
from bimichi.imaging.segments import bag_sizes, core_bags, grid_segments, label_pixels, superpixels
from bimichi.imaging.shapes import Disc, Polygons, Runs
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
from bimichi.imaging.writing import write_geotiff, write_image

__all__ = [
    "ANNOTATION_FORMATS",
    "RECIPES",
    "SOURCE_RECIPES",
    "AnnotationFormat",
    "BandExpression",
    "DatasetCheck",
    "DatasetChecker",
    "Detections",
    "Disc",
    "Doubt",
    "Georeference",
    "ImageAnnotations",
    "OpenScene",
    "Placement",
    "Polygons",
    "Recipe",
    "Regions",
    "Runs",
    "SceneCollection",
    "Shift",
    "adaptive_threshold",
    "bag_sizes",
    "box_mask",
    "boxes_of",
    "check_annotations",
    "check_targets",
    "core_bags",
    "detect",
    "difference",
    "edge_strength",
    "equalize",
    "estimate_shift",
    "gamma_correction",
    "grey",
    "grid_segments",
    "in_pixels",
    "inverted",
    "label_bags",
    "label_pixels",
    "load_recipe",
    "local_contrast",
    "local_difference",
    "open_scenes",
    "parse_expression",
    "pedestrian_sources",
    "polygon_mask",
    "quantile",
    "rarity",
    "rasterise",
    "read_annotations",
    "read_boxes",
    "read_image",
    "read_sources",
    "register_annotation_format",
    "register_recipe",
    "superpixels",
    "to_bipolar",
    "vertical_edges",
    "write_annotations",
    "write_detections",
    "write_geotiff",
    "write_image",
]
