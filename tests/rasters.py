"""Writes and reads small rasters, and the measures that fuse them."""

import numpy as np
from affine import Affine

from bimichi import BiCapacity
from bimichi.io.raster import open_dataset

GRID = {"crs": "EPSG:32632", "transform": Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0)}
NAMES = ["thermal", "red", "edges"]
MEASURE = BiCapacity.random(3, random_state=1)
NAMED = BiCapacity(MEASURE.values, NAMES)


def at(west, north, width, height):
    """The transform of a grid with this corner and pixels of this size."""
    return Affine(width, 0.0, west, 0.0, -height, north)


def read(path):
    with open_dataset(path) as dataset:
        return dataset.read(1)


def write(path, planes, descriptions=(), **options):
    planes = np.asarray(planes)
    profile = GRID | {"driver": "GTiff", "dtype": planes.dtype.name, "count": len(planes)} | options
    with open_dataset(path, "w", width=planes.shape[2], height=planes.shape[1], **profile) as dataset:
        dataset.write(planes)
        for k, text in enumerate(descriptions):
            dataset.set_band_description(k + 1, text)
    return path
