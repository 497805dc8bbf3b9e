"""Data that is larger than memory or has coordinates: xarray objects, rasters, and frames in bulk.

Packages of the extra `raster` are imported when a function needs them; ``pip install 'bimichi[raster]'`` installs them.
If xarray is installed, importing this package registers ``X.bimichi.fuse(model)`` for its arrays and datasets.
"""

from importlib.util import find_spec

from bimichi.integral.labelled import fuse_array
from bimichi.scale.frames import FrameResults, fuse_frames
from bimichi.scale.rasters import fuse_raster

if find_spec("xarray"):
    import bimichi.scale.accessor  # noqa: F401  # registers itself

__all__ = ["FrameResults", "fuse_array", "fuse_frames", "fuse_raster"]
