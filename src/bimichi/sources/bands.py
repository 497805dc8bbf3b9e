"""Checks of images and masks, and one band of an image on a known scale."""

from collections.abc import Collection
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import refuse_masked
from bimichi._types import Flags
from bimichi.errors import InvalidInputError

Image = NDArray[Any]
Plane = NDArray[np.float32]

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in lightness (ITU-R BT.601)."""

ROUNDING = 1e-6
"""Rounding error of sums and means of float32, relative to the largest value."""


def check_image(image: ArrayLike, bands: int | None = 3) -> Image:
    """Return an array of one band, or of this number of bands (any for None), of real numbers or NaN."""
    if isinstance(image, np.ma.MaskedArray):
        raise InvalidInputError(
            "image is a masked array; pass image.filled(np.nan), and masked pixels become NaN.",
            code="masked-array",
            argument="image",
        )
    array = np.asarray(image)
    if array.size == 0 or array.ndim not in (2, 3) or (array.ndim == 3 and bands not in (None, array.shape[2])):
        wanted = "n_bands)" if bands is None else f"{bands}) for RGB"
        raise InvalidInputError(
            f"image must have shape (height, width) or (height, width, {wanted}, got {array.shape}. "
            "Of other images, pass one band, e.g. image[..., 0].",
            code="image-shape",
            argument="image",
            value=array.shape,
        )
    if array.dtype.kind not in "buif":
        raise InvalidInputError(
            f"image has type {array.dtype}; it must be real numbers.", code="image-type", argument="image"
        )
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise InvalidInputError(
            "image has infinite values; clip them, or set them to NaN.", code="infinite", argument="image"
        )
    return array


def check_mask(mask: ArrayLike, what: str, shape: tuple[int, ...] | None = None) -> Flags:
    """Return an array of bool of two axes, of this shape if it is given."""
    array = np.asarray(refuse_masked(mask, what))
    if array.dtype != np.bool_ or array.ndim != 2:
        raise InvalidInputError(
            f"{what} must be an array of bool of shape (height, width), got {array.dtype} of shape {array.shape}. "
            "Compare first, e.g. label == 2.",
            code="mask-kind",
            argument=what,
        )
    if shape is not None and array.shape != shape:
        raise InvalidInputError(
            f"{what} has shape {array.shape}; it must be that of the image, {shape}.", code="mask-size", argument=what
        )
    return array


def check_shape(shape: Any, what: str = "shape") -> tuple[int, int]:
    """Return a height and a width of at least 1."""
    pair = np.asarray(shape)
    if pair.shape != (2,) or pair.dtype.kind not in "iu" or pair.min() < 1:
        raise InvalidInputError(
            f"{what} must be (height, width), whole numbers of at least 1, got {shape!r}.",
            code="window",
            argument=what,
            value=shape,
        )
    return int(pair[0]), int(pair[1])


def first_few(names: Collection[str]) -> str:
    """Return the first five names for errors, and how many more there are."""
    return ", ".join(islice(names, 5)) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def brightness(image: ArrayLike) -> Plane:
    """Return one band: integers mapped to [0, 1] over the range of their type, floats as they are."""
    array = check_image(image)
    values = lightness(array)
    if array.dtype.kind != "f":
        low, high = type_range(array.dtype)
        values = np.clip((values - low) / (high - low), 0, 1)
    return values.astype(np.float32, copy=False)


def unit_brightness(
    image: ArrayLike, low: float | None, high: float | None, percentiles: tuple[float, float] | None
) -> Image:
    """Return one band with [low, high] mapped to [0, 1] and clipped, by the rules of `to_bipolar`."""
    array = check_image(image)
    values = lightness(array)
    if percentiles is None:
        least, most = _range(array.dtype, values, low, high)
    else:
        if low is not None or high is not None:
            raise InvalidInputError("Pass either low and high, or percentiles, not both.", code="low-high")
        least, most = _percentiles(values, percentiles)
        if least == most:
            return np.where(np.isnan(values), values, 0.5)
    return np.asarray(np.clip((values - least) / (most - least), 0, 1))


def type_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the values that become 0 and 1 by default: the range of an integer type, [0, 1] for floats and bool."""
    if dtype.kind in "bf":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def lightness(image: Image) -> Image:
    """Return one band of floats in the units of the image, with all its digits."""
    values = image.astype(np.result_type(image.dtype, np.float32), copy=False)
    if values.ndim == 2:
        return values
    red, green, blue = (values[..., k] * values.dtype.type(weight) for k, weight in enumerate(LUMA))
    return np.asarray(red + green + blue)


def _range(dtype: np.dtype[Any], values: Image, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the range that was given, or the default for the type."""
    if low is not None and high is not None:
        if not -np.inf < low < high < np.inf:
            raise InvalidInputError(
                f"low and high must be finite, low below high, got {low!r} and {high!r}.", code="low-high"
            )
        return low, high
    if low is not None or high is not None:
        raise InvalidInputError(
            f"low and high must be given together, got low={low!r} and high={high!r}.", code="low-high"
        )
    if dtype.kind == "f":
        least, most = _percentiles(values, (0, 100))
        if least < -ROUNDING or most > 1 + ROUNDING:
            raise InvalidInputError(
                f"image has floats from {least:.6g} to {most:.6g}; by default they must lie in [0, 1]. Pass low and "
                "high, or percentiles=(0, 100) for their range or (1, 99) to exclude outliers, if the function has "
                "these arguments; otherwise map them to [0, 1] first, or choose a recipe for any range, such "
                "as quantile.",
                code="image-range",
                argument="image",
            )
    return type_range(dtype)


def _percentiles(values: Image, percentiles: tuple[float, float]) -> tuple[float, float]:
    """Return two percentiles of the values that are not NaN; 0 and 0 if there are none."""
    pair = np.asarray(percentiles)
    if pair.shape != (2,) or not 0 <= pair[0] < pair[1] <= 100:
        raise InvalidInputError(
            f"percentiles must be two increasing numbers in [0, 100], got {percentiles!r}.",
            code="percentiles",
            argument="percentiles",
            value=percentiles,
        )
    valid = values[~np.isnan(values)]
    least, most = np.percentile(valid, pair) if valid.size else (0.0, 0.0)
    return float(least), float(most)


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return what holds all values exactly: float32, or float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)
