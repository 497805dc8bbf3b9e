"""Scenes that are too large to be held in memory: read in tiles and at reduced sizes, from overviews if there are any.

The page shows them as tiles of 256 x 256 pixels, z times halved. From the level on at which the whole scene is an
overview of few pixels, tiles are cut from that, which is read once; below, each is read from its window.
"""

import io
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.integral.planes import Planes, check_n_jobs
from bimichi.io.raster import RasterLayer
from bimichi.io.scene import OpenScene
from bimichi.rule import FusionRule
from bimichi.scenes.grid import Window
from bimichi.scenes.scene import Scene
from bimichi.sources.bands import Image
from bimichi.sources.recipes import find_recipe, make_plane

LARGE = 16_000_000
"""A scene of more pixels than this is shown in tiles."""

TILE = 256
OVERVIEW = 1280
"""Pixels of the longer side of an overview at most."""

STRIP = 256
"""Rows that are read at a time for it."""

CACHE = 256 << 20
"""Bytes of tiles that are kept."""

T = TypeVar("T")


def is_large(scene: OpenScene) -> bool:
    """Return whether a scene is shown in tiles: it is large, and its files can be read in parts."""
    tiled = all(isinstance(layer, RasterLayer) for layer in scene.layers)
    return tiled and scene.grid.width * scene.grid.height > LARGE


class ByteCache:
    """Keeps what was used last, up to a number of bytes."""

    def __init__(self, limit: int = CACHE) -> None:
        self.limit, self.size = limit, 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return what is kept under a key, or make it; two threads may make the same at once, which harms nothing."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        content = make()
        with self._lock:
            if key not in self._kept and len(content) <= self.limit:
                self._kept[key] = content
                self.size += len(content)
            while self.size > self.limit:
                self.size -= len(self._kept.popitem(last=False)[1])
        return content

    def __len__(self) -> int:
        return len(self._kept)


