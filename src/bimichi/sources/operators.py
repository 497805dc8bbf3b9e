"""Functions that make sources of images: planes of float32 in [-1, 1]. `RECIPES` lists them by name.

Each takes one band, or RGB, of which it uses the lightness. Integers are mapped to [0, 1] over the range of their type
first, so that uint8 and uint16 give the same result; floats are used as they are. NaN stays NaN and does not affect the
pixels around it. Each function takes about 0.02 s for 640 x 480 pixels.

SciPy is imported where it is used, so that the names of recipes are known without it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_integer, check_number, is_integer, is_number
from bimichi.errors import InvalidInputError
from bimichi.sources.bands import ROUNDING, Image, Plane, brightness, check_image, lightness, unit_brightness
from bimichi.sources.recipes import recipe

STRONG = 99.9  # the percentile that counts as full strength: beyond it lie a few lamps and dead pixels


def grey(rgb: ArrayLike) -> Plane:
    """Return the lightness 0.299 R + 0.587 G + 0.114 B, from 0 to 1; one band stays one.

    Parameters
    ----------
    rgb : array-like of shape (height, width, 3) or (height, width)
        Integers are mapped to [0, 1] over the range of their type; floats are used as they are.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
        In [0, 1], unlike the other functions: it is still an image, of which `to_bipolar` makes a source.

    Examples
    --------
    >>> grey(np.array([[[255, 255, 255], [0, 0, 0]]], np.uint8)).tolist()
    [[1.0, 0.0]]
    """
    return brightness(rgb).copy()


@recipe("the range of the type (floats: [0, 1]) mapped to [-1, 1]", pointwise=True, parameters=("low", "high"))
def to_bipolar(
    image: ArrayLike,
    low: float | None = None,
    high: float | None = None,
    percentiles: tuple[float, float] | None = None,
) -> Plane:
    """Map [low, high] linearly to [-1, 1] and clip values beyond.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    low, high : float, optional
        The values that become -1 and +1, in the units of the image. By default the range of the type for integers, and
        [0, 1] for floats, which must then lie in it.
    percentiles : (float, float), optional
        Take `low` and `high` from the image: (0, 100) is its range, (1, 99) excludes outliers. A constant image
        becomes 0.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)

    Examples
    --------
    >>> to_bipolar(np.array([[280.0, 290.0, 310.0, 330.0]]), low=280, high=320).tolist()
    [[-1.0, -0.5, 0.5, 1.0]]
    """
    return np.asarray(2 * unit_brightness(image, low, high, percentiles) - 1, dtype=np.float32)


@recipe("-1 where brighter than the neighbourhood, +1 elsewhere", relative=True, parameters=("block_size", "offset"))
def adaptive_threshold(image: ArrayLike, block_size: int = 51, offset: float = 0.0) -> Plane:
    """Compare each pixel with its neighbourhood: -1 where it is brighter, +1 elsewhere.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    block_size : int, default=51
        Side of the square neighbourhood in pixels, odd; larger than the targets.
    offset : float, default=0
        How much brighter than the mean of its neighbourhood a pixel has to be; above 0, noise in dark areas does not
        count as bright.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
    """
    _check_odd(block_size, "block_size")
    check_number(offset, "offset")
    values = brightness(image)
    around = _local_mean(values, block_size)
    return _with_nan(np.where(values > around + (offset + _rounding(values)), -1.0, 1.0), values)


@recipe("histogram equalisation", relative=True)
def equalize(image: ArrayLike) -> Plane:
    """Equalise the histogram: about equally many pixels at each level of [-1, 1], in the order of their values.

    The least value becomes -1, the largest +1; a constant image becomes 0.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)

    Examples
    --------
    >>> equalize(np.array([[0, 1, 2, 200, 255]], np.uint8)).tolist()
    [[-1.0, -0.5, 0.0, 0.5, 1.0]]
    """
    values = brightness(image)
    valid = ~np.isnan(values)
    plane = np.full(values.shape, np.nan, np.float32)
    _, where, counts = np.unique(values[valid], return_inverse=True, return_counts=True)
    if len(counts) < 2:
        plane[valid] = 0.0
        return plane
    above_least = np.cumsum(counts) - counts[0]
    plane[valid] = (2 * above_least / above_least[-1] - 1)[where]
    return plane


@recipe("power 1.5 of the brightness, mapped to [-1, 1]", pointwise=True, parameters=("gamma", "low", "high"))
def gamma_correction(
    image: ArrayLike,
    gamma: float = 1.5,
    low: float | None = None,
    high: float | None = None,
    percentiles: tuple[float, float] | None = None,
) -> Plane:
    """Map [low, high] to [0, 1], take the power `gamma`, and map that to [-1, 1].

    The paper makes a source of the thermal image in this way.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    gamma : float, default=1.5
        Below 1 brightens what is dark, above 1 darkens it. The default keeps the ground and walls of a thermal image
        well below 0; over night scenes, measures learned with it ranked people better than with 0.5.
    low, high, percentiles
        As in `to_bipolar`.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)

    Examples
    --------
    >>> gamma_correction(np.array([[0.0, 0.25, 1.0]]), gamma=0.5).tolist()
    [[-1.0, 0.0, 1.0]]
    """
    check_number(gamma, "gamma", minimum=0, exclusive=True)
    return np.asarray(2 * unit_brightness(image, low, high, percentiles) ** gamma - 1, dtype=np.float32)


@recipe(
    "difference from the mean of the neighbourhood, over its 99.9th percentile", relative=True, parameters=("radius",)
)
def local_contrast(image: ArrayLike, radius: int = 45) -> Plane:
    """Measure how much brighter (above 0) or darker (below 0) than its neighbourhood a pixel is.

    The difference from the mean of the square around the pixel is divided by the 99.9th percentile of its magnitude and
    clipped. Unlike brightness, it separates small warm objects from large ones. A constant image becomes 0.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    radius : int, default=45
        The square has sides of 2 radius + 1 pixels; larger than the targets.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
    """
    check_integer(radius, "radius")
    values = brightness(image)
    above = values - _local_mean(values, 2 * radius + 1)
    return _with_nan(np.clip(above / _full(np.abs(above), values), -1, 1), values)


@recipe("difference from the mean of the neighbourhood, in units of the image; end in a scale", parameters=("window",))
def local_difference(image: ArrayLike, window: int = 91) -> Plane:
    """Subtract from each pixel the mean of the square around it.

    Unlike `local_contrast`, the difference keeps its units: integers give values in [-1, 1], since they are mapped to
    [0, 1] first, and floats differences of any size. End a chain of recipes in `rarity` or `quantile` to scale them.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    window : int, default=91
        Side of the square in pixels, odd; larger than the targets.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
    """
    _check_odd(window, "window")
    values = brightness(image)
    return _with_nan(values - _local_mean(values, window), values)


@recipe("smoothed size of the gradient", relative=True, parameters=("sigma", "spread"))
def edge_strength(image: ArrayLike, sigma: float = 1.0, spread: float = 4.0) -> Plane:
    """Measure how strong the edges around a pixel are: -1 for none, +1 for the strongest of the image.

    The magnitude of the gradient is averaged over the neighbourhood, divided by its 99.9th percentile and clipped. A
    constant image becomes -1.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB.
    sigma : float, default=1
        Width in pixels of the Gaussian that smooths the image before the gradient is taken.
    spread : float, default=4
        Width in pixels of the Gaussian that averages the gradient, so that the inside of a small object counts with its
        edges; 0 for edges alone.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
    """
    return _edges(image, sigma, spread, np.hypot)


@recipe("smoothed size of the gradient from left to right", relative=True, parameters=("sigma", "spread"))
def vertical_edges(image: ArrayLike, sigma: float = 1.0, spread: float = 4.0) -> Plane:
    """Measure how strong the upright edges around a pixel are: -1 for none, +1 for the strongest of the image.

    As `edge_strength`, but only the change from left to right counts: people, poles and trunks have upright edges,
    kerbs and roofs do not.

    Parameters
    ----------
    image, sigma, spread
        As in `edge_strength`.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
    """
    return _edges(image, sigma, spread, lambda _, right: np.abs(right))


def difference(first: ArrayLike, second: ArrayLike, percentiles: tuple[float, float] | None = None) -> Plane:
    """Return first - second for two images of one size in [0, 1]; the result lies in [-1, 1].

    Parameters
    ----------
    first, second : array-like of shape (height, width) or (height, width, 3)
        One band each, or RGB; integers, or floats in [0, 1].
    percentiles : (float, float), optional
        Map each image from its own percentiles to [0, 1] first, as in `to_bipolar`.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
        NaN where either is NaN.

    Examples
    --------
    >>> difference(np.array([[0.75, 0.5]]), np.array([[0.25, 1.0]])).tolist()
    [[0.5, -0.5]]
    """
    one, other = (unit_brightness(image, None, None, percentiles) for image in (first, second))
    if one.shape != other.shape:
        raise InvalidInputError(
            f"first has shape {one.shape}, second {other.shape}; bring them to one size.",
            code="image-sizes",
            argument="first",
        )
    return np.asarray(one - other, dtype=np.float32)


def _check_odd(side: int, what: str) -> None:
    if not is_integer(side) or side < 3 or side % 2 == 0:
        raise InvalidInputError(
            f"{what} must be an odd number of at least 3, got {side!r}.", code="window", argument=what, value=side
        )


def _edges(image: ArrayLike, sigma: float, spread: float, size: Callable[[Plane, Plane], Plane]) -> Plane:
    """Return the local mean of the `size` of the gradient (its parts down and to the right), on [-1, 1]."""
    from scipy.ndimage import correlate1d, gaussian_filter

    for name, width in (("sigma", sigma), ("spread", spread)):
        check_number(width, name, minimum=0)
    values = brightness(image)
    smooth = _smoothed(values, gaussian_filter, sigma)
    down, right = (correlate1d(smooth, [-0.5, 0, 0.5], axis, mode="nearest") for axis in (0, 1))
    strength = _smoothed(_with_nan(size(down, right), values), gaussian_filter, spread)
    return _with_nan(np.clip(2 * strength / _full(strength, values) - 1, -1, 1), values)


def _local_mean(values: Plane, side: int) -> Plane:
    """Return means over squares of this side."""
    from scipy.ndimage import uniform_filter

    return _smoothed(values, uniform_filter, side)


def _smoothed(values: Plane, smooth: Callable[[Plane, float], Plane], width: float) -> Plane:
    """Return local means of the values that are not NaN; where all nearby are NaN, the mean of all."""
    valid = ~np.isnan(values)
    if valid.all():
        return smooth(values, width)
    if not valid.any():
        return values
    weight = smooth(valid.astype(np.float32), width)
    total = smooth(np.where(valid, values, np.float32(0)), width)
    around = np.full_like(values, values[valid].mean())
    return np.divide(total, weight, out=around, where=weight > ROUNDING)


def _rounding(values: Plane) -> float:
    """Return how much local means and values may differ by rounding."""
    return ROUNDING * float(np.abs(values[~np.isnan(values)]).max(initial=0.0))


def _full(strength: Plane, values: Plane) -> float:
    """Return what counts as full strength; infinity if there is nothing but rounding."""
    valid = strength[~np.isnan(strength)]
    if valid.max(initial=0.0) <= _rounding(values):
        return np.inf
    return float(np.percentile(valid, STRONG)) or float(valid.max())


def _with_nan(plane: Image, values: Plane) -> Plane:
    return np.where(np.isnan(values), np.nan, plane).astype(np.float32)


@recipe("how rare values as high as this are in the scene: 3 % of its pixels are above 0, 0.1 % are 1", relative=True)
def rarity(image: ArrayLike) -> Plane:
    """Measure how rare values as high as this one are in the scene: -1 for the commonest, +1 for the rarest.

    Let s be the share of the valid pixels that are at least as high. The source is -(2/3) log10(s) - 1, clipped to
    [-1, 1]: the highest 3 % of the pixels are above 0, the highest 0.1 % are +1. It is for targets that are bright and
    rare; put `inverted` before it if they are dark, and use `quantile` where they cover a fifth of a scene.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB; floats may have any range.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
        Equal values stay equal. It takes about 0.03 s for 640 x 480 pixels.

    Examples
    --------
    >>> rarity(np.arange(1000.0).reshape(10, 100))[-1, -1:].tolist()
    [1.0]
    >>> rarity(np.array([[5.0, 5.0, 7.0, np.nan]])).astype(float).round(2).tolist()
    [[-1.0, -1.0, -0.68, nan]]
    """
    values = lightness(check_image(image))
    plane = np.full(values.shape, np.nan, np.float32)
    valid = ~np.isnan(values)
    given = values[valid]
    if given.size:
        order = np.argsort(given)
        ranked = given[order]
        starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        share = (given.size - starts) / given.size
        levels = np.clip(-(2 / 3) * np.log10(share) - 1, -1, 1).astype(np.float32)
        scaled = np.empty(given.size, np.float32)
        scaled[order] = np.repeat(levels, np.diff(np.append(starts, given.size)))
        plane[valid] = scaled
    return plane


@recipe("the 1st to the 99th percentile of the scene mapped to [-1, 1]", relative=True, parameters=("lower", "upper"))
def quantile(image: ArrayLike, lower: float = 1.0, upper: float = 99.0) -> Plane:
    """Map the values between two percentiles of the scene linearly to [-1, 1], and clip those beyond.

    For targets that are not rare. The defaults leave out one pixel in a hundred at either end, so that lamps and dead
    pixels do not set the scale.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        One band, or RGB; floats may have any range.
    lower, upper : float in [0, 100], default=1 and 99
        The percentiles that become -1 and +1. If both are one value, what is below becomes -1, what is above +1, and
        the value itself 0.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)

    Examples
    --------
    >>> quantile(np.array([[0.0, 250.0, 500.0, 1000.0]]), 0, 100).tolist()
    [[-1.0, -0.5, 0.0, 1.0]]
    """
    if not (is_number(lower) and is_number(upper) and 0 <= lower < upper <= 100):
        raise InvalidInputError(
            f"lower and upper must be two increasing numbers in [0, 100], got {lower!r} and {upper!r}.",
            code="percentiles",
        )
    values = lightness(check_image(image))
    valid = values[~np.isnan(values)]
    if not valid.size:
        return values.astype(np.float32)
    low, high = np.percentile(valid, (lower, upper))
    scaled = np.sign(values - low) if low == high else np.clip((values - low) * (2 / (high - low)) - 1, -1, 1)
    return np.asarray(scaled, dtype=np.float32)


@recipe("`to_bipolar` with the opposite sign, for dark targets", pointwise=True, parameters=("low", "high"))
def inverted(image: ArrayLike, low: float | None = None, high: float | None = None) -> Plane:
    """Map [low, high] to [1, -1]: `to_bipolar` with the opposite sign, for targets that are dark.

    Parameters
    ----------
    image, low, high
        As in `to_bipolar`.

    Returns
    -------
    plane : ndarray of float32, shape (height, width)
        What `to_bipolar` gives, times -1.

    Examples
    --------
    >>> inverted(np.array([[0.0, 0.25, 1.0]])).tolist()
    [[1.0, 0.5, -1.0]]
    """
    return -to_bipolar(image, low, high)
