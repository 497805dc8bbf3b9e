"""The scenes of a studio: their files, and their sources as the rule takes them, read once."""

import io
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import BimichiError, InvalidInputError, with_code
from bimichi.io.annotations import read_mask
from bimichi.io.dataset import SceneCollection, SceneFiles
from bimichi.io.labelled import LabelledDataset
from bimichi.io.scene import OpenScene
from bimichi.record import SourceInput
from bimichi.report.contents import index_plane
from bimichi.scenes.grid import Grid, Placement, Window
from bimichi.scenes.labels import Labelling
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import outline
from bimichi.scenes.superpixels import superpixels
from bimichi.studio.labels import Ring, Size, collected_warnings
from bimichi.studio.project import Hashes
from bimichi.studio.rasters import ByteCache, TiledScene, is_large

THUMBNAIL = 160  # pixels of the longer side
SUPERPIXEL = 250  # pixels of a superpixel, about
AROUND = 384  # pixels of the side of what is divided into superpixels around a point of a large scene
Recipes = tuple[str, ...]
"""One per source."""


@dataclass(eq=False)
class StudioScene:
    """One scene; `problems` are sentences on why it cannot be used, or what is doubtful about it."""

    files: SceneFiles
    opened: OpenScene | None = None
    problems: list[str] = field(default_factory=list)
    truth: Path | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.files.name

    @property
    def usable(self) -> bool:
        """Return whether its images could be opened."""
        return self.opened is not None

    @property
    def tiled(self) -> bool:
        """Return whether it is too large to be held, and shown in tiles."""
        return self.opened is not None and is_large(self.opened)

    @property
    def coloured(self) -> bool:
        """Return whether one of its files is a colour image."""
        return self.opened is not None and any(one.colour and len(one.bands) >= 3 for one in self.opened.layers)

    @property
    def grid(self) -> Grid:
        """Size and place; of a scene that could not be opened, no pixels."""
        return Grid(0, 0) if self.opened is None else self.opened.grid

    @property
    def size(self) -> Size:
        """Height and width."""
        return self.grid.shape

    @property
    def placement(self) -> Placement | None:
        """Return where it lies on a map, if it does."""
        grid = self.grid
        if grid.transform is None or grid.crs is None:
            return None
        return Placement(grid.shape, grid.transform, grid.crs)


