"""`OpenScene`: the sources of one scene, whatever files or arrays they are in, read whole or in windows."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.io.images import Layer, check_size, distinct_names
from bimichi.io.raster import RasterLayer, gdal_settings
from bimichi.measures.base import check_names
from bimichi.scenes.grid import Grid, Window
from bimichi.sources.bands import Image, float_type
from bimichi.sources.expressions import BandExpression

ReadSources = Callable[[Window], list[Image]]
"""Reads one image per source, NaN where there is no data; the next call may overwrite them."""


@dataclass(frozen=True, eq=False)
class SceneSource:
    """One source: a band, the three bands of a colour image, or what is computed from bands."""

    name: str
    bands: tuple[tuple[int, int], ...]
    """Layer, and position of the band in it."""
    dtype: np.dtype[Any]
    """As stored."""
    units: str | None = None
    computed: BandExpression | None = None

    @property
    def example(self) -> Image:
        """An image without pixels, of the type and the number of axes of the source."""
        return np.empty((0, 0, 3) if self.computed is None and len(self.bands) == 3 else (0, 0), self.dtype)

    def image(self, bands: Mapping[tuple[int, int], Image]) -> Image:
        """Return the source, given the bands."""
        parts = [bands[where] for where in self.bands]
        if self.computed is not None:
            floats = [part.astype(float_type(part.dtype), copy=False) for part in parts]
            return np.asarray(self.computed.evaluate(dict(zip(self.computed.bands, floats, strict=True))))
        return parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)


class OpenScene:
    """A scene whose files are inspected, but whose pixels are read when asked for.

    Parameters
    ----------
    name : str
        Of the scene.
    layers : sequence of Layer
        Its files or arrays.
    labels : sequence of str
        What names sources of each layer that have no description: the name of a file or folder.
    align : bool, default=False
        Whether layers on other grids are resampled, bilinearly, to that of the first, or are an error.
    colours : bool, default=True
        Whether a colour image beside other layers is one source, or three.
    """

    def __init__(
        self, name: str, layers: Sequence[Layer], labels: Sequence[str], align: bool = False, colours: bool = True
    ) -> None:
        self.name, self.layers = name, tuple(layers)
        self.grid = _common_grid(self.layers, align)
        self.sources = _sources(self.layers, labels, colours)

    def __repr__(self) -> str:
        return f"OpenScene({self.name!r}, {self.grid}; {', '.join(self.source_names)})"

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(source.name for source in self.sources)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.grid.shape

    @property
    def crs(self) -> Any:
        """The coordinate reference system, of rasterio; None if unknown."""
        return self.grid.crs

    @property
    def transform(self) -> Any:
        """The affine transform from (column, row) to map coordinates; None if unknown."""
        return self.grid.transform

    @property
    def placed(self) -> bool:
        """Return whether it is georeferenced."""
        return any(layer.placed for layer in self.layers)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Types of the sources, as stored."""
        return [source.dtype for source in self.sources]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the computation: float32 if it holds every value of every source."""
        return max(float_type(kind) for kind in self.dtypes)

    @property
    def nodata(self) -> list[float]:
        """The nodata values of all bands."""
        return [band.nodata for layer in self.layers for band in layer.bands if band.nodata is not None]

    @property
    def files(self) -> list[Path]:
        """Its files."""
        return [layer.path for layer in self.layers if layer.path is not None]

    @property
    def placing(self) -> RasterLayer | None:
        """The first georeferenced raster, whose control points and tags hold for the scene."""
        return next((layer for layer in self.layers if isinstance(layer, RasterLayer) and layer.placed), None)

    @property
    def examples(self) -> list[Image]:
        """Images without pixels, of the types of the sources."""
        return [source.example for source in self.sources]

    def renamed(self, names: Sequence[str] | None) -> "OpenScene":
        """Return the same scene with other names of its sources, in their order."""
        if names is None:
            return self
        called = check_names(names, len(self.sources))
        return self._with(replace(source, name=new) for new, source in zip(called, self.sources, strict=True))

    def ordered(self, positions: Sequence[int]) -> "OpenScene":
        """Return the same scene with the sources at these positions."""
        return self._with(self.sources[k] for k in positions)

    def computed(self, expressions: Sequence[BandExpression]) -> "OpenScene":
        """Return the same scene with these sources, each computed from bands that are named as sources are here."""
        single = {source.name: source for source in self.sources if len(source.bands) == 1}
        sources = []
        for expression in expressions:
            called = expression.resolve(list(single))
            used = [single[called[band]] for band in expression.bands]
            kind = max(float_type(band.dtype) for band in used)
            sources.append(SceneSource(expression.name, tuple(band.bands[0] for band in used), kind, None, expression))
        return self._with(sources)

    def read(self, window: Window | None = None) -> list[Image]:
        """Return one image per source: values as stored, in floats with NaN where there is no data."""
        with self.settings(), ExitStack() as held:
            if window is None:
                n_bands = len({where for source in self.sources for where in source.bands})
                check_size(self.grid.width * self.grid.height * n_bands, f"Scene {self.name!r}")
                window = Window(0, 0, *self.shape)
            return [np.asarray(image) for image in self.reader(held)(window)]

    def valid(self) -> Flags:
        """Return where all sources have data."""
        valid = np.ones(self.shape, np.bool_)
        for image in self.read():
            if image.dtype.kind == "f":
                missing = np.isnan(image)
                valid &= ~(missing if missing.ndim == 2 else missing.any(axis=2))
        return valid

    def reader(self, held: ExitStack) -> ReadSources:
        """Open its files within the context `held`; for one thread at a time."""
        opened = [layer.reader(self.grid, held) for layer in self.layers]
        needed = [
            sorted({band for one in self.sources for at, band in one.bands if at == k}) for k in range(len(opened))
        ]

        def read(window: Window) -> list[Image]:
            images: dict[tuple[int, int], Image] = {}
            for k, bands in enumerate(needed):
                planes = opened[k](bands, window) if bands else []
                images |= {(k, band): plane for band, plane in zip(bands, planes, strict=True)}
            return [source.image(images) for source in self.sources]

        return read

    def settings(self) -> Any:
        """Return the context in which its files are read."""
        return gdal_settings() if any(isinstance(layer, RasterLayer) for layer in self.layers) else nullcontext()

    def _with(self, sources: Any) -> "OpenScene":
        copy = object.__new__(OpenScene)
        copy.__dict__.update(self.__dict__, sources=tuple(sources))
        return copy


def _common_grid(layers: Sequence[Layer], align: bool) -> Grid:
    """Return the grid of the first layer, georeferenced by the first that is; others must match it."""
    first = layers[0]
    placed = next((layer.grid for layer in layers if layer.grid.placed and layer.grid.shape == first.grid.shape), None)
    grid = first.grid if placed is None else placed
    for layer in layers:
        if grid.matches(layer.grid):
            continue
        if layer.grid.shape == first.grid.shape[::-1] and not (first.grid.placed and layer.grid.placed):
            raise InvalidInputError(
                f"{layer.label} has {layer.grid}, but {first.label} has {first.grid}: width and height are swapped. "
                "Rotate or transpose one of them and save it again.",
                code="grids-swapped",
            )
        if not align:
            raise InvalidInputError(
                f"Sources must lie on one grid and show the same place in each pixel, but\n  {first.label} has "
                f"{first.grid}\n  {layer.label} has {layer.grid}\nRegister and resample them first, or pass align=True "
                "(--align) to resample all to the first.",
                code="grids-differ",
            )
        if grid.placed or layer.grid.placed:
            for one, own in ((first, grid), (layer, layer.grid)):
                if own.crs is None:
                    raise InvalidInputError(
                        f"{one.label} has no CRS, so it cannot be aligned; assign one to it.", code="align-crs"
                    )
            if not isinstance(layer, RasterLayer):
                raise InvalidInputError(
                    f"{layer.label} cannot be aligned; save it as a GeoTIFF first.", code="align-format"
                )
    return grid


def _sources(layers: Sequence[Layer], labels: Sequence[str], colours: bool) -> tuple[SceneSource, ...]:
    """Return one source per band; a colour image beside other layers is one.

    They are named by descriptions, or by files where a band has none; if two names are equal, by both.
    """
    alone = len(layers) == 1
    sources: list[SceneSource] = []
    plain: list[str] = []
    full: list[str] = []
    for k, (layer, label) in enumerate(zip(layers, labels, strict=True)):
        n = len(layer.bands)
        if layer.slices and n > 1:
            raise InvalidInputError(
                f"{layer.label} has {n} slices; choose one by its number, such as {layer.label}[{n // 2}].",
                code="slice-missing",
            )
        joined = n == 1 or (layer.colour and colours and not alone)
        for bands in [range(n)] if joined else [[j] for j in range(n)]:
            band = layer.bands[bands[0]]
            described = band.description if len(bands) == 1 else None
            plain.append(label if joined else f"band {band.number}" if alone else f"{label} {band.number}")
            full.append(f"{label} {described}" if described else plain[-1])
            where = tuple((k, j) for j in bands)
            sources.append(SceneSource(described or plain[-1], where, band.dtype, band.units))
    if len({source.name for source in sources}) == len(sources):
        return tuple(sources)
    by_file = len(set(plain)) == len(plain) == len(labels)
    names = plain if by_file else distinct_names(full)
    return tuple(replace(source, name=name) for source, name in zip(sources, names, strict=True))
