"""One band of an image on a known scale."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.imaging.checks import check_image

__all__ = ["ROUNDING", "brightness", "unit_brightness"]

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in lightness (ITU-R BT.601)."""

ROUNDING = 1e-6
"""Rounding error of sums and means of float32, relative to the largest value."""


def brightness(image: ArrayLike) -> NDArray[np.float32]:
    """Return one band: integers mapped to [0, 1] over the range of their type, floats as they are."""
    array = check_image(image)
    values = _lightness(array)
    if array.dtype.kind != "f":
        low, high = _type_range(array.dtype)
        values = np.clip((values - low) / (high - low), 0, 1)
    return values.astype(np.float32, copy=False)


def unit_brightness(
    image: ArrayLike, low: float | None, high: float | None, percentiles: tuple[float, float] | None
) -> NDArray[Any]:
    """Return one band with [low, high] mapped to [0, 1] and clipped, by the rules of `to_bipolar`."""
    array = check_image(image)
    values = _lightness(array)
    if percentiles is None:
        least, most = _range(array.dtype, values, low, high)
    else:
        if low is not None or high is not None:
            raise InvalidInputError("Pass either low and high, or percentiles, not both.")
        least, most = _percentiles(values, percentiles)
        if least == most:
            return np.where(np.isnan(values), values, 0.5)
    return np.asarray(np.clip((values - least) / (most - least), 0, 1))


def _lightness(image: NDArray[Any]) -> NDArray[Any]:
    """Return one band of floats in the units of the image."""
    values = image.astype(np.result_type(image.dtype, np.float32), copy=False)
    if values.ndim == 2:
        return values
    red, green, blue = (values[..., k] * values.dtype.type(weight) for k, weight in enumerate(LUMA))
    return np.asarray(red + green + blue)


def _range(dtype: np.dtype[Any], values: NDArray[Any], low: float | None, high: float | None) -> tuple[float, float]:
    """Return the range that was given, or the default for the type."""
    if low is not None and high is not None:
        if not -np.inf < low < high < np.inf:
            raise InvalidInputError(f"low and high must be finite, low below high, got {low!r} and {high!r}.")
        return low, high
    if low is not None or high is not None:
        raise InvalidInputError(f"low and high must be given together, got low={low!r} and high={high!r}.")
    if dtype.kind != "f":
        return _type_range(dtype)
    least, most = _percentiles(values, (0, 100))
    if least < -ROUNDING or most > 1 + ROUNDING:
        raise InvalidInputError(
            f"image has floats from {least:.6g} to {most:.6g}; by default they must lie in [0, 1]. Pass low and high, "
            "or percentiles=(0, 100) for their range or (1, 99) to exclude outliers, if the function has these "
            "arguments; otherwise map them to [0, 1] first."
        )
    return 0.0, 1.0


def _percentiles(values: NDArray[Any], percentiles: tuple[float, float]) -> tuple[float, float]:
    """Return two percentiles of the values that are not NaN; 0 and 0 if there are none."""
    pair = np.asarray(percentiles)
    if pair.shape != (2,) or not 0 <= pair[0] < pair[1] <= 100:
        raise InvalidInputError(f"percentiles must be two increasing numbers in [0, 100], got {percentiles!r}.")
    known = values[~np.isnan(values)]
    least, most = np.percentile(known, pair) if known.size else (0.0, 0.0)
    return float(least), float(most)


def _type_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)
