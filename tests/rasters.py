"""Writes small rasters."""

import numpy as np
from affine import Affine

from bimichi.imaging.raster_layers import open_dataset

GRID = {"crs": "EPSG:32632", "transform": Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0)}


def write(path, planes, descriptions=(), **options):
    planes = np.asarray(planes)
    profile = GRID | {"driver": "GTiff", "dtype": planes.dtype.name, "count": len(planes)} | options
    with open_dataset(path, "w", width=planes.shape[2], height=planes.shape[1], **profile) as dataset:
        dataset.write(planes)
        for k, text in enumerate(descriptions):
            dataset.set_band_description(k + 1, text)
    return path
