"""What a studio gives away: labels, masks, the model, reports, maps, and how to make the model again without it."""

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
from bimichi.io.dataset import SceneCollection, SceneFiles, collect_scenes
from bimichi.io.labelled import split_negative
from bimichi.io.raster import gdal_settings
from bimichi.io.write import write_image
from bimichi.report import IndexEntry, thumbnail, write_index, write_report
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.labels import Placement, rasterise
from bimichi.scenes.superpixels import CORE
from bimichi.studio.labels import annotations_of
from bimichi.studio.learning import Trained
from bimichi.studio.project import export_folder, relative_argument, relative_to
from bimichi.studio.scenes import SceneStore, StudioScene
from bimichi.studio.windows import as_windows
from bimichi.studio.workspace import Workspace


def arguments_of(work: Workspace) -> list[str]:
    """Return the sources as `bimichi train` takes them: as the user gave them, or by the folders of their files."""
    store = _store(work)
    for given in (work.arguments, _folders(store.collection)):
        try:
            found = collect_scenes(given, len(given)) if given else None
        except BimichiError:
            continue
        if found is not None and _same_files(work, found):
            return given
    raise InvalidInputError(
        "The images of labelled scenes do not lie in one folder per source, in the order of their names, so that no "
        "command names them. Move the images of each source into a folder of their own, and open them from there.",
        code="export-folders",
    )


def _same_files(work: Workspace, found: SceneCollection) -> bool:
    """Whether these hold the labelled images, under the same names and in the same order; there may be more of them."""
    store, drawn = _store(work), work.labels
    own = {scene.name: _resolved(scene.files) for k, scene in enumerate(store.scenes) if drawn[k].shapes}
    others = {scene.name: _resolved(scene) for scene in found.scenes}
    same = [(name, files) for name, files in others.items() if name in own] == list(own.items())
    return same and found.many == store.collection.many


def _resolved(scene: SceneFiles) -> list[Path]:
    return [file.resolve() for file in scene.files]


def _folders(collection: SceneCollection) -> list[str]:
    scenes = collection.scenes
    if not collection.many:
        picks = scenes[0].picks or ((),) * len(scenes[0].files)
        return [
            str(file) + (f"[{','.join(pick)}]" if pick else "")
            for file, pick in zip(scenes[0].files, picks, strict=True)
        ]
    return [str(scenes[0].files[k].parent) for k in range(len(scenes[0].files))]


def options_of(work: Workspace, trained: Trained | None) -> dict[str, Any]:
    """Return the options of `bimichi train`, by name."""
    store, settings = _store(work), work.settings
    auto = trained is not None and trained.auto is not None and trained.task.labels == work.task().labels
    collection, found = store.collection, dict[str, Any]()
    if collection.given is not None:
        found["names"] = ",".join(collection.given)
    found["recipe"] = ",".join(_recipes(work, auto))
    found |= {"align": True} if collection.align else {}
    found |= {"driver": ",".join(collection.drivers)} if collection.drivers else {}
    found |= {"expression": [f"{one.name}: {one.text}" for one in collection.computed]} if collection.computed else {}
    found |= {"bags": "boxes", "target": "target", "negative": "not", "labelled-only": True}
    found |= {"rest": settings.rest} if settings.rest != "negative" else {}
    found |= {"core": ",".join(map(repr, settings.core))} if settings.core != CORE else {}
    if not auto:
        found["objective"] = settings.objective
        found |= {"additivity": settings.additivity} if settings.additivity is not None else {}
        found |= {"polarity": settings.polarity} if settings.polarity != "given" else {}
    return found | {"seed": settings.seed}


def _recipes(work: Workspace, auto: bool) -> list[str]:
    given = _store(work).recipes
    return list(given if auto else work.settings.recipes(given))


def command_line(work: Workspace, labels: Path, model: Path, trained: Trained | None) -> str:
    """Return a command that learns the same model, to the last bit."""
    folder = _folder(work)
    words = ["bimichi", "train", *(relative_argument(one, folder) for one in arguments_of(work))]
    words += ["--boxes", relative_to(labels, folder)]
    for name, value in options_of(work, trained).items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    words += ["-o", relative_to(model, folder)]
    return f"cd {shlex.quote(str(folder))}\n{shlex.join(words)}\n"


