from .annotations import AnnotationFormat as AnnotationFormat, ImageAnnotations as ImageAnnotations
from .bags import Bags as Bags
from .dataset import Dataset as Dataset
from .labels import Placement as Placement, Regions as Regions, in_pixels as in_pixels, rasterise as rasterise
from .masks import box_mask as box_mask, boxes_of as boxes_of, label_bags as label_bags, polygon_mask as polygon_mask
from .scene import Scene as Scene, join_bags as join_bags
from .shapes import Disc as Disc, Polygons as Polygons, Runs as Runs
from .superpixels import (
    bag_sizes as bag_sizes,
    core_bags as core_bags,
    grid_segments as grid_segments,
    label_pixels as label_pixels,
    superpixels as superpixels,
)
