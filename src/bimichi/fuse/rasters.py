"""Rasters larger than memory, fused in windows into a GeoTIFF."""

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice, is_integer
from bimichi._extras import import_optional
from bimichi._files import replacing
from bimichi._progress import progress_bar
from bimichi.decision import Decision
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fuse.images import match_scene
from bimichi.integral.labelled import Fuser, fuse_array as fuse_array, fuser_of, match_sources
from bimichi.integral.planes import check_n_jobs, in_threads
from bimichi.io.images import check_size, distinct_names
from bimichi.io.open import open_layer
from bimichi.io.raster import gdal_settings, open_dataset, open_source, raster_layer, reason_of
from bimichi.io.scene import OpenScene, ReadSources
from bimichi.io.similarity import InputWatch
from bimichi.rule import FusionRule
from bimichi.scenes.grid import Window
from bimichi.sources.bands import Image
from bimichi.sources.recipes import AS_IS, find_recipe, make_plane
from bimichi.sources.source_bank import Bank

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
            raise InvalidInputError(
                f"block must be a positive multiple of 16, got {self.block!r}.",
                code="block-size",
                argument="block",
                value=self.block,
            )
        check_choice(self.compress, "compress", COMPRESSIONS)
        if self.path.suffix.lower() not in (".tif", ".tiff"):
            raise InvalidInputError(
                f"output must end in .tif or .tiff, got {self.path}.",
                code="output-suffix",
                argument="output",
                value=self.path,
            )
        if not self.path.parent.is_dir():
            raise InvalidInputError(
                f"There is no folder {self.path.parent} to write {self.path.name} to; create it.", code="folder-missing"
            )
        for file in self.scene.files:
            if self.path.exists() and file.exists() and self.path.samefile(file):
                raise InvalidInputError(
                    f"output is one of the sources, {self.path}; choose another name.",
                    code="output-is-input",
                    argument="output",
                )

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
                raise BimichiError(f"Cannot write {self.path}: {reason}", code="output-unwritable") from error

    def _profile(self) -> dict[str, Any]:
        profile = {"driver": "GTiff", "count": 1, "dtype": self.scene.dtype.name, "nodata": self.nodata}
        profile |= {"tiled": True, "blockxsize": self.block, "blockysize": self.block, "BIGTIFF": "IF_SAFER"}
        profile |= {name: value for name, value in self.scene.grid._asdict().items() if value is not None}
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
            int(dataset.get_tag_item(f"BLOCK_{field}_{x}_{y}", "TIFF", bidx=1, ovr=level) or 0)
            for field in ("OFFSET", "SIZE")
        )
        if not 0 < length <= size - start:
            raise import_optional("rasterio.errors").RasterioIOError(f"tile ({x}, {y}) was not written")


Sources = str | PathLike[str] | Sequence[str | PathLike[str]]

TIFFS = (".tif", ".tiff")
MEMORY = 384 << 20  # bytes that all windows in memory may take together
WINDOW = 16 << 20  # bytes of a window, sources and result, unless one row of tiles takes more
SLICE = 1 << 20  # pixels fused at a time, so that intermediate results of a model stay small


