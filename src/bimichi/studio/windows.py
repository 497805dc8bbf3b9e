"""Learning from large scenes: from windows that labels touch, and from some of the rest, as scenes of their own.

Windows are cut out into files as they are stored, and learned from as any other scenes. So `bimichi train` on these
files learns the same model.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from bimichi._extras import import_optional
from bimichi._files import replacing
from bimichi.errors import InvalidInputError
from bimichi.io.dataset import open_scenes
from bimichi.io.project import FILE_NAME
from bimichi.io.raster import gdal_settings, open_dataset, open_source
from bimichi.io.scene import OpenScene
from bimichi.scenes.grid import Window
from bimichi.studio.labels import Shape, Shapes, Size, reach
from bimichi.studio.learning import Learner, Trained
from bimichi.studio.scenes import SceneStore
from bimichi.studio.workspace import SceneLabels, Settings, Task, Workspace

SIDE = 256
"""Pixels of the side of a window."""

REST = 16
"""How many windows of the rest of a scene are learned from."""


class Piece(NamedTuple):
    """A window of a scene, and what is drawn in it, in its own pixels."""

    scene: int
    name: str
    window: Window
    shapes: Shapes


def pieces_of(k: int, name: str, size: Size, shapes: Shapes, settings: Settings) -> list[Piece]:
    """Return the windows of a scene that are learned from, row by row.

    They are all that shapes touch, and, if the rest counts as no target, `REST` others. Which ones follows from the
    seed and from the size alone, as far as no shape touches them.
    """
    height, width = size
    grid = [
        Window(y, x, min(SIDE, height - y), min(SIDE, width - x))
        for y in range(0, height, SIDE)
        for x in range(0, width, SIDE)
    ]
    inside = [tuple(moved for shape in shapes if (moved := _within(shape, window)) is not None) for window in grid]
    chosen = {at for at, touching in enumerate(inside) if touching}
    if settings.rest == "negative":
        order = np.random.default_rng(settings.seed).permutation(len(grid)).tolist()
        chosen |= set([at for at in order if at not in chosen][:REST])
    return [Piece(k, f"{name}-{grid[at].row:06d}-{grid[at].column:06d}", grid[at], inside[at]) for at in sorted(chosen)]


def _within(shape: Shape, window: Window) -> Shape | None:
    """Return a shape in the pixels of a window; None if it does not reach into it."""
    x, y, width, height = reach(shape)
    left, top = x - window.column, y - window.row
    if left >= window.width or top >= window.height or left + width <= 0 or top + height <= 0:
        return None
    rings = [tuple((px - window.column, py - window.row) for px, py in ring) for ring in (shape.points, *shape.holes)]
    return replace(shape, points=rings[0], holes=tuple(rings[1:]))


def cut_out(opened: OpenScene, window: Window, paths: Sequence[Path]) -> None:
    """Write a window of each file of a scene, as it is stored, to a file of its own."""
    rasterio = import_optional("rasterio")
    part = rasterio.windows.Window(window.column, window.row, window.width, window.height)
    with gdal_settings():
        for layer, path in zip(opened.layers, paths, strict=True):
            if path.exists():
                continue
            if layer.grid.shape != opened.shape or layer.path is None:
                raise InvalidInputError(
                    f"{layer.label} lies on another grid than the scene, which is too large to be resampled as a "
                    "whole. Resample the file first, for example with gdalwarp.",
                    code="grid-windows",
                )
            with open_source(layer.path, getattr(layer, "drivers", ())) as source, replacing(path) as temporary:
                profile = {"driver": "GTiff", "width": window.width, "height": window.height, "count": source.count}
                profile |= {"dtype": source.dtypes[0], "nodata": source.nodata, "crs": source.crs}
                with open_dataset(temporary, "w", transform=_moved(source.transform, window), **profile) as target:
                    target.colorinterp = source.colorinterp
                    target.write(source.read(window=part))
                    for k, text in enumerate(source.descriptions):
                        if text:
                            target.set_band_description(k + 1, text)
                    if rasterio.enums.MaskFlags.per_dataset in source.mask_flag_enums[0]:
                        target.write_mask(source.dataset_mask(window=part))


def _moved(transform: Any, window: Window) -> Any:
    """Return the transform of a window."""
    a, b, c, d, e, f = tuple(transform)[:6]
    x, y = window.column, window.row
    return type(transform)(a, b, c + a * x + b * y, d, e, f + d * x + e * y)


class Windows:
    """The windows of a task, cut out into a folder, as scenes of a store."""

    def __init__(self, store: SceneStore, task: Task, folder: Path) -> None:
        self.pieces = [
            piece
            for k, _, shapes in task.labels
            for piece in pieces_of(k, store.scenes[k].name, store.scenes[k].size, shapes, task.settings)
        ]
        self.pieces.sort(key=lambda piece: piece.name)
        collection = store.collection
        self.folders = [folder / _plain(label, k) for k, label in enumerate(collection.source_names)]
        for path in self.folders:
            path.mkdir(parents=True, exist_ok=True)
        for piece in self.pieces:
            opened = store.scenes[piece.scene].opened
            assert opened is not None  # or nothing could be drawn on it
            cut_out(opened, piece.window, [path / f"{piece.name}.tif" for path in self.folders])
        self.names = [piece.name for piece in self.pieces]
        scenes = open_scenes([str(path) for path in self.folders], store.source_names, computed=collection.computed)
        self.store = SceneStore(scenes.only(self.names), store.recipes)

    def task(self, task: Task) -> Task:
        """Return what is learned from the windows."""
        return Task(task.settings, tuple((k, 0, piece.shapes) for k, piece in enumerate(self.pieces)))

    def place(self, k: int, box: Sequence[int]) -> tuple[int, list[int]]:
        """Return the scene and the box there of a box in a window."""
        piece = self.pieces[k]
        return piece.scene, [box[0] + piece.window.column, box[1] + piece.window.row, *box[2:]]


def _plain(label: str, k: int) -> str:
    """Return the name of the folder of a source."""
    kept = "".join(char if char.isalnum() or char in "-_ ." else "_" for char in label).strip(". ")
    return kept or f"source{k + 1}"


class WindowLearner(Learner):
    """Learns from windows of scenes that are too large to be held; maps are those of overviews."""

    def __init__(self, store: SceneStore, n_jobs: int | None = None) -> None:
        super().__init__(store, n_jobs)
        self._folder = Path(tempfile.mkdtemp(prefix="bimichi-windows-"))
        self._remove = finalize(self, shutil.rmtree, self._folder, True)
        self._names: list[str] = []
        self._inner: Learner | None = None
        self._lock = Lock()

    def fit(self, task: Task) -> Trained:
        inner, windows = self._prepared(task)
        return self._outer(inner.fit(windows.task(task)), task)

    def auto(self, task: Task) -> Trained:
        inner, windows = self._prepared(task)
        return self._outer(inner.auto(windows.task(task)), task)

    def score(self, task: Task) -> dict[str, Any]:
        inner, windows = self._prepared(task)
        score = inner.score(windows.task(task))
        return {key: value for key, value in score.items() if key not in ("scenes", "by_scene")}

    def within(self, trained: Trained) -> tuple[Learner, Trained, Windows]:
        """Return the learner, the model and the places of windows, for what looks at training data."""
        inner, windows = self._prepared(trained.task)
        return inner, replace(trained, task=windows.task(trained.task)), windows

    def _prepared(self, task: Task) -> tuple[Learner, Windows]:
        """Return the windows of a task and their learner; what it knows is kept as long as these are the same."""
        with self._lock:
            windows = Windows(self.store, task, self._folder)
            if self._inner is None or windows.names != self._names:
                self._inner, self._names = Learner(windows.store, self._n_jobs), windows.names
            return self._inner, windows

    def _outer(self, trained: Trained, task: Task) -> Trained:
        self.number += 1
        trained.number = self.number
        trained.task = replace(task, settings=trained.task.settings)
        return trained


def learner_of(store: SceneStore, n_jobs: int | None = None, before: Learner | None = None) -> Learner:
    """Return what learns from scenes, by whether any is shown in tiles; its models are numbered on from `before`."""
    learner = WindowLearner(store, n_jobs) if store.tiled else Learner(store, n_jobs)
    learner.number = 0 if before is None else before.number
    return learner


def as_windows(work: Workspace, folder: Path) -> Workspace:
    """Cut out what is learned from into a folder; return the workspace of a project in it, which is saved."""
    windows = Windows(work.opened, work.task(), folder)
    labels = [SceneLabels(1, piece.shapes) for piece in windows.pieces]
    cut = Workspace(windows.store, labels, work.settings, work.auto, title=work.title, with_empty=True)
    cut.project, cut.label_file = folder / FILE_NAME, folder / "labels.json"
    cut.arguments = [str(path) for path in windows.folders]
    cut.save()
    return cut