class SceneStore:
    """All scenes of a collection; sources are read when they are first asked for, and kept.

    `truth` names masks by scene, and `unusable` says why some scenes cannot be opened. `hashes` keeps what images were
    when they were read: labels belong to that.

    Methods may be called from any thread. What the strict readers refuse is an error of `BimichiError`; warnings are
    added to the problems of the scene.
    """

    def __init__(
        self,
        collection: SceneCollection,
        recipes: Sequence[str] | None = None,
        truth: Mapping[str, Path] | None = None,
        unusable: Mapping[str, str] | None = None,
        hashes: Hashes | None = None,
    ) -> None:
        self.hashes, self.recipes_given = hashes or Hashes(), recipes is not None
        lost = unusable or {}
        self.scenes = [
            StudioScene(files, problems=[lost[files.name]] if files.name in lost else [], truth=masks.get(files.name))
            for masks in [truth or {}]
            for files in collection.scenes
        ]
        self.collection = collection.only([name for name in collection.names if name not in lost])
        if not self.collection.scenes:
            raise InvalidInputError(
                f"No scene can be opened. {' '.join(dict.fromkeys(lost.values()))}", code="scenes-unreadable"
            )
        self._readers: dict[Recipes, LabelledDataset] = {}
        self._read: dict[tuple[int, Recipes], Scene] = {}
        self._planes: dict[tuple[int, Recipes], list[tuple[NDArray[np.uint16], dict[str, Any]]]] = {}
        self._segments: dict[int, NDArray[Any]] = {}
        self._rasters: dict[tuple[int, Recipes], TiledScene] = {}
        self._tiles = ByteCache()
        self._locks, self._opening, self._indexing = [Lock() for _ in self.scenes], Lock(), Lock()
        reader = LabelledDataset(self.collection, Labelling(bags="boxes"), recipes=recipes)  # raises what holds for all
        self.source_names, self.recipes = reader.source_names, tuple(reader.recipes)
        self._readers[self.recipes] = reader

    def __len__(self) -> int:
        return len(self.scenes)

    def add(self, scenes: Sequence[StudioScene]) -> None:
        """Append scenes of the same sources; the others keep their numbers, and what was read of them."""
        joined = [*self.collection.scenes, *(scene.files for scene in scenes)]
        with self._opening:
            self.collection = replace(self.collection, scenes=joined, many=True)
            for reader in self._readers.values():
                reader.extend(self.collection)
            self._locks += [Lock() for _ in scenes]
            self.scenes += scenes

    def look(self, k: int) -> StudioScene:
        """Return a scene with its size, which the heads of its files say; its pixels are not read."""
        scene = self.scenes[k]
        with self._locks[k]:
            if scene.opened is None and not scene.problems:
                try:
                    scene.opened = self.collection.open(scene.name)
                except (BimichiError, OSError, ImportError) as error:
                    scene.problems.append(with_code(error) or type(error).__name__)
        return scene

    @property
    def tiled(self) -> bool:
        """Return whether any scene is shown in tiles; headers of TIFFs are read for it."""
        tiffs = [k for k, scene in enumerate(self.scenes) if all(map(is_tiff, scene.files.files))]
        return any(self.look(k).tiled for k in tiffs)

    def raster(self, k: int, recipes: Recipes) -> TiledScene | None:
        """Return a scene that is shown in tiles; None for others."""
        return self._raster(k, recipes) if self.look(k).tiled else None

    def _raster(self, k: int, recipes: Recipes) -> TiledScene:
        with self._opening:
            if (k, recipes) not in self._rasters:
                opened = self.scenes[k].opened
                assert opened is not None  # as it is tiled
                order = [opened.source_names.index(name) for name in self.source_names]
                self._rasters[k, recipes] = TiledScene(opened.ordered(order), recipes, self._tiles)
            return self._rasters[k, recipes]

    def _overview(self, k: int, recipes: Recipes) -> Scene:
        return self._raster(k, recipes).overview()

    def load(self, k: int, recipes: Recipes | None = None) -> Scene | None:
        """Return a scene with its sources, by default as the user asked for them; None, and a problem, if unusable.

        Of a scene that is shown in tiles it is the overview.
        """
        scene, recipes = self.scenes[k], recipes or self.recipes
        with self._locks[k]:
            if (k, recipes) in self._read:
                return self._read[k, recipes]
            if scene.problems and not scene.usable:
                return None
            with collected_warnings() as texts:
                try:
                    for file in scene.files.files:
                        self.hashes.keep(file)
                    scene.opened = scene.opened or self.collection.open(scene.name)
                    found = self._overview(k, recipes) if scene.tiled else self._reader(recipes).unlabelled(scene.name)
                except (BimichiError, OSError, ImportError, MemoryError) as error:
                    scene.opened = None
                    scene.problems.append(with_code(error) or type(error).__name__)
                    return None
            scene.problems += [text for text in texts if text not in scene.problems]
            self._read[k, recipes] = found
            return found

    def planes(self, k: int, recipes: Recipes) -> list[tuple[NDArray[np.uint16], dict[str, Any]]]:
        """Return every source as whole numbers, and what they mean; see `bimichi.report.contents`."""
        with self._indexing:  # the page asks for all sources at once
            if (k, recipes) not in self._planes:
                scene = self.load(k, recipes)
                made = [] if scene is None else [index_plane(plane) for plane in np.moveaxis(scene.sources, -1, 0)]
                self._planes[k, recipes] = made
            return self._planes[k, recipes]

    def inputs(self, names: Sequence[str], recipes: Recipes) -> tuple[SourceInput, ...] | None:
        """Return type and range of each source in some scenes."""
        return self._readers[recipes].inputs_of(names)

    def rgb(self, k: int) -> NDArray[np.uint8] | None:
        """Return the colour image of a scene, if one of its files is one."""
        opened = self.scenes[k].opened
        if opened is None:
            return None
        if self.scenes[k].tiled:
            raster = self._raster(k, self.recipes)
            return raster.colours() if raster.coloured else None
        layer = next((one for one in opened.layers if one.colour and len(one.bands) >= 3), None)
        if layer is None:
            return None
        with opened.settings(), ExitStack() as held:
            bands = layer.reader(opened.grid, held)([0, 1, 2], Window(0, 0, *opened.shape))
            return eight_bits(np.stack([np.array(band) for band in bands], axis=-1), layer.bands[0].dtype)

    def truth(self, k: int) -> NDArray[np.uint8] | None:
        """Return 1 for targets, 0 for others, 255 for unknown; None if nothing is known."""
        path = self.scenes[k].truth
        if path is None:
            return None
        found = read_mask(path)[None]
        mask, unknown = found.mask_of(None), found.unknown
        if mask is None or unknown is None or mask.shape != self.scenes[k].size:
            return None
        return np.where(unknown, 255, mask).astype(np.uint8)

    def thumbnail(self, k: int) -> bytes:
        """Return a small picture of a scene as PNG: its colours, or its first source."""
        rgb = self.rgb(k)
        if rgb is None:
            scene = self.load(k)
            plane = np.zeros((1, 1)) if scene is None else np.nan_to_num(scene.sources[..., 0], nan=-1.0)
            rgb = np.repeat(np.clip((plane + 1) * 127.5, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        step = max(1, -(-max(rgb.shape[:2]) // THUMBNAIL))
        return png(rgb[::step, ::step])

    def superpixel(self, k: int, x: float, y: float) -> list[Ring]:
        """Return the outline of the superpixel at a point, and its holes; nothing where there is no data."""
        scene, (height, width) = self.load(k), self.scenes[k].size
        if scene is None or not (0 <= x < width and 0 <= y < height):
            return []
        if self.scenes[k].tiled:
            square = 64 * math.floor(x / 64) + 32, 64 * math.floor(y / 64) + 32  # the same for points nearby
            sources, left, top = self._raster(k, self.recipes).around(*square, AROUND)
            return _ring(_superpixels(sources), int(x), int(y), left, top)
        if k not in self._segments:
            self._segments[k] = _superpixels(scene.sources)
        return _ring(self._segments[k], int(x), int(y))

    def _reader(self, recipes: Recipes) -> LabelledDataset:
        with self._opening:
            if recipes not in self._readers:
                self._readers[recipes] = LabelledDataset(self.collection, Labelling(bags="boxes"), recipes=recipes)
            return self._readers[recipes]


def _superpixels(sources: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(sources).any(axis=2).all():
        return np.full(sources.shape[:2], -1)
    return superpixels(sources, max(1, sources.shape[0] * sources.shape[1] // SUPERPIXEL), lab=False)


def _ring(segments: NDArray[Any], x: int, y: int, left: int = 0, top: int = 0) -> list[Ring]:
    """Return the outline of the segment at a point, and its holes; segments begin at a column and a row."""
    wanted = segments[y - top, x - left]
    if wanted < 0:
        return []
    rows, columns = np.nonzero(segments == wanted)
    above, before = int(rows.min()), int(columns.min())
    region = segments[above : rows.max() + 1, before : columns.max() + 1] == wanted
    polygon = max(outline(region, left + before, top + above), key=lambda rings: len(rings[0]))
    return [tuple((float(x), float(y)) for x, y in ring[:-1]) for ring in polygon]


def is_tiff(path: Path) -> bool:
    """Return whether a file is a TIFF, by its name."""
    return path.suffix.lower() in (".tif", ".tiff")


def eight_bits(image: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.uint8]:
    """Return an image for display: bytes as they are, other types over the range of their values."""
    if dtype == np.uint8:
        return np.asarray(np.nan_to_num(image).astype(np.uint8))
    low, high = np.nanpercentile(image, [1, 99])
    return np.asarray(np.clip(np.nan_to_num((image - low) / ((high - low) or 1.0)) * 255, 0, 255).astype(np.uint8))


def png(image: NDArray[np.uint8]) -> bytes:
    """Encode a picture."""
    file = io.BytesIO()
    import_optional("PIL.Image").fromarray(np.ascontiguousarray(image)).save(file, "PNG", compress_level=1)
    return file.getvalue()
