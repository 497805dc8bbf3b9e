"""Scales that a source can end in: by how rare a value is in its scene, by quantiles, or inverted.

They depend on how the values of one scene compare, not on their units: the gain and offset of a sensor change nothing,
and floats of any range are taken. NaN stays NaN and does not count.
"""

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import is_number
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Plane, check_image, lightness
from bimichi.imaging.sources import to_bipolar


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
    known = ~np.isnan(values)
    given = values[known]
    if given.size:
        order = np.argsort(given)
        ranked = given[order]
        starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        share = (given.size - starts) / given.size
        levels = np.clip(-(2 / 3) * np.log10(share) - 1, -1, 1).astype(np.float32)
        scaled = np.empty(given.size, np.float32)
        scaled[order] = np.repeat(levels, np.diff(np.append(starts, given.size)))
        plane[known] = scaled
    return plane


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
            f"lower and upper must be two increasing numbers in [0, 100], got {lower!r} and {upper!r}."
        )
    values = lightness(check_image(image))
    known = values[~np.isnan(values)]
    if not known.size:
        return values.astype(np.float32)
    low, high = np.percentile(known, (lower, upper))
    scaled = np.sign(values - low) if low == high else np.clip((values - low) * (2 / (high - low)) - 1, -1, 1)
    return np.asarray(scaled, dtype=np.float32)


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
