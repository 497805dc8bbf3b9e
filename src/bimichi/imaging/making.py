"""Sources made of images by recipes, with the same result for whole images and windows, integers and floats."""

from typing import Any

import numpy as np

from bimichi.imaging.bands import Image, type_range
from bimichi.imaging.layers import float_type
from bimichi.imaging.recipes import AS_IS, find_recipe


def make_plane(image: Image, recipe: str, dtype: np.dtype[Any]) -> Image:
    """Return the source that a recipe makes of an image, or of a part of it if the recipe is pointwise.

    `dtype` is the type in which the image is stored; where it has no data, and in windows of rasters, its integers are
    read as floats. What the recipe makes of them does not depend on that, bit for bit.
    """
    how = find_recipe(recipe)
    if recipe == AS_IS:
        return image.astype(float_type(image.dtype), copy=False) if image.dtype.kind != "f" else image
    if image.dtype.kind != "f" or dtype.kind == "f":
        return how.function(image)
    low, high = type_range(dtype)
    if how.pointwise and image.ndim == 2:
        return how.function(image, low=low, high=high)
    return how.function(np.clip((image - low) / (high - low), 0, 1).astype(np.float32, copy=False))
