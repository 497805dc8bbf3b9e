"""Rasters in windows. BIMICHI_BENCH_SIDE=30000 makes the raster of the full mark, of 900 million pixels and 11 GB."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import rasterio
from affine import Affine
from rasterio.windows import Window

from bench.marks import Mark, at_least, at_most, in_process
from bimichi import BiCapacity
from bimichi.fuse import fuse_raster
from bimichi.io.raster import gdal_settings

SIDE = int(os.environ.get("BIMICHI_BENCH_SIDE", "6000"))
GRID = {
    "driver": "GTiff",
    "width": SIDE,
    "height": SIDE,
    "dtype": "float32",
    "crs": "EPSG:32632",
    "transform": Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0),
    "BIGTIFF": "IF_SAFER",
}
ROWS = [Window(0, row, SIDE, min(256, SIDE - row)) for row in range(0, SIDE, 256)]

PEAK = """
from bench.marks import peak_memory
from bimichi import BiCapacity
from bimichi.fuse import fuse_raster
fuse_raster(BiCapacity.random(3, random_state=0), {source!r}, {output!r}, compress=None)
print(peak_memory() / 1e9)
"""


def make(path: Path) -> None:
    """Three bands of noise, uncompressed, in the layout that rasterio writes unless told otherwise."""
    noise = np.random.default_rng(0).uniform(-1, 1, (3, 256, SIDE)).astype(np.float32)
    with rasterio.open(path, "w", count=3, **GRID) as dataset:
        for window in ROWS:
            dataset.write(np.roll(noise, window.row_off, axis=2)[:, : window.height], window=window)


def rewrite(source: Path, output: Path) -> None:
    """Read the same windows of all bands, write one, and wait for the disk: all that fusing cannot do without."""
    with gdal_settings(), rasterio.open(source) as bands:
        tiles = {"tiled": True, "blockxsize": 256, "blockysize": 256}
        with rasterio.open(output, "w", count=1, **GRID, **tiles) as copy:
            for window in ROWS:
                copy.write(bands.read(window=window)[0], 1, window=window)
    with output.open("rb") as file:
        os.fsync(file.fileno())


def taken(work: Callable[[], object], output: Path) -> float:
    output.unlink(missing_ok=True)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def windows() -> Iterator[Mark]:
    g = BiCapacity.random(3, random_state=0)
    with TemporaryDirectory() as folder:
        source, output = Path(folder, "in.tif"), Path(folder, "out.tif")
        make(source)
        rounds = [
            (
                taken(lambda: rewrite(source, output), output),
                taken(lambda: fuse_raster(g, source, output, compress=None), output),
            )
            for _ in range(5 if SIDE < 10_000 else 2)
        ]
        loop, ours = (min(times) for times in zip(*rounds, strict=True))
        detail = f"{SIDE**2 / ours / 1e6:,.0f} million pixels/s"
        yield at_least(
            f"{SIDE:,} x {SIDE:,} GeoTIFF, of a loop that reads and rewrites", loop / ours, 0.5, detail=detail
        )
        peak = in_process(PEAK.format(source=str(source), output=str(output)))
        yield at_most("  peak memory", float(peak), 1, "GB")


BENCHES = [windows]
