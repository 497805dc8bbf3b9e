"""A GeoTIFF of one band that is written in windows and appears when it is complete."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice, is_integer
from bimichi._extras import import_optional
from bimichi._files import replacing
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.imaging.grids import Window
from bimichi.imaging.raster_layers import open_dataset, open_source, reason_of
from bimichi.imaging.scenes import OpenScene

COMPRESSIONS = ("deflate", "lzw", "zstd", None)
SMALLEST_OVERVIEW = 256
FULL = 1 << 20  # bytes; if the disk has less free, that is why a tile could not be written, which GDAL does not say


@dataclass(frozen=True)
class GeoTiff:
    """The file to write, on the grid of the scene; `block`, `compress` and `overviews` are as in `fuse_raster`."""

    path: Path
    scene: OpenScene
    output_range: tuple[float, float]
    """In which the nodata value must not lie."""
    block: int
    compress: str | None
    overviews: bool
    n_jobs: int

    def __post_init__(self) -> None:
        if not is_integer(self.block) or self.block < 16 or self.block % 16:
            raise InvalidInputError(f"block must be a positive multiple of 16, got {self.block!r}.")
        check_choice(self.compress, "compress", COMPRESSIONS)
        if self.path.suffix.lower() not in (".tif", ".tiff"):
            raise InvalidInputError(f"output must end in .tif or .tiff, got {self.path}.")
        if not self.path.parent.is_dir():
            raise InvalidInputError(f"There is no folder {self.path.parent} to write {self.path.name} to; create it.")
        for file in self.scene.files:
            if self.path.exists() and file.exists() and self.path.samefile(file):
                raise InvalidInputError(f"output is one of the sources, {self.path}; choose another name.")

    @cached_property
    def nodata(self) -> float:
        """The first nodata value of the sources that no fused value can equal, or NaN."""
        (low, high), largest = self.output_range, float(np.finfo(self.scene.dtype).max)
        return next((v for v in self.scene.nodata if abs(v) <= largest and not low <= v <= high), float("nan"))

    @contextmanager
    def writing(self) -> Iterator[Callable[[NDArray[Any], Window], None]]:
        """Yield ``write(fused, window)``; the file appears if the context ends without error."""
        with replacing(self.path, alone=True) as temporary:
            try:
                with open_dataset(temporary, "w", **self._profile()) as dataset:
                    self._describe(dataset)
                    yield lambda fused, window: dataset.write(self._filled(fused), 1, window=window.of_rasterio())
                if self.overviews:
                    largest, average = max(self.scene.grid[:2]), import_optional("rasterio.enums").Resampling.average
                    factors = [2**k for k in range(1, 32) if largest > SMALLEST_OVERVIEW * 2 ** (k - 1)]
                    with open_dataset(temporary, "r+") as dataset:
                        dataset.build_overviews(factors, average)
                _check_whole(temporary)
            except import_optional("rasterio.errors").RasterioError as error:
                full = shutil.disk_usage(self.path.parent).free < FULL
                reason = f"No space left on device ({reason_of(error)})." if full else f"{reason_of(error)}."
                raise BimichiError(f"Cannot write {self.path}: {reason}") from error

    def _profile(self) -> dict[str, Any]:
        profile = {"driver": "GTiff", "count": 1, "dtype": self.scene.dtype.name, "nodata": self.nodata}
        profile |= {"tiled": True, "blockxsize": self.block, "blockysize": self.block, "BIGTIFF": "IF_SAFER"}
        profile |= {what: value for what, value in self.scene.grid._asdict().items() if value is not None}
        if self.compress is not None:
            # Predictor 3 sorts the bytes of floats by significance, so that they compress well.
            profile |= {"compress": self.compress, "predictor": 3, "NUM_THREADS": str(self.n_jobs)}
        return profile

    def _describe(self, dataset: Any) -> None:
        dataset.set_band_description(1, "fused")
        placing = self.scene.placing
        if placing is None:
            return
        with open_source(placing.label, placing.drivers) as source:
            meaning = source.tags().get("AREA_OR_POINT")
            if meaning is not None:
                dataset.update_tags(AREA_OR_POINT=meaning)
            if source.gcps[0]:
                dataset.gcps = source.gcps
            if source.rpcs is not None:
                dataset.rpcs = source.rpcs

    def _filled(self, fused: NDArray[Any]) -> NDArray[Any]:
        if not np.isnan(self.nodata):
            fused[np.isnan(fused)] = self.nodata
        return fused


def _check_whole(path: Path) -> None:
    """Raise an error if a tile is missing: threads that compress do not report that they could not write."""
    size = path.stat().st_size
    with open_dataset(path) as dataset:
        _check_tiles(dataset, dataset, None, size)
        for level in range(len(dataset.overviews(1))):
            with open_dataset(path, overview_level=level) as overview:
                _check_tiles(dataset, overview, level, size)


def _check_tiles(dataset: Any, shown: Any, level: int | None, size: int) -> None:
    height, width = shown.block_shapes[0]
    for y, x in product(range(-(-shown.height // height)), range(-(-shown.width // width))):
        start, length = (
            int(dataset.get_tag_item(f"BLOCK_{what}_{x}_{y}", "TIFF", bidx=1, ovr=level) or 0)
            for what in ("OFFSET", "SIZE")
        )
        if not 0 < length <= size - start:
            raise import_optional("rasterio.errors").RasterioIOError(f"tile ({x}, {y}) was not written")