class TiledScene:
    """A large scene whose sources are made by recipes that take each pixel alone; from any thread."""

    def __init__(self, opened: OpenScene, recipes: Sequence[str], cache: ByteCache | None = None) -> None:
        for name, recipe in zip(opened.source_names, recipes, strict=True):
            if not find_recipe(recipe).pointwise:
                raise InvalidInputError(
                    f"Source {name!r} is made by {recipe}, which needs the whole image, but scene {opened.name!r} of "
                    f"{opened.grid.width:,} x {opened.grid.height:,} pixels is read in parts. Use a recipe that takes "
                    "each pixel alone, such as to_bipolar, or write the source to a file of its own first.",
                    code="recipe-windows",
                )
        self.opened, self.recipes = opened, tuple(recipes)
        self.cache = ByteCache() if cache is None else cache
        self._readers: SimpleQueue[tuple[ExitStack, list[Any]]] = SimpleQueue()
        self._lock = Lock()
        self._overview: list[Image] | None = None
        self._colours: NDArray[np.uint8] | None = None
        self._stretch: tuple[Any, Any] | None = None

    @property
    def levels(self) -> int:
        """Return how often the scene is halved until it is an overview."""
        return max(0, int(np.ceil(np.log2(max(self.opened.shape) / OVERVIEW))))

    def close(self) -> None:
        """Close all files."""
        while True:
            try:
                self._readers.get_nowait()[0].close()
            except Empty:
                return

    def read(self, window: Window, size: tuple[int, int] | None = None) -> list[Image]:
        """Return the sources of a window, as the rule takes them, perhaps reduced; NaN where there is no data."""
        scene = self.opened
        bands_read: dict[tuple[int, int], Image] = {}
        with self._reader() as layers:
            for k, read in enumerate(layers):
                bands = sorted({band for parts in scene.sources for at, band in parts.bands if at == k})
                shape = size or (window.height, window.width)
                planes = read(bands, window, shape) if bands else []
                bands_read |= {(k, band): plane.copy() for band, plane in zip(bands, planes, strict=True)}
        images = [source.image(bands_read) for source in scene.sources]
        return [make_plane(*parts) for parts in zip(images, self.recipes, scene.dtypes, strict=True)]

    def overview(self) -> Scene:
        """Return the whole scene at a reduced size: every 2^levels-th pixel, or averages if there are overviews."""
        with self._lock:
            if self._overview is None:
                strips = self._strips(self.read)
                self._overview = [np.concatenate(parts) for parts in zip(*strips, strict=True)]
                remedy = "Choose a recipe, or map it to [-1, 1] first."
                Planes(self._overview, names=self.opened.source_names).check_range(-1.0, remedy)
        return Scene(np.stack(self._overview, axis=-1), self.opened.name, self.opened.source_names)

    def values(self, x: float, y: float) -> list[float | None]:
        """Return the sources at a point, None where there is no data."""
        height, width = self.opened.shape
        if not (0 <= x < width and 0 <= y < height):
            raise InvalidInputError(
                f"({x:g}, {y:g}) lies outside the image, which is {width} x {height} pixels.", code="point-outside"
            )
        values = [float(plane[0, 0]) for plane in self.read(Window(int(y), int(x), 1, 1))]
        return [None if np.isnan(value) else value for value in values]

    def around(self, x: float, y: float, side: int) -> tuple[NDArray[Any], int, int]:
        """Return the sources of a square around a point, as an image, and its left column and top row."""
        height, width = self.opened.shape
        left, top = (int(np.clip(at - side // 2, 0, max(0, end - side))) for at, end in ((x, width), (y, height)))
        window = Window(top, left, min(side, height), min(side, width))
        return np.stack(self.read(window), axis=-1), left, top

    def source_tile(self, source: int, z: int, x: int, y: int) -> bytes:
        """Return a tile of a source as PNG: grey from -1 to 1, transparent where there is no data."""
        if source >= len(self.opened.sources):
            raise InvalidInputError(
                f"There is no source {source}; there are {len(self.opened.sources)}, from 0.", code="source-unknown"
            )
        return self.cache.get(
            (id(self), source, z, x, y), lambda: grey_png(self._tile(z, x, y, only=source)[0], (-1.0, 1.0))
        )

    def fused_tile(self, rule: FusionRule, number: int, z: int, x: int, y: int) -> bytes:
        """Return a tile of the map as PNG: grey over the range of the output; `number` is that of the model."""
        return self.cache.get(
            (id(self), "fused", number, z, x, y),
            lambda: grey_png(rule.fuse(self._tile(z, x, y), n_jobs=1), rule.output_range),
        )

    def rgb_tile(self, z: int, x: int, y: int) -> bytes:
        """Return a tile of the colour image as PNG, stretched alike in all tiles."""
        return self.cache.get((id(self), "rgb", z, x, y), lambda: _encoded(self._colour_tile(z, x, y), "RGB"))

    @property
    def coloured(self) -> bool:
        """Return whether one of its files is a colour image."""
        return any(layer.colour for layer in self.opened.layers)

    def colours(self) -> NDArray[np.uint8]:
        """Return the colour image at the size of the overview."""
        with self._lock:
            if self._colours is None:
                image = np.concatenate(self._strips(self._read_colours))
                if self._colour_layer[1].bands[0].dtype != np.uint8:
                    self._stretch = tuple(np.nanpercentile(image, [1, 99], axis=(0, 1)))
                self._colours = self._eight_bits(image)
            return self._colours

    def _tile(self, z: int, x: int, y: int, only: int | None = None) -> list[Image]:
        """Return the sources of a tile, or one of them; beyond the border of the scene there is no data."""
        window, size = self._place(z, x, y)
        if z >= self.levels:
            self.overview()
            assert self._overview is not None
            part = self._cut(z, x, y)
            planes = [plane[part] for k, plane in enumerate(self._overview) if only in (None, k)]
        else:
            planes = [plane for k, plane in enumerate(self.read(window, size)) if only in (None, k)]
        return [_padded(plane, np.nan) for plane in planes]

    def _colour_tile(self, z: int, x: int, y: int) -> NDArray[np.uint8]:
        window, size = self._place(z, x, y)
        whole = self.colours()
        if z >= self.levels:
            return _padded(whole[self._cut(z, x, y)], 0)
        return _padded(self._eight_bits(self._read_colours(window, size)), 0)

    def _place(self, z: int, x: int, y: int) -> tuple[Window, tuple[int, int]]:
        """Return the window of a tile, cut off at the border, and its size in pixels of the tile."""
        side = TILE << min(z, 30)
        height, width = self.opened.shape
        if min(x, y, z) < 0 or x * side >= width or y * side >= height:
            raise InvalidInputError(f"There is no tile {x}, {y} at level {z}.", code="tile-unknown")
        tall, wide = min(side, height - y * side), min(side, width - x * side)
        return Window(y * side, x * side, tall, wide), (-(-tall >> z) or 1, -(-wide >> z) or 1)

    def _cut(self, z: int, x: int, y: int) -> tuple[slice, slice]:
        """Return the part of the overview that a tile at its level, or halved further, shows."""
        step = 1 << (z - self.levels)
        rows, columns = (slice(at * TILE * step, (at + 1) * TILE * step, step) for at in (y, x))
        return rows, columns

    def _strips(self, read: Callable[[Window, tuple[int, int]], T]) -> list[T]:
        """Read the whole scene at the size of the overview, in strips of rows that GDAL's cache holds."""
        height, width = self.opened.shape
        step = max(STRIP, 1 << self.levels)  # both are powers of two, so that strips have whole rows of the overview
        windows = [Window(y, 0, min(step, height - y), width) for y in range(0, height, step)]

        def reduced(window: Window) -> T:
            rows, columns = (max(1, -(-length >> self.levels)) for length in (window.height, window.width))
            return read(window, (rows, columns))

        with ThreadPoolExecutor(check_n_jobs(None)) as pool:
            return list(pool.map(reduced, windows))

    @property
    def _colour_layer(self) -> tuple[int, Any]:
        return next((k, layer) for k, layer in enumerate(self.opened.layers) if layer.colour)

    def _read_colours(self, window: Window, size: tuple[int, int]) -> Image:
        with self._reader() as layers:
            bands = layers[self._colour_layer[0]]([0, 1, 2], window, size)
            return np.stack([band.copy() for band in bands], axis=-1)

    def _eight_bits(self, image: Image) -> NDArray[np.uint8]:
        if self._stretch is not None:
            low, high = self._stretch
            image = (image - low) / np.where(high > low, high - low, 1.0) * 255
        return np.asarray(np.clip(np.nan_to_num(image), 0, 255).astype(np.uint8))

    @contextmanager
    def _reader(self) -> Iterator[list[Any]]:
        """Lend open files, which one thread at a time may read."""
        with self.opened.settings():
            try:
                held, layers = self._readers.get_nowait()
            except Empty:
                held = ExitStack()
                grid = self.opened.grid
                layers = [
                    layer.reduced_reader(grid, held) for layer in self.opened.layers if isinstance(layer, RasterLayer)
                ]
            try:
                yield layers
            finally:
                self._readers.put((held, layers))


def _padded(image: NDArray[Any], fill: float) -> NDArray[Any]:
    """Return a part of an image as a whole tile."""
    if image.shape[:2] == (TILE, TILE):
        return np.ascontiguousarray(image)
    tile = np.full((TILE, TILE, *image.shape[2:]), fill, image.dtype)
    tile[: image.shape[0], : image.shape[1]] = image
    return tile


def grey_png(values: NDArray[Any], ends: tuple[float, float]) -> bytes:
    """Encode values as grey over a range, and transparent where they are NaN."""
    share = np.clip((np.nan_to_num(values, nan=ends[0]) - ends[0]) / (ends[1] - ends[0]), 0, 1)
    grey = np.rint(share * 255).astype(np.uint8)
    return _encoded(np.stack([grey, np.where(np.isnan(values), 0, 255).astype(np.uint8)], axis=-1), "LA")


def _encoded(image: NDArray[np.uint8], mode: str) -> bytes:
    file = io.BytesIO()
    picture = import_optional("PIL.Image").fromarray(np.ascontiguousarray(image))
    assert picture.mode == mode
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()
