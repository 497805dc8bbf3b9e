"""A layer is one file, or one array, that holds one or several bands of a scene."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bimichi._extras import import_optional
from bimichi._nodata import to_nan
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Image
from bimichi.imaging.grids import Grid, Window
from bimichi.imaging.limits import check_size

ReadBands = Callable[[Sequence[int], Window], list[Image]]
"""Reads a window of some bands: values as stored, and NaN where there is no data; the next call may overwrite it."""


class Band(NamedTuple):
    """One band of a layer."""

    number: int
    """In its file, from 1."""
    description: str | None
    dtype: np.dtype[Any]
    """As stored; what has no data is read as floats."""
    nodata: float | None = None
    units: str | None = None


@dataclass(frozen=True, eq=False)
class Layer(ABC):
    """Bands on one grid."""

    label: str
    """Its path, or what it is, for errors."""
    bands: tuple[Band, ...]
    grid: Grid
    colour: bool = False
    """Whether its bands are red, green and blue, so that they are one source unless they are the only ones."""
    path: Path | None = None
    slices: bool = False
    """Whether bands are slices of a volume, of which one has to be chosen."""

    @property
    def placed(self) -> bool:
        """Whether it is georeferenced."""
        return self.grid.placed

    def select(self, wanted: Sequence[str]) -> Self:
        """Return the same layer with these bands, by description or number, in this order."""
        chosen = [self._find(name) for name in wanted]
        if len(set(chosen)) < len(chosen):
            raise InvalidInputError(f"{self.label}: the bands {', '.join(wanted)} name one band twice.")
        return replace(self, bands=tuple(self.bands[k] for k in chosen), colour=False)

    def _find(self, name: str) -> int:
        described = [k for k, band in enumerate(self.bands) if band.description == name]
        numbered = [k for k, band in enumerate(self.bands) if str(band.number) == name]
        if len(described or numbered) != 1:
            known = ", ".join(
                f"{band.number} ({band.description})" if band.description else str(band.number)
                for band in self.bands[:40]
            )
            raise InvalidInputError(
                f"{self.label} has {'several bands' if described else 'no band'} {name!r}; it has {known}. "
                "Name bands by description or number, such as [1,3]."
            )
        return (described or numbered)[0]

    @abstractmethod
    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        """Open it within the context `held`, resampled to the grid if it lies on another; for one thread at a time."""


@dataclass(frozen=True, eq=False)
class ArrayLayer(Layer):
    """Bands that are arrays in memory, or planes of xarray, which may be read when a window is asked for."""

    planes: tuple[Any, ...] = ()
    """By the number of a band, less 1."""
    fills: tuple[Sequence[float], ...] = ()
    """Values of each plane that mean that there is no data; none for all planes by default."""

    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        if self.grid.matches(grid):
            return lambda bands, window: [self._values(k, window.slices) for k in bands]
        whole = [resized(self._values(k, np.s_[:, :]), grid.shape) for k in range(len(self.bands))]
        return lambda bands, window: [whole[k][window.slices] for k in bands]

    def _values(self, k: int, part: tuple[slice, slice]) -> Image:
        at = self.bands[k].number - 1
        try:
            values = np.asarray(self.planes[at][part])
        except Exception as error:  # whatever the storage raises
            raise InvalidInputError(f"Cannot read {self.label}: {error}.") from error
        return to_nan(values, self.fills[at] if self.fills else (), float_type(values.dtype))


def memory_layer(label: str, image: Image, descriptions: Sequence[str | None] = (), **options: Any) -> ArrayLayer:
    """Return the layer of an image of shape (height, width) or (height, width, n_bands)."""
    planes = (image,) if image.ndim == 2 else tuple(image[..., k] for k in range(image.shape[2]))
    names = [*descriptions] or [None] * len(planes)
    bands = tuple(Band(k + 1, name, image.dtype) for k, name in enumerate(names))
    return ArrayLayer(label, bands, Grid(image.shape[1], image.shape[0]), planes=planes, **options)


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return what holds all values exactly: float32, or float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def resized(array: Image, shape: tuple[int, int]) -> Image:
    """Resample an image without georeference, which is taken to show the same area, to another size, bilinearly."""
    check_size(shape[0] * shape[1])
    resize = import_optional("skimage.transform").resize
    values = array.astype(float_type(array.dtype))
    small = shape[0] < array.shape[0] or shape[1] < array.shape[1]
    missing = np.isnan(values)
    how = {"order": 1, "mode": "edge", "preserve_range": True, "anti_aliasing": small}
    if not missing.any():
        return np.asarray(resize(values, shape, **how), dtype=values.dtype)
    holes = resize(missing.astype(np.float32), shape, **how) > 0
    filled = np.asarray(resize(np.where(missing, np.nanmean(values) if not missing.all() else 0, values), shape, **how))
    return np.where(holes, np.nan, filled).astype(values.dtype)
