"""Exports of a studio: labels, masks, the model, reports, maps, and a command and Python that make the model again."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._files import replacing
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fuse.images import fuse_scene, match_scene
from bimichi.fuse.rasters import fuse_windows
from bimichi.io.annotations.write import write_annotations
from bimichi.io.project import FILE_NAME, LABEL_OPTIONS
from bimichi.io.raster import gdal_settings
from bimichi.io.write import write_image
from bimichi.report import IndexEntry, thumbnail, write_index, write_report
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.grid import Placement
from bimichi.scenes.labels import CORE, pixel_labels
from bimichi.studio.labels import annotations_of
from bimichi.studio.learning import Trained
from bimichi.studio.project import export_folder, relative_to
from bimichi.studio.scenes import StudioScene
from bimichi.studio.windows import as_windows
from bimichi.studio.workspace import Workspace


def command_line(work: Workspace, model: Path) -> str:
    """Return a command that learns the same model, to the last bit, from a project that is saved."""
    drivers, name = work.opened.collection.drivers, work.project.name if work.project else ""
    words = ["bimichi", "train", "--project", "." if name == FILE_NAME else name]
    words += ["--recipe", ",".join(work.recipes)] if any(":" in recipe for recipe in work.recipes) else []
    words += ["--driver", ",".join(drivers)] if drivers else []
    words += ["-o", relative_to(model, work.folder)]
    return f"cd {shlex.quote(str(work.folder))}\n{shlex.join(words)}\n"


def python_text(work: Workspace, model: Path) -> str:
    """Return Python that learns the same model, to the last bit, from a project that is saved."""
    settings, collection = work.settings, work.opened.collection
    assert work.project is not None  # as it is saved
    assert work.label_file is not None
    drivers = f"drivers={list(collection.drivers)!r}" if collection.drivers else ""
    labelling = {"boxes": str(work.label_file.resolve()), **LABEL_OPTIONS}
    labelling |= {"rest": settings.rest} if settings.rest != "negative" else {}
    labelling |= {"core": settings.core} if settings.core != CORE else {}
    labelling |= {"by_pixel": True} if settings.objective == "mean" and not work.auto else {}
    estimator = f"random_state={settings.seed}, source_names=reader.source_names"
    if work.auto:
        estimator = f"bimichi.BiMIChICV({estimator})"
    else:
        chosen = f"{settings.objective!r}, polarity={settings.polarity!r}, additivity={settings.additivity!r}"
        estimator = f"bimichi.BiMIChI({chosen}, {estimator})"
    return f"""import bimichi
from bimichi.scenes.labels import Labelling
from bimichi.io.labelled import LabelledDataset
from bimichi.io.project import read_project
from bimichi.methods.cross_validated import fit_scenes, scene_rule

