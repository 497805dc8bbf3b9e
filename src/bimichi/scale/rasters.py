"""Rasters larger than memory, fused window by window into a GeoTIFF."""

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._progress import progress_bar
from bimichi.errors import InvalidInputError
from bimichi.integral.matching import Fuser, fuser_of
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.base import check_names
from bimichi.scale.gdal import gdal_settings
from bimichi.scale.geotiffs import GeoTiff
from bimichi.scale.stacks import Reader, Sources, Stack

__all__ = ["fuse_raster"]

MEMORY = 384 << 20
"""Bytes that windows may take, all that are under way together."""

WINDOW = 16 << 20
"""Bytes of a window, sources and result, if one row of tiles does not take more."""

SLICE = 1 << 20
"""Pixels fused at a time, so that what a model needs besides stays small."""


class Plan(NamedTuple):
    """What to read, in which order, and how to fuse it."""

    stack: Stack
    fuser: Fuser
    order: list[int]
    windows: list[Any]
    under_way: int
    """How many windows may be in memory."""


def fuse_raster(
    model: Any,
    sources: Sources,
    output: str | PathLike[str],
    *,
    names: Sequence[str] | None = None,
    align: bool = False,
    overviews: bool = False,
    block: int = 256,
    n_jobs: int | None = None,
    compress: str | None = "deflate",
    verbose: int = 0,
) -> Path:
    """Fuse rasters of any size into one GeoTIFF, in bounded memory.

    Parameters
    ----------
    model : fitted Fusion, BiCapacity or Capacity
        What decides. Values are taken as they are in the files; a model that has learned a scale applies it.
    sources : path, or sequence of paths
        Files that GDAL reads. Their bands, in this order, are the sources; a band of transparency is none. If all bands
        have descriptions, or if the names of files of one band each are those of the model, sources are matched by
        name.
    output : path
        The GeoTIFF to write, ending in .tif or .tiff: one band of float32 (float64 if a source needs it), tiled, on the
        grid of the first file. It appears when it is whole; an old file is replaced.
    names : sequence of str, optional
        Names of the bands, instead of their descriptions, to be matched with the names of the model.
    align : bool, default=False
        Whether files on other grids are warped (bilinearly) to the first one's, or are an error.
    overviews : bool, default=False
        Whether to add smaller copies, for quick looks at large files.
    block : int, default=256
        Side of a tile, a multiple of 16.
    n_jobs : int, optional
        Number of threads that read, fuse and compress; all cores by default. Not one byte depends on it.
    compress : {"deflate", "lzw", "zstd", None}
        How tiles are compressed; all of these are without loss.
    verbose : int, default=0
        Above 0, a progress bar is shown on a terminal.

    Returns
    -------
    output : Path
        The file.

    Notes
    -----
    A pixel without data in any source (its nodata value, NaN, or transparent) has none in the result. The nodata value
    of the sources is kept if no fused value can be equal to it; else it is NaN.

    Windows are whole rows of tiles. They are read and fused by `n_jobs` threads and written in order by the calling
    one. About 400 MB of them are in memory at most, whatever the size of the raster; GDAL's own cache is bounded, too.
    """
    jobs = check_n_jobs(n_jobs)
    fuser = fuser_of(model, n_jobs=1)
    with gdal_settings():
        stack = Stack(sources, align)
        target = GeoTiff(output, stack, getattr(model, "output_range", (-1.0, 1.0)), block, compress, overviews, jobs)
        order = _match(stack, fuser, names)
        plan = Plan(stack, fuser, order, *_windows(stack, target, jobs))
        with (
            target.writing() as write,
            progress_bar("fusing", len(plan.windows), verbose) as advance,
            closing(_fused(plan, jobs)) as results,
        ):
            for window, fused in results:
                write(fused, window)
                advance(1, None)
    return target.path


def _match(stack: Stack, fuser: Fuser, names: Sequence[str] | None) -> list[int]:
    n = len(stack.labels)
    found: Sequence[str] | None = stack.names()
    stems = stack.stems()
    if names is not None:
        found = check_names(names, n)
    elif found is None and stems is not None and fuser.names is not None and set(stems) == set(fuser.names):
        found = stems
    where = stack.files[0].path if len(stack.files) == 1 else f"The {len(stack.files)} files together"
    return fuser.order(found, n, where, "Pass the files of these sources, or names=[...] to say what the bands are.")


def _windows(stack: Stack, target: GeoTiff, jobs: int) -> tuple[list[Any], int]:
    """Cut the grid between tiles, so that each is written once; and say how many windows fit into memory."""
    width, height = stack.grid.width, stack.grid.height
    per_pixel = stack.bytes_per_pixel + target.dtype.itemsize
    tile = target.block**2 * per_pixel
    across = -(-width // target.block)
    columns = max(1, min(across, MEMORY // 3 // tile))
    rows = 1 if columns < across else max(1, WINDOW // (columns * tile))
    step_x, step_y = columns * target.block, rows * target.block
    window = import_optional("rasterio.windows").Window
    windows = [
        window(x, y, min(step_x, width - x), min(step_y, height - y))
        for y in range(0, height, step_y)
        for x in range(0, width, step_x)
    ]
    return windows, int(np.clip(MEMORY // (columns * rows * tile), 2, jobs + 1))


def _fused(plan: Plan, jobs: int) -> Generator[tuple[Any, NDArray[Any]], None, None]:
    """Windows and what they fuse to, in order."""
    workers = min(jobs, plan.under_way, len(plan.windows))
    with ExitStack() as held:
        readers: SimpleQueue[Reader] = SimpleQueue()
        for _ in range(workers):
            readers.put(held.enter_context(plan.stack.open()))
        if workers == 1:
            yield from ((window, _fuse_window(plan, window, readers)) for window in plan.windows)
            return
        pool = ThreadPoolExecutor(workers)
        held.callback(pool.shutdown, cancel_futures=True)
        waiting = iter(plan.windows)
        running: deque[tuple[Any, Future[NDArray[Any]]]] = deque()
        for window in waiting:
            running.append((window, pool.submit(_fuse_window, plan, window, readers)))
            if len(running) >= plan.under_way:
                break
        while running:
            window, future = running.popleft()
            yield window, future.result()
            for following in waiting:
                running.append((following, pool.submit(_fuse_window, plan, following, readers)))
                break


def _fuse_window(plan: Plan, window: Any, readers: "SimpleQueue[Reader]") -> NDArray[Any]:
    reader = readers.get()
    try:
        found = reader.read(window)
        return _fuse_planes(plan, [found[k] for k in plan.order])
    finally:
        readers.put(reader)


def _fuse_planes(plan: Plan, planes: list[NDArray[Any]]) -> NDArray[Any]:
    fused = np.empty(planes[0].shape, plan.stack.dtype)
    step = max(1, SLICE // fused.shape[1])
    try:
        for start in range(0, len(fused), step):
            part = slice(start, start + step)
            fused[part] = plan.fuser.fuse([plane[part] for plane in planes])
    except InvalidInputError as error:
        bands = ", ".join(f"index {k} is {plan.stack.labels[place]}" for k, place in enumerate(plan.order))
        raise InvalidInputError(f"{error} Of the sources, {bands}.") from error
    return fused
