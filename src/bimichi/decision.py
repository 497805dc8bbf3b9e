"""`Decision`: how targets are found in the map that a rule gives of an image."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number, is_number
from bimichi._types import Flags
from bimichi.errors import InvalidInputError

TRUNCATE = 4.0  # widths of the Gaussian beyond which it counts as 0


@dataclass(frozen=True)
class Decision:
    """The steps by which targets are found in a fused map. All are off by default.

    Parameters
    ----------
    threshold : float, optional
        A pixel of the map at or above it is part of a target; in units of what `FusionRule.fuse` returns.
    chosen : str, default=""
        How the threshold was chosen, in words.
    min_size : int, default=1
        The least number of connected pixels that is a target.
    smooth : (float, float), optional
        Widths in pixels, across and down, of the Gaussian that smooths the map first.

    Examples
    --------
    >>> Decision(threshold=0.5, min_size=4).find(np.array([[0.2, 0.7, np.nan]]))
    array([[False,  True, False]])
    """

    threshold: float | None = None
    chosen: str = ""
    min_size: int = 1
    smooth: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_number(self.threshold, "threshold"))
        if not isinstance(self.chosen, str):
            raise InvalidInputError(
                f"chosen must be text, got {self.chosen!r}.", code="text", argument="chosen", value=self.chosen
            )
        object.__setattr__(self, "min_size", check_integer(self.min_size, "min_size"))
        if self.smooth is not None:
            object.__setattr__(self, "smooth", check_widths(self.smooth))

    @property
    def margin(self) -> tuple[int, int]:
        """The number of rows and columns beyond a part of a map that its smoothed values depend on."""
        across, down = self.smooth or (0.0, 0.0)
        return int(TRUNCATE * down + 0.5), int(TRUNCATE * across + 0.5)

    def smoothed(self, fused: NDArray[Any]) -> NDArray[Any]:
        """Return the map, smoothed if the decision says so; see `smooth_map`."""
        return fused if self.smooth is None else smooth_map(fused, self.smooth)

    def find(self, fused: NDArray[Any]) -> Flags:
        """Return which pixels of a map, smoothed already, reach the threshold; those with NaN do not."""
        if self.threshold is None:
            raise InvalidInputError(
                "There is no threshold to find targets by. Choose one with bimichi.metrics.choose_threshold or in "
                "training (--decision), or pass one (--threshold).",
                code="threshold-missing",
            )
        return np.asarray(fused >= self.threshold)

    def pack(self) -> dict[str, Any]:
        """Return the header field of a model file."""
        return asdict(self)

    @classmethod
    def unpack(cls, header: Any) -> Self:
        """Return the decision in a model file; the inverse of `pack`."""
        if not isinstance(header, dict):
            raise InvalidInputError(
                f"its decision must have a threshold and other fields, got {header!r}.",
                code="model-decision",
                value=header,
            )
        return cls(**{field.name: header[field.name] for field in fields(cls) if field.name in header})


def smooth_map(fused: NDArray[Any], widths: tuple[float, float]) -> NDArray[Any]:
    """Smooth a map by a Gaussian of these widths in pixels, across and down, over its valid pixels.

    Pixels with NaN stay NaN, and neither they nor what lies beyond the border count: each value is the mean of the
    valid pixels around, weighted by the Gaussian. So a constant map stays constant.
    """
    from scipy.ndimage import gaussian_filter  # not at the top: a rule is loaded and shown without it

    array = np.asarray(fused)
    if array.ndim != 2 or array.dtype.kind != "f":
        raise InvalidInputError(
            f"A map of floats, (height, width), is needed, got {array.dtype} {array.shape}.", code="map-shape"
        )
    across, down = check_widths(widths)
    valid = ~np.isnan(array)

    def filtered(plane: NDArray[Any]) -> NDArray[Any]:
        options = {"mode": "constant", "truncate": TRUNCATE, "output": np.float64}
        return np.asarray(gaussian_filter(plane, (down, across), **options))

    weight = filtered(valid.astype(np.float64))
    total = filtered(np.where(valid, array, 0.0))
    smoothed = np.full(array.shape, np.nan)
    np.divide(total, weight, out=smoothed, where=valid)
    if valid.any():  # a mean lies between the extremes; rounding must not take it beyond
        np.clip(smoothed, array[valid].min(), array[valid].max(), out=smoothed)
    return smoothed.astype(array.dtype, copy=False)


def check_widths(widths: Any) -> tuple[float, float]:
    """Return two widths of a Gaussian, not negative."""
    pair = list(widths) if isinstance(widths, Sequence | np.ndarray) and not isinstance(widths, str) else []
    if len(pair) != 2 or not all(is_number(width) and 0 <= width < np.inf for width in pair):
        raise InvalidInputError(
            f"smooth must be two widths in pixels, across and down, not negative, got {widths!r}.",
            code="smooth-widths",
            argument="smooth",
            value=widths,
        )
    return float(pair[0]), float(pair[1])
