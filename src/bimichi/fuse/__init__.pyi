from .detections import (
    Detections as Detections,
    Georeference as Georeference,
    detect as detect,
    write_detections as write_detections,
)
from .frames import FrameResults as FrameResults, fuse_frames as fuse_frames
from .rasters import fuse_array as fuse_array, fuse_raster as fuse_raster