project = read_project({str(work.project.resolve())!r})
labels = Labelling({", ".join(f"{key}={value!r}" for key, value in labelling.items())})
reader = LabelledDataset(project.open({drivers}), labels, recipes={list(work.recipes)!r})
model = {estimator}
fit_scenes(model, reader)
rule = scene_rule(model, reader.recipes, reader.inputs)
rule.save({str(model.resolve())!r})
"""


LABELS = {"coco": "labels.json", "geojson": "labels.geojson", "csv": "labels.csv"}
MODEL = "model.json"


@dataclass(frozen=True)
class Exported:
    """Files that were written, and text to copy."""

    files: tuple[Path, ...] = ()
    text: str = ""


class Exporter:
    """Writes exports of a workspace, and of the model that was learned from it, into one folder."""

    def __init__(self, work: Workspace, trained: Trained | None, n_jobs: int | None = None) -> None:
        if work.store is None or work.project is None:
            raise InvalidInputError("Open scenes before anything is exported.", code="scenes-empty")
        self._work, self._store, self._trained, self._n_jobs = work, work.store, trained, n_jobs
        self.folder = export_folder(work.project)

    def write(self, kind: str) -> Exported:
        """Export one kind of thing."""
        kinds: dict[str, Callable[[], Exported]] = {
            **{name: lambda file=file: self._labels(file) for name, file in LABELS.items()},  # type: ignore[misc]
            "masks": self._masks,
            "model": self._model,
            "report": self._reports,
            "fused": self._fused,
            "command": lambda: self._text(command_line),
            "python": lambda: self._text(python_text),
        }
        if kind == "all":
            done = [kinds[name]() for name in ("coco", "masks", "model", "report", "fused")]
            return Exported(tuple(path for exported in done for path in exported.files))
        if kind not in kinds:
            raise InvalidInputError(
                f"There is no export {kind!r:.40}; there are {', '.join([*kinds, 'all'])}.", code="export-unknown"
            )
        return kinds[kind]()

    def _drawn(self) -> dict[str, tuple[StudioScene, ImageAnnotations]]:
        """Return the scenes on which something is drawn, and what."""
        drawn = {}
        for k, scene in enumerate(self._store.scenes):
            if self._work.labels[k].shapes and self._store.load(k) is not None:
                drawn[scene.name] = (scene, annotations_of(self._work.labels[k].shapes, scene.size))
        if not drawn:
            raise InvalidInputError("Nothing is drawn yet; draw a box around a target first.", code="nothing-drawn")
        return drawn

    def _labels(self, name: str) -> Exported:
        drawn = self._drawn()
        path = self._path(name)
        places: Mapping[str | None, Placement] = {
            image: scene.placement or Placement(scene.size) for image, (scene, _) in drawn.items()
        }
        write_annotations(path, {image: annotations for image, (_, annotations) in drawn.items()}, places)
        return Exported((path,))

    def _masks(self) -> Exported:
        """Write the pixels of targets, and of what is unknown if there is any: 255 in bytes, 0 elsewhere."""
        how, files = replace(self._work.settings.labelling, core=(1.0, 1.0)), []
        masks = {}
        for name, (scene, found) in self._drawn().items():
            labels = pixel_labels(found, scene.size, how)
            masks[name] = (scene, labels > 0, labels == 0)
        some = any(unknown.any() for _, _, unknown in masks.values())
        for name, (scene, targets, unknown) in masks.items():
            files.append(self._mask(scene, f"masks/{_safe(name)}", targets))
            if some:
                files.append(self._mask(scene, f"ignore/{_safe(name)}", unknown))
        return Exported(tuple(files))

    def _mask(self, scene: StudioScene, name: str, mask: NDArray[np.bool_]) -> Path:
        image = np.where(mask, 255, 0).astype(np.uint8)
        if scene.placement is None:
            path = self._path(f"{name}.png")
            write_image(path, image)
            return path
        path = self._path(f"{name}.tif")
        write_geotiff(path, image, scene.grid)
        return path

    def _model(self) -> Exported:
        path = self._path(MODEL)
        self._learned().rule.save(path)
        return Exported((path,))

    def _learned(self) -> Trained:
        if self._trained is None:
            raise InvalidInputError("There is no model yet; label something first.", code="model-missing")
        now, then = self._work.task(), self._trained.task
        if now.labels != then.labels or (now != then and self._trained.auto is None):
            raise InvalidInputError(
                "The model is older than what is drawn; wait until it has learned, or press train.", code="model-older"
            )
        return self._trained

    def _reports(self) -> Exported:
        trained = self._learned()
        usable = [
            k for k, scene in enumerate(self._store.scenes) if not scene.tiled and self._store.load(k) is not None
        ]
        if not usable:
            raise InvalidInputError(
                "Reports hold whole images, and these scenes are too large for that. Export the fused maps instead, or "
                "write a report of a part: crop the sources, and call bimichi report.",
                code="report-large",
            )
        many = len(usable) > 1
        entries = [self._report(k, trained, many) for k in usable]
        pages = [entry.page for entry in entries if entry.page is not None]
        if many:
            index = self._path("report/index.html")
            write_index(index, entries, self._work.title)
            pages.insert(0, index)
        return Exported(tuple(pages))

    def _report(self, k: int, trained: Trained, many: bool) -> IndexEntry:
        scene, drawn = self._store.scenes[k], self._work.labels[k].shapes
        page = self._path(f"report/scene-{_safe(scene.name)}.html" if many else "report.html")
        read = self._store.load(k, trained.rule.recipes)
        assert read is not None  # as it is usable
        boxes = annotations_of([shape for shape in drawn if shape.label == "target"], scene.size).boxes
        truth = self._store.truth(k)
        scored = truth is not None and bool((truth == 1).any() and (truth == 0).any())
        masks: dict[str, Any] = {"truth": truth == 1, "ignore": truth == 255} if scored else {}
        files = ", ".join(file.name for file in scene.files.files)
        title = scene.name if many else self._work.title
        rule = trained.rule
        write_report(page, rule, read, boxes=boxes, title=title, notes={"Image files": files}, **masks)
        fused = rule.fuse(read.sources, self._n_jobs)
        return IndexEntry(scene.name, page, thumbnail(fused), (fused.shape[0], fused.shape[1]), None, "")

    def _fused(self) -> Exported:
        rule, files = self._learned().rule, []
        for k, scene in enumerate(self._store.scenes):
            if self._store.load(k) is None or scene.opened is None:
                continue
            path = self._path(f"fused/{_safe(scene.name)}.tif")
            if scene.opened.placed:
                matched, recipes = match_scene(rule, scene.opened)
                fuse_windows(replace(rule, recipes=tuple(recipes)), matched, path, n_jobs=self._n_jobs)
            else:
                fuse_scene(rule, scene.opened, path, n_jobs=self._n_jobs)
            files.append(path)
        return Exported(tuple(files))

    def _text(self, write: Callable[[Workspace, Path], str]) -> Exported:
        """Save the project, or that of the windows of a large scene, and return how to learn from it."""
        self._drawn()  # raises if there is nothing
        work = self._work
        if self._store.tiled:
            work = as_windows(work, self._path("windows/labels.json").parent)
        else:
            work.save()
        return Exported((), write(work, self._path(MODEL)))

    def _path(self, name: str) -> Path:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BimichiError(
                f"Cannot write to {path.parent}: {error.strerror or error}.", code="output-unwritable"
            ) from error
        return path


def write_geotiff(path: Path, image: NDArray[Any], grid: Any) -> None:
    """Write one band with the place of a scene, whole or not at all."""
    rasterio = import_optional("rasterio")
    height, width = image.shape
    profile = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": image.dtype.name}
    profile |= {"crs": grid.crs, "transform": grid.transform, "compress": "deflate"}
    with replacing(path) as temporary, gdal_settings(), rasterio.open(temporary, "w", **profile) as file:
        file.write(image, 1)


def _safe(name: str) -> str:
    """Return the name of a scene as that of a file."""
    return "".join("_" if char in '/\\:*?"<>|' or ord(char) < 32 else char for char in name).strip(". ") or "scene"
