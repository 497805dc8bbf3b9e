"""The paper's UM experiment in small: a "U" above an "M", three sources, rectangular bags."""

import numpy as np
from numpy.typing import NDArray

from bimichi import Bags


def letters(height: int = 100, width: int = 80) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the U (upper half) and the M (lower half)."""
    row, column = np.mgrid[:height, :width] / [[[height]], [[width]]]
    left, right = (column > 0.28) & (column < 0.4), (column > 0.6) & (column < 0.72)
    span = (column > 0.28) & (column < 0.72)
    u = (row > 0.1) & (row < 0.42) & (left | right | (span & (row > 0.34)))
    slope = np.abs(column - 0.5) * 0.8
    m = (row > 0.57) & (row < 0.92) & (left | right | (span & (np.abs(row - 0.78 + slope) < 0.05)))
    return u, m


def um() -> tuple[Bags, NDArray[np.float64], NDArray[np.bool_]]:
    """Bags of 48 blocks, the image of shape (100, 80, 3), and the truth."""
    u, m = letters()
    image = np.stack([np.where(u, 1.0, -1.0), np.where(m, -1.0, 1.0), np.where(u | m, -1.0, 1.0)], axis=-1)
    row, column = np.mgrid[:100, :80]
    segments = (row * 8 // 100) * 6 + column * 6 // 80
    truth = u | m
    labels = {int(s): bool(truth[segments == s].any()) for s in np.unique(segments)}
    return Bags.from_image(image, segments, labels), image, truth


def bipolar_optimum(bags: Bags) -> tuple[float, float]:
    """g(23, 1) and J at the optimum of Objective Function 1, in closed form."""
    n = k = f = 0
    for b, positive in enumerate(bags.labels):
        rows = {tuple(x) for x in bags.X[bags.offsets[b] : bags.offsets[b + 1]].tolist()}
        if not positive:
            n += 1
        elif (1.0, 1.0, -1.0) not in rows:
            k += (-1.0, 1.0, 1.0) in rows
            f += (-1.0, 1.0, 1.0) not in rows
    x = (k - n) / (k + n)
    return x, n * (x + 1) ** 2 + k * (x - 1) ** 2 + 4 * f
