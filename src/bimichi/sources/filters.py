"""Gaussian means of planes by running sums, whose cost does not depend on their width."""

import numpy as np
from numpy.typing import NDArray

from bimichi._jit import jit

PASSES = 3  # boxes in a row; their convolution is within 6 % of the height of a Gaussian


def blur(plane: NDArray[np.float32], upright: float, level: float) -> NDArray[np.float32]:
    """Return the Gaussian mean around each pixel; what lies beyond the border is like the border.

    Parameters
    ----------
    plane : ndarray of float32, shape (height, width)
        Without NaN.
    upright, level : float
        Standard deviations along columns and along rows, in pixels.

    Notes
    -----
    Three box filters whose ends count in part, so that the variance is exact for any width [1]_.

    References
    ----------
    .. [1] P. Gwosdek et al., "Theoretical foundations of Gaussian convolution by extended box filtering", SSVM 2011.

    Examples
    --------
    >>> dot = np.zeros((41, 41), np.float32)
    >>> dot[20, 20] = 1
    >>> round(float((blur(dot, 3, 3)[20] * (np.arange(41) - 20) ** 2).sum() / blur(dot, 3, 3)[20].sum()), 3)
    9.0
    """
    down = _along_columns(np.ascontiguousarray(plane, dtype=np.float32), upright)
    return np.ascontiguousarray(_along_columns(np.ascontiguousarray(down.T), level).T)


def _along_columns(plane: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    variance = sigma * sigma / PASSES
    radius = int(np.floor(0.5 * np.sqrt(12 * variance + 1) - 0.5))
    ends = (2 * radius + 1) * (radius * (radius + 1) - 3 * variance) / (6 * (variance - (radius + 1) ** 2))
    for _ in range(PASSES):
        mean = np.empty_like(plane)
        _box(plane, radius, ends, mean)
        plane = mean
    return plane


@jit(error_model="numpy", fastmath={"contract"})
def _box(plane, radius, ends, mean):
    """Write the mean of the rows within a radius, and of part of the next ones, around each row."""
    rows, columns = plane.shape
    last = rows - 1
    total = np.zeros(columns, np.float64)
    for i in range(-radius, radius + 1):
        near = plane[min(max(i, 0), last)]
        for j in range(columns):
            total[j] += near[j]
    norm = 1 / (2 * radius + 1 + 2 * ends)
    for i in range(rows):
        before, after = plane[max(i - radius - 1, 0)], plane[min(i + radius + 1, last)]
        leaving, row = plane[max(i - radius, 0)], mean[i]
        for j in range(columns):
            row[j] = (total[j] + ends * (np.float64(before[j]) + after[j])) * norm
            total[j] += np.float64(after[j]) - leaving[j]
