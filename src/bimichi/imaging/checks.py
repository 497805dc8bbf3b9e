"""Checks of images, masks and shapes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError

__all__ = ["check_image", "check_mask", "check_shape"]


def check_image(image: ArrayLike, bands: int | None = 3) -> NDArray[Any]:
    """Return an array of one band, or of this number of bands (any for None), of real numbers or NaN."""
    if isinstance(image, np.ma.MaskedArray):
        raise InvalidInputError("image is a masked array; pass image.filled(np.nan), and masked pixels become NaN.")
    array = np.asarray(image)
    if array.size == 0 or array.ndim not in (2, 3) or (array.ndim == 3 and bands not in (None, array.shape[2])):
        wanted = "n_bands)" if bands is None else f"{bands}) for RGB"
        raise InvalidInputError(
            f"image must have shape (height, width) or (height, width, {wanted}, got {array.shape}. "
            "Take one band of others, e.g. image[..., 0]."
        )
    if array.dtype.kind not in "buif":
        raise InvalidInputError(f"image has type {array.dtype}; it must be real numbers.")
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise InvalidInputError("image has infinite values; clip them, or set them to NaN.")
    return array


def check_mask(mask: ArrayLike, what: str, shape: tuple[int, ...] | None = None) -> NDArray[np.bool_]:
    """Return an array of bool of two axes, of this shape if it is given."""
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.ndim != 2:
        raise InvalidInputError(
            f"{what} must be an array of bool of shape (height, width), got {array.dtype} of shape {array.shape}. "
            "Compare first, e.g. label == 2."
        )
    if shape is not None and array.shape != shape:
        raise InvalidInputError(f"{what} has shape {array.shape}; it must be that of the image, {shape}.")
    return array


def check_shape(shape: Any, what: str = "shape") -> tuple[int, int]:
    """Return a height and a width of at least 1."""
    pair = np.asarray(shape)
    if pair.shape != (2,) or pair.dtype.kind not in "iu" or pair.min() < 1:
        raise InvalidInputError(f"{what} must be (height, width), whole numbers of at least 1, got {shape!r}.")
    return int(pair[0]), int(pair[1])
