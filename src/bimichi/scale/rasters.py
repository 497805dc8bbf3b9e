"""Rasters larger than memory, fused in windows into a GeoTIFF."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._progress import progress_bar
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import type_range
from bimichi.imaging.recipes import default_recipe, find_recipe
from bimichi.integral.matching import Fuser, fuser_of, match_sources
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.base import check_names
from bimichi.rule import FusionRule
from bimichi.scale.gdal import gdal_settings
from bimichi.scale.geotiffs import GeoTiff
from bimichi.scale.stacks import Reader, Sources, Stack

MEMORY = 384 << 20  # bytes that all windows in memory may take together
WINDOW = 16 << 20  # bytes of a window, sources and result, unless one row of tiles takes more
SLICE = 1 << 20  # pixels fused at a time, so that intermediate results of a model stay small


class Plan(NamedTuple):
    """What to read and how to fuse it: for each source of the model, its position among the bands and its recipe."""

    stack: Stack
    fuser: Fuser
    positions: list[int]
    recipes: list[Callable[[NDArray[Any]], NDArray[Any]]]
    """None of them if bands are sources as they are."""
    windows: list[Any]
    under_way: int
    """How many windows may be in memory."""
    decision: Decision | None = None
    """Whose smoothing is part of the map."""


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
    model : fitted method, FusionRule, or Measure
        What fuses. Values are used as they are in the files, unless the model has recipes or has learned a scale. If
        its rule has a decision with `smooth`, the map is smoothed.
    sources : path, or sequence of paths
        Files that GDAL reads. Their bands, in this order, are the sources, except alpha bands. They are matched by name
        if all bands have descriptions, or if the files have one band each and the names of the model's sources.
    output : path
        The GeoTIFF to write, ending in .tif or .tiff: one band of float32 (float64 if a source needs it), tiled, on the
        grid of the first file. It appears, and replaces an old file, when it is complete.
    names : sequence of str, optional
        Names of the bands instead of their descriptions, to be matched with those of the model.
    align : bool, default=False
        Whether files on other grids are warped (bilinearly) to that of the first, or are an error.
    overviews : bool, default=False
        Whether to add smaller copies for quick display.
    block : int, default=256
        Side of a tile, a multiple of 16.
    n_jobs : int, optional
        Number of threads that read, fuse and compress; all cores by default. The file does not depend on it.
    compress : {"deflate", "lzw", "zstd", None}
        Compression of the tiles, all of it lossless.
    verbose : int, default=0
        Above 0, a progress bar is shown on a terminal.

    Returns
    -------
    output : Path
        The file.

    Notes
    -----
    A pixel without data in any source (its nodata value, NaN, or transparent) has no data in the result. The nodata
    value of the sources is kept if no fused value can equal it; otherwise it is NaN.

    Windows of whole tiles are read and fused by threads, and written in order. At most about 400 MB of them are in
    memory, whatever the size of the raster; GDAL's cache is bounded, too.
    """
    jobs = check_n_jobs(n_jobs)
    fuser = fuser_of(model, n_jobs=1)
    with gdal_settings():
        stack = Stack(sources, align)
        reached = getattr(model, "output_range", (-1.0, 1.0))
        target = GeoTiff(Path(output), stack, reached, block, compress, overviews, jobs)
        positions = _match(stack, fuser, names)
        decision = getattr(getattr(model, "rule_", model), "decision", None)
        made = _recipes(model, stack, positions)
        plan = Plan(stack, fuser, positions, made, *_windows(stack, target, jobs), decision)
        with (
            target.writing() as write,
            progress_bar("fusing", len(plan.windows), verbose) as advance,
            closing(_fused(plan, jobs)) as results,
        ):
            for window, fused in results:
                write(fused, window)
                advance(1, None)
    return target.path


def with_default_recipes(rule: FusionRule, sources: Sequence[str | PathLike[str]]) -> FusionRule:
    """Return a rule that has no recipes with those that the types of the bands suggest; see `default_recipe`."""
    if rule.recipes is not None:
        return rule
    found = {default_recipe(kind) for kind in Stack(sources, align=True).types}
    if len(found) > 1:
        raise InvalidInputError(
            "Some bands are integers, some are floats, and the model does not say how to use them. Convert them to one "
            "type, or train a model with recipes (--recipe)."
        )
    return replace(rule, recipes=(found.pop(),) * rule.n_sources)