def python_text(work: Workspace, labels: Path, model: Path, trained: Trained | None) -> str:
    """Return Python that learns the same model, to the last bit."""
    folder, settings, options = _folder(work), work.settings, options_of(work, trained)
    store = _store(work)
    sources = [str(folder / relative_argument(one, folder)) for one in arguments_of(work)]
    opened = [repr(sources)]
    opened += [f"names={list(store.collection.given)!r}"] if store.collection.given is not None else []
    opened += ["align=True"] if store.collection.align else []
    opened += [f"drivers={list(store.collection.drivers)!r}"] if store.collection.drivers else []
    if store.collection.computed:
        opened.append(f"computed=[{', '.join(f'parse_expression({text!r})' for text in options['expression'])}]")
    how = ['bags="boxes"', 'target="target"', 'negative="not"', "labelled_only=True", f"boxes={str(labels)!r}"]
    how += [f"rest={settings.rest!r}"] if "rest" in options else []
    how += [f"core={settings.core!r}"] if "core" in options else []
    auto = "objective" not in options
    how += ["by_pixel=True"] if not auto and settings.objective == "mean" else []
    model_of = f"random_state={settings.seed}, source_names=reader.source_names"
    made = f"bimichi.BiMIChICV({model_of})"
    if not auto:
        chosen = f"{settings.objective!r}, polarity={settings.polarity!r}, additivity={settings.additivity!r}"
        made = f"bimichi.BiMIChI({chosen}, {model_of})"
    return "\n".join(
        [
            "import bimichi",
            "from bimichi.methods.cross_validated import fit_scenes, scene_rule",
            "from bimichi.io import open_scenes",
            "from bimichi.sources import parse_expression",
            "from bimichi.io.labelled import Labelling",
            "from bimichi.io.labelled import SceneReader",
            "",
            f"scenes = open_scenes({', '.join(opened)})",
            f"labels = Labelling({', '.join(how)})",
            f"reader = SceneReader(scenes, labels, recipes={_recipes(work, auto)!r})",
            f"model = {made}",
            "fit_scenes(model, reader.scenes)",
            "rule = scene_rule(model, reader.recipes, reader.inputs)",
            f"rule.save({str(model)!r})",
            "",
        ]
    )


def _store(work: Workspace) -> SceneStore:
    if work.store is None:
        raise InvalidInputError("No scenes are open.", code="scenes-empty")
    return work.store


def _folder(work: Workspace) -> Path:
    if work.project is None:
        raise InvalidInputError("The project has no file yet.", code="project-unnamed")
    return work.project.resolve().parent


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
            done = [kinds[one]() for one in ("coco", "masks", "model", "report", "fused")]
            return Exported(tuple(path for one in done for path in one.files))
        if kind not in kinds:
            raise InvalidInputError(
                f"There is no export {kind!r:.40}; there are {', '.join([*kinds, 'all'])}.", code="export-unknown"
            )
        return kinds[kind]()

    def _drawn(self) -> dict[str, tuple[StudioScene, ImageAnnotations]]:
        """Return the scenes on which something is drawn, and what."""
        found = {}
        for k, scene in enumerate(self._store.scenes):
            if self._work.labels[k].shapes and self._store.load(k) is not None:
                found[scene.name] = (scene, annotations_of(self._work.labels[k].shapes, scene.size))
        if not found:
            raise InvalidInputError("Nothing is drawn yet; draw a box around a target first.", code="nothing-drawn")
        return found

    def _labels(self, name: str) -> Exported:
        drawn = self._drawn()
        path = self._path(name)
        places: Mapping[str | None, Placement] = {
            image: scene.placement or Placement(scene.size) for image, (scene, _) in drawn.items()
        }
        write_annotations(path, {image: found for image, (_, found) in drawn.items()}, places)
        return Exported((path,))

    def _masks(self) -> Exported:
        """Write the pixels of targets, and of what is unknown if there is any: 255 in bytes, 0 elsewhere."""
        how, files = self._work.settings.labelling, []
        masks = {}
        for name, (scene, found) in self._drawn().items():
            targets, ignored = rasterise(split_negative(found, how)[0], scene.size, how.target)
            sure = rasterise(split_negative(found, how)[1], scene.size).targets
            unknown = ignored & ~sure if how.rest == "negative" else ~(targets | sure)
            masks[name] = (scene, targets & ~sure, unknown)
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
        boxes = annotations_of([one for one in drawn if one.label == "target"], scene.size).boxes
        truth = self._store.truth(k)
        known = truth is not None and bool((truth == 1).any() and (truth == 0).any())
        given: dict[str, Any] = {"truth": truth == 1, "ignore": truth == 255} if known else {}
        files = ", ".join(file.name for file in scene.files.files)
        title = scene.name if many else self._work.title
        rule = trained.rule
        write_report(page, rule, read, boxes=boxes, title=title, notes={"Image files": files}, **given)
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

    def _text(self, write: Callable[..., str]) -> Exported:
        if self._store.tiled:
            work, path = as_windows(self._work, self._path("windows/labels.json").parent)
            return Exported((path,), write(work, path, self.folder / MODEL, self._trained))
        labels = self._labels(LABELS["coco"])
        return Exported(labels.files, write(self._work, labels.files[0], self.folder / MODEL, self._trained))

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
    how = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": image.dtype.name}
    how |= {"crs": grid.crs, "transform": grid.transform, "compress": "deflate"}
    with replacing(path) as temporary, gdal_settings(), rasterio.open(temporary, "w", **how) as file:
        file.write(image, 1)


def _safe(name: str) -> str:
    """Return the name of a scene as that of a file."""
    return "".join("_" if char in '/\\:*?"<>|' or ord(char) < 32 else char for char in name).strip(". ") or "scene"