class Plan(NamedTuple):
    """The scene to read, its sources in the order of the model, and how to fuse it."""

    scene: OpenScene
    fuser: Fuser
    recipes: list[str]
    """None of them if bands are sources as they are."""
    whole: dict[int, Image]
    """Sources made by recipes that need the whole image, by position."""
    windows: list[Window]
    under_way: int
    """How many windows may be in memory."""
    watch: InputWatch | None = None
    decision: Decision | None = None
    """Whose smoothing is part of the map."""
    made: bool = False
    """Whether a bank has made all sources, which `whole` then holds."""


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
        Files. Their bands, in this order, are the sources, except alpha bands. They are matched with the sources of the
        model by name: descriptions of bands, or else names of files, or "band 1" and so on in a single file; a model
        whose sources are only numbered takes them in order.
    output : path
        The GeoTIFF to write, ending in .tif or .tiff: one band of float32 (float64 if a source needs it), tiled, on the
        grid of the first file. It appears, and replaces an old file, when it is complete.
    names : sequence of str, optional
        Names of the bands instead, to be matched with those of the model.
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
    memory, whatever the size of the raster; GDAL's cache is bounded, too. A source whose recipe needs the whole image
    is made first and kept in memory.
    """
    with gdal_settings():
        rule = getattr(model, "rule_", model)
        colours = getattr(rule, "recipes", None) is not None
        scene = open_stack(sources, align, colours).renamed(names)
        return fuse_windows(model, scene, output, n_jobs, overviews, block, compress, verbose)


def open_stack(sources: Sources, align: bool = False, colours: bool = False) -> OpenScene:
    """Open files whose bands are the sources of one scene, TIFFs in windows; `colours` as in `OpenScene`."""
    paths = [Path(path) for path in ([sources] if isinstance(sources, str | PathLike) else sources)]
    if not paths:
        raise InvalidInputError("sources is empty; name at least one file.", code="sources-empty", argument="sources")
    labels = distinct_names([path.stem for path in paths])
    layers = [raster_layer(path) if path.suffix.lower() in TIFFS else open_layer(path) for path in paths]
    return OpenScene(labels[0], layers, labels, align, colours)


def fuse_windows(
    model: Any,
    scene: OpenScene,
    output: str | PathLike[str],
    n_jobs: int | None = None,
    overviews: bool = False,
    block: int = 256,
    compress: str | None = "deflate",
    verbose: int = 0,
) -> Path:
    """Fuse a scene into a GeoTIFF, window by window; parameters as in `fuse_raster`."""
    jobs = check_n_jobs(n_jobs)
    fuser = fuser_of(model, n_jobs=1)
    with scene.settings():
        scene, recipes, watch = _match_scene(model, scene, fuser)
        reached = getattr(model, "output_range", (-1.0, 1.0))
        target = GeoTiff(Path(output), scene, reached, block, compress, overviews, jobs)
        decision = getattr(getattr(model, "rule_", model), "decision", None)
        bank = getattr(getattr(model, "rule_", model), "bank", None)
        whole = _whole_images(scene, recipes) if bank is None else _bank_planes(scene, bank, watch, jobs)
        windows = _windows(scene, target, jobs)
        made = bank is not None
        plan = Plan(scene, fuser, [] if made else recipes, whole, *windows, watch, decision, made)
        with (
            target.writing() as write,
            progress_bar("fusing", len(plan.windows), verbose) as advance,
            closing(_fused_windows(plan, jobs)) as results,
        ):
            for window, fused in results:
                write(fused, window)
                advance(1, None)
    if watch is not None:
        watch.warn()
    return target.path


def _match_scene(model: Any, scene: OpenScene, fuser: Fuser) -> tuple[OpenScene, list[str], InputWatch | None]:
    """Return the scene with its sources in the order of the model, their recipes, and what watches their values."""
    rule = getattr(model, "rule_", model)
    if isinstance(rule, FusionRule) and (rule.bank or (rule.recipes is not None and fuser.names is not None)):
        scene, recipes = match_scene(rule, scene)
        return scene, recipes, InputWatch(rule, scene)
    n, layers = len(scene.sources), scene.layers
    where = layers[0].label if len(layers) == 1 else f"The {len(layers)} files together"
    remedy = "Pass the files of these sources, or name the bands with names=[...] (--names)."
    scene = scene.ordered(match_sources(fuser.names, fuser.n_sources, scene.source_names, n, where, remedy))
    if not isinstance(rule, FusionRule):
        return scene, [], None
    for recipe in rule.recipes or ():
        find_recipe(recipe)
    return scene, list(rule.recipes or ()), InputWatch(rule, scene)


def _whole_images(scene: OpenScene, recipes: Sequence[str]) -> dict[int, Image]:
    """Return the sources whose recipes need the whole image."""
    whole = {}
    for k, recipe in enumerate(recipes):
        if not find_recipe(recipe).pointwise:
            whole[k] = make_plane(scene.ordered([k]).read()[0], recipe, scene.dtypes[k])
            check_size(sum(plane.size for plane in whole.values()), f"Sources made by {recipe} of whole images")
    return whole


def _bank_planes(scene: OpenScene, bank: Bank, watch: InputWatch | None, jobs: int) -> dict[int, Image]:
    """Return all sources that a bank makes of the whole images."""
    check_size(scene.shape[0] * scene.shape[1] * len(bank.sources), "Sources that the model makes of whole images")
    images = scene.read()
    if watch is not None:
        watch.see(images)
    return dict(enumerate(bank.planes(images, jobs)))


def _windows(scene: OpenScene, target: GeoTiff, jobs: int) -> tuple[list[Window], int]:
    """Return windows of whole tiles, so that each tile is written once, and how many windows fit into memory."""
    height, width = scene.shape
    read = {where for source in scene.sources for where in source.bands}
    per_pixel = (len(read) + 1) * scene.dtype.itemsize
    tile = target.block**2 * per_pixel
    across = -(-width // target.block)
    columns = max(1, min(across, MEMORY // 3 // tile))
    rows = 1 if columns < across else max(1, WINDOW // (columns * tile))
    step_x, step_y = columns * target.block, rows * target.block
    windows = [
        Window(y, x, min(step_y, height - y), min(step_x, width - x))
        for y in range(0, height, step_y)
        for x in range(0, width, step_x)
    ]
    return windows, int(np.clip(MEMORY // (columns * rows * tile), 2, jobs + 1))


def _fused_windows(plan: Plan, jobs: int) -> Generator[tuple[Window, NDArray[Any]], None, None]:
    """Yield windows and their fused values, in order."""
    workers = min(jobs, plan.under_way, len(plan.windows))
    with ExitStack() as held:
        readers: SimpleQueue[ReadSources] = SimpleQueue()
        for _ in range(workers):
            readers.put(plan.scene.reader(held))

        def fuse(window: Window) -> tuple[Window, NDArray[Any]]:
            return window, _fuse_window(plan, window, readers)

        yield from in_threads(fuse, plan.windows, workers, plan.under_way)


def _fuse_window(plan: Plan, window: Window, readers: "SimpleQueue[ReadSources]") -> NDArray[Any]:
    read = readers.get()
    try:
        if plan.decision is None or plan.decision.smooth is None:
            return _fuse_planes(plan, _read_images(plan, window, read))
        down, across = plan.decision.margin
        x, y = max(0, window.column - across), max(0, window.row - down)
        right = min(plan.scene.grid.width, window.column + window.width + across)
        bottom = min(plan.scene.grid.height, window.row + window.height + down)
        wider = Window(y, x, bottom - y, right - x)
        fused = plan.decision.smoothed(_fuse_planes(plan, _read_images(plan, wider, read)))
        top, left = window.row - y, window.column - x
        return np.ascontiguousarray(fused[top : top + window.height, left : left + window.width])
    finally:
        readers.put(read)


def _read_images(plan: Plan, window: Window, read: ReadSources) -> list[Image]:
    if plan.made:
        return [whole[window.slices] for whole in plan.whole.values()]
    images = read(window)
    if plan.watch is not None:
        plan.watch.see(images)
    for k, whole in plan.whole.items():
        images[k] = whole[window.slices]
    return images


def _fuse_planes(plan: Plan, images: list[Image]) -> NDArray[Any]:
    fused = np.empty(images[0].shape[:2], plan.scene.dtype)
    step = max(1, SLICE // fused.shape[1])
    recipes = [AS_IS if k in plan.whole else recipe for k, recipe in enumerate(plan.recipes)]
    try:
        for start in range(0, len(fused), step):
            part = slice(start, start + step)
            planes = [image[part] for image in images]
            if recipes:
                planes = [make_plane(*arguments) for arguments in zip(planes, recipes, plan.scene.dtypes, strict=True)]
            fused[part] = plan.fuser.fuse(planes)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{error} Of the sources, {_places_of(plan.scene)}.",
            code=error.code,
            argument=error.argument,
            value=error.value,
        ) from error
    return fused


def _places_of(scene: OpenScene) -> str:
    """Return where each source is, for errors."""
    places = [(scene.layers[source.bands[0][0]], source.bands[0][1]) for source in scene.sources]
    return ", ".join(f"index {k} is band {at.bands[j].number} of {at.label}" for k, (at, j) in enumerate(places))
