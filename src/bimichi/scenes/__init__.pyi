from .annotations import (
    AnnotationFormat as AnnotationFormat,
    ImageAnnotations as ImageAnnotations,
    in_pixels as in_pixels,
)
from .bags import Bags as Bags
from .dataset import Dataset as Dataset
from .grid import Placement as Placement
from .labels import (
    Labelling as Labelling,
    Regions as Regions,
    bag_scene as bag_scene,
    bag_sizes as bag_sizes,
    core_bags as core_bags,
    label_bags as label_bags,
    label_pixels as label_pixels,
    pixel_labels as pixel_labels,
    rasterise as rasterise,
    scene_labels as scene_labels,
)
from .scene import Scene as Scene, join_bags as join_bags
from .shapes import (
    Disc as Disc,
    Polygons as Polygons,
    Runs as Runs,
    box_mask as box_mask,
    boxes_of as boxes_of,
    polygon_mask as polygon_mask,
)
from .superpixels import grid_segments as grid_segments, superpixels as superpixels
