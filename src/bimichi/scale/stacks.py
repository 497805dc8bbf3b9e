"""Sources in raster files: which bands, on which grid, and windows of them."""

from collections.abc import Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.scale.gdal import open_source, reason_of

Sources = str | PathLike[str] | Sequence[str | PathLike[str]]

TOLERANCE = 1e-3  # pixels by which grids may differ, as files round their transforms


class Grid(NamedTuple):
    """Where the pixels of a file are on Earth."""

    width: int
    height: int
    crs: Any
    transform: Any

    def __str__(self) -> str:
        numbers = ", ".join(f"{value:.10g}" for value in tuple(self.transform)[:6])
        return f"{self.width} x {self.height} pixels, CRS {self.crs or 'unknown'}, transform ({numbers})"

    def matches(self, other: "Grid") -> bool:
        """Whether both have the same pixels."""
        if self[:3] != other[:3] or self.transform.is_degenerate or other.transform.is_degenerate:
            return self == other
        corners = np.array([[0.0, self.width, 0.0], [0.0, 0.0, self.height], [1.0, 1.0, 1.0]])
        mine, theirs = (np.reshape(tuple(grid.transform), (3, 3)) for grid in (self, other))
        there = np.linalg.solve(mine, theirs @ corners)
        return bool(np.abs(there - corners).max() < TOLERANCE)


class File(NamedTuple):
    """A file, and those of its bands that are sources."""

    path: str
    bands: list[int]
    descriptions: list[str | None]
    nodata: list[float | None]
    types: list[np.dtype[Any]]
    """The types of the bands in the file."""
    masked: bool
    """Whether a mask or an alpha band says where there is no data."""
    grid: Grid

    @property
    def dtype(self) -> np.dtype[Any]:
        """What holds all values exactly: float32, or float64."""
        return np.dtype(np.float32 if all(np.can_cast(kind, np.float32) for kind in self.types) else np.float64)


class Stack:
    """Bands of one file or of several as sources; files on another grid than the first are warped to it, or an error.

    An alpha band is no source, but says where there is no data.
    """

    def __init__(self, sources: Sources, align: bool) -> None:
        paths = [sources] if isinstance(sources, str | PathLike) else list(sources)
        if not paths:
            raise InvalidInputError("sources is empty; name at least one file.")
        self.files = [_inspect(fspath(path)) for path in paths]
        self.grid = self.files[0].grid
        for file in self.files[1:]:
            self._check_grid(file, align)

    @property
    def labels(self) -> list[str]:
        """Descriptions of the sources for errors."""
        return [f"band {band} of {file.path}" for file in self.files for band in file.bands]

    @property
    def types(self) -> list[np.dtype[Any]]:
        """The types of the sources in the files."""
        return [kind for file in self.files for kind in file.types]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the computation: float32 if it holds every value of every source."""
        return max(file.dtype for file in self.files)

    @property
    def nodata(self) -> list[float]:
        """The nodata values of all bands."""
        return [value for file in self.files for value in file.nodata if value is not None]

    def names(self, expected: Sequence[str] | None) -> list[str] | None:
        """Return the descriptions of the bands, or if these are not distinct, names of the files that are expected."""
        found = [text for file in self.files for text in file.descriptions if text]
        if len(set(found)) == len(self.types):
            return found
        stems = [Path(file.path).stem for file in self.files]
        return stems if len(stems) == len(self.types) and set(stems) == set(expected or []) else None

    def _check_grid(self, file: File, align: bool) -> None:
        if self.grid.matches(file.grid):
            return
        if not align:
            raise InvalidInputError(
                f"Sources must lie on one grid, but\n  {self.files[0].path} has {self.grid}\n  {file.path} has "
                f"{file.grid}\nWarp them first, or pass align=True (--align) to warp all to the first."
            )
        for one in (self.files[0], file):
            if one.grid.crs is None:
                raise InvalidInputError(f"{one.path} has no CRS, so it cannot be aligned; assign one to it.")


class Reader:
    """Files of a `Stack`, open within the context `held`; like GDAL's handles, for one thread at a time."""

    def __init__(self, stack: Stack, held: ExitStack) -> None:
        self._buffers: list[NDArray[Any]] = [np.empty(0, file.dtype) for file in stack.files]
        self._opened = [_open(file, stack.grid, held) for file in stack.files]

    def read(self, window: Any) -> list[NDArray[Any]]:
        """Return one plane per source, NaN where there is no data; the next call overwrites them."""
        errors = import_optional("rasterio.errors")
        planes: list[NDArray[Any]] = []
        for k, (file, dataset) in enumerate(self._opened):
            block = self._buffer(k, (len(file.bands), int(window.height), int(window.width)))
            try:
                dataset.read(file.bands, window=window, out=block)
                if file.masked:
                    block[dataset.read_masks(file.bands, window=window) == 0] = np.nan
            except (errors.RasterioError, OSError) as error:
                raise InvalidInputError(f"Cannot read {file.path}: {reason_of(error)}. It is damaged.") from error
            for plane, nodata in zip(block, file.nodata, strict=True):
                if nodata is not None and not np.isnan(nodata):
                    plane[plane == plane.dtype.type(nodata)] = np.nan
            planes.extend(block)
        return planes

    def _buffer(self, k: int, shape: tuple[int, int, int]) -> NDArray[Any]:
        size = int(np.prod(shape))
        if self._buffers[k].size < size:
            self._buffers[k] = np.empty(size, self._buffers[k].dtype)
        return self._buffers[k][:size].reshape(shape)


def _open(file: File, grid: Grid, held: ExitStack) -> tuple[File, Any]:
    """Open a file, warped to the grid if it lies on another."""
    dataset = held.enter_context(open_source(file.path))
    if grid.matches(file.grid):
        return file, dataset
    how = {"resampling": import_optional("rasterio.enums").Resampling.bilinear, "dtype": file.dtype.name}
    warp = import_optional("rasterio.vrt").WarpedVRT
    warped = warp(dataset, **grid._asdict(), **how, src_nodata=dataset.nodata, nodata=np.nan)
    # Where it has no data, for whatever reason, a warped band is NaN already.
    return file._replace(nodata=[None] * len(file.bands), masked=False), held.enter_context(warped)


def _inspect(path: str) -> File:
    enums = import_optional("rasterio.enums")
    with open_source(path) as dataset:
        flags = [flag for own in dataset.mask_flag_enums for flag in own]
        transparency = enums.ColorInterp.alpha if enums.MaskFlags.alpha in flags else None
        bands = [k for k, colour in zip(dataset.indexes, dataset.colorinterp, strict=True) if colour != transparency]
        if not bands:
            raise InvalidInputError(f"{path} has no band that can be a source.")
        types = [np.dtype(dataset.dtypes[k - 1]) for k in bands]
        if any(kind.kind not in "buif" for kind in types):
            raise InvalidInputError(f"{path} has bands of type {types[0]}; sources must be real numbers.")
        return File(
            path,
            bands,
            [dataset.descriptions[k - 1] for k in bands],
            [dataset.nodatavals[k - 1] for k in bands],
            types,
            enums.MaskFlags.per_dataset in flags,
            Grid(dataset.width, dataset.height, dataset.crs, dataset.transform),
        )
