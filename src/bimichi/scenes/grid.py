"""`Grid`, `Window`, `Placement`: the pixels of a scene, and their place on a map if it is georeferenced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bimichi._extras import import_optional
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.sources.bands import check_shape

TOLERANCE = 1e-3  # pixels by which grids may differ, as files round their transforms


class Grid(NamedTuple):
    """Size, CRS and transform; the last two are None where they are unknown."""

    width: int
    height: int
    crs: Any = None
    transform: Any = None

    def __str__(self) -> str:
        size = f"{self.width} x {self.height} pixels"
        if not self.placed:
            return f"{size}, not georeferenced"
        numbers = "unknown" if self.transform is None else ", ".join(f"{v:.10g}" for v in tuple(self.transform)[:6])
        return f"{size}, CRS {self.crs or 'unknown'}, transform ({numbers})"

    @property
    def placed(self) -> bool:
        """True if it has a CRS or a transform."""
        return self.crs is not None or self.transform is not None

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    def matches(self, other: "Grid") -> bool:
        """Return True if both have the same pixels; a grid without georeference only has to have the same size."""
        if self.shape != other.shape or not (self.placed and other.placed):
            return self.shape == other.shape
        mine, theirs = self.transform, other.transform
        if self.crs != other.crs or mine is None or theirs is None or mine.is_degenerate or theirs.is_degenerate:
            return self == other
        corners = np.array([[0.0, self.width, 0.0], [0.0, 0.0, self.height], [1.0, 1.0, 1.0]])
        first, second = (np.reshape(tuple(transform), (3, 3)) for transform in (mine, theirs))
        there = np.linalg.solve(first, second @ corners)
        return bool(np.abs(there - corners).max() < TOLERANCE)


class Window(NamedTuple):
    """Rows and columns of a grid that are read together."""

    row: int
    column: int
    height: int
    width: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """Its rows and columns in an array of the whole grid."""
        return slice(self.row, self.row + self.height), slice(self.column, self.column + self.width)

    def of_rasterio(self) -> Any:
        """Return it as rasterio takes it."""
        return import_optional("rasterio.windows").Window(self.column, self.row, self.width, self.height)


@dataclass(frozen=True)
class Placement:
    """The size of an image and, if it is georeferenced, its place on a map.

    Parameters
    ----------
    shape : (int, int)
        Height and width in pixels.
    transform : sequence of at least six numbers, optional
        (a, b, c, d, e, f), such as rasterio's: the map has x = a column + b row + c, y = d column + e row + f, where
        (0, 0) is the upper left corner of the upper left pixel.
    crs : optional
        The reference system of the map: anything that rasterio takes, such as "EPSG:32630".
    """

    shape: tuple[int, int]
    transform: Sequence[float] | None = None
    crs: Any = None

    def __post_init__(self) -> None:
        check_shape(self.shape)
        if self.transform is not None and (len(self.transform) < 6 or abs(self._determinant) == 0):
            raise InvalidInputError(
                f"transform must be six numbers that can be inverted, got {self.transform!r}.",
                code="transform",
                argument="transform",
                value=self.transform,
            )

    @property
    def _determinant(self) -> float:
        a, b, _, d, e, _ = list(self.transform or ())[:6]
        return float(a * e - b * d)

    def to_pixels(self, points: Floats) -> Floats:
        """Return points (x, y) of the map as pixels (column, row)."""
        a, b, c, d, e, f = map(float, list(self.transform or ())[:6])
        x, y = points[:, 0] - c, points[:, 1] - f
        return np.stack([e * x - b * y, a * y - d * x], axis=1) / self._determinant

    def to_map(self, points: Floats) -> Floats:
        """Return pixels (column, row) as points (x, y) of the map."""
        a, b, c, d, e, f = map(float, list(self.transform or ())[:6])
        x, y = points.T
        return np.stack([a * x + b * y + c, d * x + e * y + f], axis=1)
