from .annotations import (
    ANNOTATION_FORMATS as ANNOTATION_FORMATS,
    read_annotations as read_annotations,
    read_boxes as read_boxes,
    register_annotation_format as register_annotation_format,
)
from .annotations.match import Doubt as Doubt, check_annotations as check_annotations, check_targets as check_targets
from .annotations.write import write_annotations as write_annotations
from .check import DatasetCheck as DatasetCheck, DatasetChecker as DatasetChecker
from .dataset import SceneCollection as SceneCollection, open_scenes as open_scenes, read_sources as read_sources
from .images import read_image as read_image
from .scene import OpenScene as OpenScene
from .write import write_geotiff as write_geotiff, write_image as write_image