def _match(stack: Stack, fuser: Fuser, names: Sequence[str] | None) -> list[int]:
    n = len(stack.types)
    found = stack.names(fuser.names) if names is None else check_names(names, n)
    where = stack.files[0].path if len(stack.files) == 1 else f"The {len(stack.files)} files together"
    remedy = "Pass the files of these sources, or name the bands with names=[...] (--names)."
    return match_sources(fuser.names, fuser.n_sources, found, n, where, remedy)


def _recipes(model: Any, stack: Stack, positions: list[int]) -> list[Callable[[NDArray[Any]], NDArray[Any]]]:
    """Return what makes each source of its band, given the range of the band's type, as windows are read as floats."""
    names = getattr(getattr(model, "rule_", model), "recipes", None)
    made: list[Callable[[NDArray[Any]], NDArray[Any]]] = []
    if names is None:
        return made
    for name, position in zip(names, positions, strict=True):
        recipe = find_recipe(name)
        if not recipe.pointwise:
            raise InvalidInputError(
                f"The model makes a source with the recipe {name}, which needs a whole image, but rasters are fused in "
                "windows. Apply the recipe first and train on the result, or remove the georeference."
            )
        low, high = type_range(stack.types[position])
        made.append(partial(recipe.function, low=low, high=high))
    return made


def _windows(stack: Stack, target: GeoTiff, jobs: int) -> tuple[list[Any], int]:
    """Return windows of whole tiles, so that each tile is written once, and how many windows fit into memory."""
    width, height = stack.grid.width, stack.grid.height
    per_pixel = sum(len(file.bands) * file.dtype.itemsize for file in stack.files) + stack.dtype.itemsize
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
    """Yield windows and their fused values, in order."""
    workers = min(jobs, plan.under_way, len(plan.windows))
    with ExitStack() as held:
        readers: SimpleQueue[Reader] = SimpleQueue()
        for _ in range(workers):
            readers.put(Reader(plan.stack, held))
        if workers == 1:
            yield from ((window, _fuse_window(plan, window, readers)) for window in plan.windows)
            return
        pool = ThreadPoolExecutor(workers)
        held.callback(pool.shutdown, cancel_futures=True)
        running: deque[tuple[Any, Future[NDArray[Any]]]] = deque()
        for window in plan.windows:
            running.append((window, pool.submit(_fuse_window, plan, window, readers)))
            if len(running) >= plan.under_way:
                done, future = running.popleft()
                yield done, future.result()
        yield from ((done, future.result()) for done, future in running)


def _fuse_window(plan: Plan, window: Any, readers: "SimpleQueue[Reader]") -> NDArray[Any]:
    reader = readers.get()
    try:
        if plan.decision is None or plan.decision.smooth is None:
            found = reader.read(window)
            return _fuse_planes(plan, [found[k] for k in plan.positions])
        down, across = plan.decision.margin
        x, y = max(0, window.col_off - across), max(0, window.row_off - down)
        right = min(plan.stack.grid.width, window.col_off + window.width + across)
        bottom = min(plan.stack.grid.height, window.row_off + window.height + down)
        found = reader.read(import_optional("rasterio.windows").Window(x, y, right - x, bottom - y))
        fused = plan.decision.smoothed(_fuse_planes(plan, [found[k] for k in plan.positions]))
        top, left = window.row_off - y, window.col_off - x
        return np.ascontiguousarray(fused[top : top + window.height, left : left + window.width])
    finally:
        readers.put(reader)


def _fuse_planes(plan: Plan, planes: list[NDArray[Any]]) -> NDArray[Any]:
    fused = np.empty(planes[0].shape, plan.stack.dtype)
    step = max(1, SLICE // fused.shape[1])
    try:
        for start in range(0, len(fused), step):
            part = slice(start, start + step)
            bands = [plane[part] for plane in planes]
            made = [make(band) for make, band in zip(plan.recipes, bands, strict=True)] if plan.recipes else bands
            fused[part] = plan.fuser.fuse(made)
    except InvalidInputError as error:
        named = ", ".join(f"index {k} is {plan.stack.labels[place]}" for k, place in enumerate(plan.positions))
        raise InvalidInputError(f"{error} Of the sources, {named}.") from error
    return fused
