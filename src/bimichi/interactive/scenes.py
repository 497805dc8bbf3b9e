"""The scenes of a studio: their files, and their sources as the rule takes them, read once."""

import io
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.imaging.bagging import Labelling
from bimichi.imaging.collecting import SceneCollection, SceneFiles
from bimichi.imaging.formats.label_mask import read_mask
from bimichi.imaging.grids import Grid, Window
from bimichi.imaging.labelling import SceneReader
from bimichi.imaging.outlines import outline
from bimichi.imaging.placement import Placement
from bimichi.imaging.scenes import OpenScene
from bimichi.imaging.segments import superpixels
from bimichi.interactive.doubts import doubts
from bimichi.interactive.labels import Ring, Size
from bimichi.learning.scene import Scene
from bimichi.record import SourceInput
from bimichi.report.embedding import index_plane

THUMBNAIL = 160  # pixels of the longer side
SUPERPIXEL = 250  # pixels of a superpixel, about
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
        """Whether its images could be opened."""
        return self.opened is not None

    @property
    def coloured(self) -> bool:
        """Whether one of its files is a colour image."""
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
        """Where it lies on a map, if it does."""
        grid = self.grid
        if grid.transform is None or grid.crs is None:
            return None
        return Placement(grid.shape, grid.transform, grid.crs)


class SceneStore:
    """All scenes of a collection; sources are read when they are first asked for, and kept.

    `truth` names masks by scene, and `unusable` says why some scenes cannot be opened.

    Methods may be called from any thread. What the strict readers refuse is an error of `BimichiError`; warnings are
    added to the problems of the scene.
    """

    def __init__(
        self,
        collection: SceneCollection,
        recipes: Sequence[str] | None = None,
        truth: Mapping[str, Path] | None = None,
        unusable: Mapping[str, str] | None = None,
    ) -> None:
        lost = unusable or {}
        self.scenes = [
            StudioScene(files, problems=[lost[files.name]] if files.name in lost else [], truth=masks.get(files.name))
            for masks in [truth or {}]
            for files in collection.scenes
        ]
        self.collection = collection.only([name for name in collection.names if name not in lost])
        if not self.collection.scenes:
            raise InvalidInputError(f"No scene can be opened. {' '.join(dict.fromkeys(lost.values()))}")
        self._readers: dict[Recipes, SceneReader] = {}
        self._read: dict[tuple[int, Recipes], Scene] = {}
        self._planes: dict[tuple[int, Recipes], list[tuple[NDArray[np.uint16], dict[str, Any]]]] = {}
        self._segments: dict[int, NDArray[Any]] = {}
        self._locks, self._opening = [Lock() for _ in self.scenes], Lock()
        reader = SceneReader(self.collection, Labelling(bags="boxes"), recipes=recipes)  # raises what holds for all
        self.source_names, self.recipes = reader.source_names, tuple(reader.recipes)
        self._readers[self.recipes] = reader

    def __len__(self) -> int:
        return len(self.scenes)

    def look(self, k: int) -> StudioScene:
        """Return a scene with its size, which the heads of its files say; its pixels are not read."""
        scene = self.scenes[k]
        with self._locks[k]:
            if scene.opened is None and not scene.problems:
                try:
                    scene.opened = self.collection.open(scene.name)
                except (BimichiError, OSError, ImportError) as error:
                    scene.problems.append(str(error) or type(error).__name__)
        return scene

    def load(self, k: int, recipes: Recipes | None = None) -> Scene | None:
        """Return a scene with its sources, by default as the user asked for them; None, and a problem, if unusable."""
        scene, recipes = self.scenes[k], recipes or self.recipes
        with self._locks[k]:
            if (k, recipes) in self._read:
                return self._read[k, recipes]
            if scene.problems and not scene.usable:
                return None
            with doubts() as told:
                try:
                    scene.opened = scene.opened or self.collection.open(scene.name)
                    found = self._reader(recipes).unlabelled(scene.name)
                except (BimichiError, OSError, ImportError, MemoryError) as error:
                    scene.opened = None
                    scene.problems.append(str(error) or type(error).__name__)
                    return None
            scene.problems += [text for text in told if text not in scene.problems]
            self._read[k, recipes] = found
            return found

    def planes(self, k: int, recipes: Recipes) -> list[tuple[NDArray[np.uint16], dict[str, Any]]]:
        """Return every source as whole numbers, and what they mean; see `bimichi.report.embedding`."""
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
        scene = self.load(k)
        if scene is None or not (0 <= x < scene.shape[1] and 0 <= y < scene.shape[0]):
            return []
        if k not in self._segments:
            number = max(1, scene.shape[0] * scene.shape[1] // SUPERPIXEL)
            self._segments[k] = superpixels(scene.sources, number, lab=False)
        segments = self._segments[k]
        wanted = segments[int(y), int(x)]
        if wanted < 0:
            return []
        rows, columns = np.nonzero(segments == wanted)
        top, left = int(rows.min()), int(columns.min())
        region = segments[top : rows.max() + 1, left : columns.max() + 1] == wanted
        polygon = max(outline(region, left, top), key=lambda rings: len(rings[0]))
        return [tuple((float(x), float(y)) for x, y in ring[:-1]) for ring in polygon]

    def _reader(self, recipes: Recipes) -> SceneReader:
        with self._opening:
            if recipes not in self._readers:
                self._readers[recipes] = SceneReader(self.collection, Labelling(bags="boxes"), recipes=recipes)
            return self._readers[recipes]


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
