"""Raster files that GDAL reads, with bounded memory and without the network: GeoTIFFs, and others by named drivers."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.io.images import Band, Layer, ReadBands, check_file, check_size, reading
from bimichi.scenes.grid import Grid, Window
from bimichi.sources.bands import Image, float_type

CACHE = 64 << 20  # bytes of blocks that GDAL may keep; its default, a share of the machine's memory, bounds nothing

NO_NETWORK = {"CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none"}
"""No file may refer to one on a server."""

_OPENING = Lock()
_SETTING = Lock()


@contextmanager
def gdal_settings() -> Iterator[None]:
    """Bound GDAL's cache of blocks within the context, and let it look beside a file without listing the folder.

    Settings belong to the process, so only the first of several threads sets and restores them.
    """
    environment = import_optional("rasterio").Env
    if not _SETTING.acquire(blocking=False):
        with environment():
            yield
        return
    try:
        with environment(GDAL_CACHEMAX=CACHE, GDAL_DISABLE_READDIR_ON_OPEN="TRUE", **NO_NETWORK):
            yield
    finally:
        _SETTING.release()


def open_dataset(path: str | PathLike[str], mode: str = "r", **options: Any) -> Any:
    """Open a dataset, without a warning if it is not georeferenced.

    Warning filters belong to the process, so threads open one after another.
    """
    rasterio = import_optional("rasterio")
    with _OPENING, warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(fspath(path), mode, **options)


def open_source(path: str | PathLike[str], drivers: Sequence[str] = ()) -> Any:
    """Open a file for reading, as a GeoTIFF or by the drivers named; if that fails, the error names it.

    GDAL would try all its drivers, some of which follow references to other files and to the network.
    """
    errors = import_optional("rasterio.errors")
    failed: Exception | None = None
    for driver in drivers or ("GTiff",):
        try:
            return open_dataset(path, driver=driver)
        except (errors.RasterioError, OSError, TypeError, ValueError) as error:
            failed = failed or error
    assert failed is not None  # every driver has failed
    hint = "" if drivers else ", or it is not a GeoTIFF: then name its driver (--driver)"
    raise InvalidInputError(f"Cannot read {path!s}: {reason_of(failed)}{hint}.", code="file-unreadable") from failed


def reason_of(error: BaseException) -> str:
    """Return the message of GDAL; that of rasterio often only refers to it."""
    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(error) if cause is None else str(getattr(cause, "errmsg", cause))
    return text.rstrip(".")


RGB = ("red", "green", "blue")

ReadReduced = Callable[[Sequence[int], Window, tuple[int, int]], list[Image]]
"""Reads bands of a window, reduced to a height and a width; the next call may overwrite them."""


@dataclass(frozen=True, eq=False)
class RasterLayer(Layer):
    """Bands of a file, read in windows."""

    drivers: tuple[str, ...] = ()
    masked: bool = False
    """Whether a mask or an alpha band says where there is no data."""
    points: bool = False
    """Whether control points or polynomials georeference it, without a transform."""

    @property
    def placed(self) -> bool:
        return self.grid.placed or self.points

    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        return _Reader(self, grid, held).read

    def reduced_reader(self, grid: Grid, held: ExitStack) -> ReadReduced:
        """Open the file, as `reader` does, to be read at smaller sizes: from overviews, if it has them."""
        return _Reader(self, grid, held).read


class _Reader:
    """A file that is open, warped to the grid if it lies on another."""

    def __init__(self, layer: RasterLayer, grid: Grid, held: ExitStack) -> None:
        self._layer, self._masked = layer, layer.masked
        self._nodata = [band.nodata for band in layer.bands]
        self._type = max(float_type(band.dtype) for band in layer.bands)
        self._buffer: NDArray[Any] = np.empty(0, self._type)
        self._dataset = held.enter_context(open_source(layer.label, layer.drivers))
        if grid.matches(layer.grid):
            return
        resampling = import_optional("rasterio.enums").Resampling.bilinear
        place = {"width": grid.width, "height": grid.height, "crs": grid.crs, "transform": grid.transform}
        how = {"resampling": resampling, "dtype": self._type.name, "src_nodata": self._dataset.nodata}
        warped = import_optional("rasterio.vrt").WarpedVRT(self._dataset, **place, **how, nodata=np.nan)
        self._dataset = held.enter_context(warped)
        # Where it has no data, for whatever reason, a warped band is NaN already.
        self._nodata, self._masked = [None] * len(self._nodata), False

    def read(self, bands: Sequence[int], window: Window, size: tuple[int, int] | None = None) -> list[Image]:
        part, numbers = window.of_rasterio(), [self._layer.bands[k].number for k in bands]
        block = self._space((len(bands), *(size or (window.height, window.width))))
        # Without overviews, which are averages, averaging would read every pixel.
        reduced = "average" if size is not None and self._dataset.overviews(1) else "nearest"
        how = {"window": part, "resampling": import_optional("rasterio.enums").Resampling[reduced]}
        with reading(self._layer.label, "it is damaged", reason_of):
            self._dataset.read(numbers, out=block, **how)
            if self._masked:
                block[self._dataset.read_masks(numbers, out_shape=block.shape, window=part) == 0] = np.nan
        for plane, k in zip(block, bands, strict=True):
            nodata = self._nodata[k]
            if nodata is not None and not np.isnan(nodata):
                plane[plane == plane.dtype.type(nodata)] = np.nan
        return list(block)

    def _space(self, shape: tuple[int, int, int]) -> NDArray[Any]:
        size = int(np.prod(shape))
        if self._buffer.size < size:
            self._buffer = np.empty(size, self._type)
        return self._buffer[:size].reshape(shape)


def raster_layer(path: Path, drivers: Sequence[str] = ()) -> RasterLayer:
    """Inspect a raster file, without reading its pixels."""
    with open_source(check_file(path), drivers) as dataset, reading(path, "it is damaged", reason_of):
        return _inspect(str(path), dataset, tuple(drivers))


def _inspect(path: str, dataset: Any, drivers: tuple[str, ...]) -> RasterLayer:
    enums = import_optional("rasterio.enums")
    flags = [flag for own in dataset.mask_flag_enums for flag in own]
    colours = dict(zip(dataset.indexes, dataset.colorinterp, strict=True))
    # Writers call the fourth of four bands of 8 bits alpha by default, unless it is described as something else.
    numbers = [k for k in dataset.indexes if colours[k] != enums.ColorInterp.alpha or dataset.descriptions[k - 1]]
    transparent = len(numbers) < dataset.count
    if not numbers:
        raise InvalidInputError("it has no band that can be a source.", code="raster-bands")
    kinds = [np.dtype(name) for name in dataset.dtypes]
    for k in numbers:
        if kinds[k - 1].kind not in "buif":
            raise InvalidInputError(
                f"it has bands of type {kinds[k - 1]}; sources must be real numbers.", code="source-type"
            )
    height, width = dataset.block_shapes[0]
    check_size(height * width, "one of its tiles")
    about = zip(dataset.indexes, dataset.descriptions, kinds, dataset.nodatavals, dataset.units, strict=True)
    bands = tuple(
        Band(k, text or None, kind, nodata, units or None) for k, text, kind, nodata, units in about if k in numbers
    )
    transform = None if dataset.transform.is_identity else dataset.transform
    return RasterLayer(
        path,
        bands,
        Grid(dataset.width, dataset.height, dataset.crs, transform),
        colour=tuple(colours[k].name for k in numbers) == RGB,
        path=Path(path),
        drivers=drivers,
        masked=transparent if enums.MaskFlags.alpha in flags else enums.MaskFlags.per_dataset in flags,
        points=bool(dataset.gcps[0]) or dataset.rpcs is not None,
    )
