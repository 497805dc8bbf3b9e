"""Which pixels of an image are in the page."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_PIXELS = 1_000_000


class Sampling:
    """Which pixels of an image are in the page: all, or evenly spaced ones if there are more than a million.

    Pixels are taken as they are. Means of several would have fused values that no pixel has.
    """

    def __init__(self, shape: tuple[int, ...], limit: int = MAX_PIXELS) -> None:
        height, width = self.original = (int(shape[0]), int(shape[1]))
        self.shrunk = height * width > limit
        if self.shrunk:
            height = min(height, max(1, int((limit * height / width) ** 0.5)))
            width = min(width, max(1, limit // height))
            height = min(self.original[0], limit // width)
        self.shape = (height, width)

    def __call__(self, plane: NDArray[Any]) -> NDArray[Any]:
        """Return the plane's pixels that are shown."""
        rows, columns = (
            (2 * np.arange(shown) + 1) * full // (2 * shown)
            for shown, full in zip(self.shape, self.original, strict=True)
        )
        return plane[rows[:, None], columns]
