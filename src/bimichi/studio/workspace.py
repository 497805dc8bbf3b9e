"""What a studio works on: scenes, what is drawn on them, and settings; and which folders it may read."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bimichi._checks import check_choice
from bimichi._version import __version__
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fit.objectives import OBJECTIVES
from bimichi.io.dataset import SceneCollection
from bimichi.sources.bands import first_few
from bimichi.studio.labels import Shapes, parse_shapes
from bimichi.studio.project import Hashes, exists, relative_argument, relative_to, scene_entry, write_studio
from bimichi.studio.scenes import SceneStore, StudioScene
from bimichi.studio.settings import ADDITIVITIES, MODES, Settings, Task


@dataclass(frozen=True)
class SceneLabels:
    """What is drawn on a scene, and how often that changed."""

    revision: int = 0
    shapes: Shapes = ()
    kept: Mapping[str, Any] | None = None
    """What the project file has of a scene whose images were not found, to be written again as it is."""


@dataclass(eq=False)
class Workspace:
    """The state of a studio, apart from models and tabs; one thread changes it."""

    store: SceneStore | None = None
    labels: list[SceneLabels] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    mode: str = "live"
    threshold: float | None = None
    title: str = "bimichi studio"
    project: Path | None = None
    notes: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    """The sources, as `bimichi train` would take them."""

    @classmethod
    def of(
        cls,
        collection: SceneCollection,
        recipes: Sequence[str] | None = None,
        truth: Mapping[str, Path] | None = None,
        unusable: Mapping[str, str] | None = None,
        hashes: Hashes | None = None,
    ) -> "Workspace":
        """Return a workspace with these scenes, and nothing drawn; arguments as in `SceneStore`."""
        store = SceneStore(collection, recipes, truth, unusable, hashes)
        return cls(store, [SceneLabels() for _ in store.scenes], title=_title(collection))

    @property
    def folder(self) -> Path | None:
        """Where it may write."""
        return None if self.project is None else self.project.parent

    @property
    def lost(self) -> list[str]:
        """Names of the scenes whose images were not found."""
        scenes = [] if self.store is None else self.store.scenes
        return [scene.name for drawn, scene in zip(list(self.labels), scenes, strict=False) if drawn.kept is not None]

    def scene(self, k: Any) -> int:
        """Return the number of a scene that the page asks for."""
        n = 0 if self.store is None else len(self.store)
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < n:
            raise InvalidInputError(f"There is no scene {k!r}; there are {n}, numbered from 0.", code="scene-unknown")
        return k

    def draw(self, k: Any, revision: Any, shapes: Any) -> bool:
        """Take over what is drawn on a scene; False if it is not newer than what is there."""
        number = self.scene(k)
        assert self.store is not None  # or there would be no scene
        if self.store.load(number) is None:
            raise InvalidInputError(
                f"Scene {self.store.scenes[number].name!r} cannot be used, so nothing is drawn on it.",
                code="scene-unreadable",
            )
        if isinstance(revision, bool) or not isinstance(revision, int) or revision < 0:
            raise InvalidInputError(
                f"revision must be a whole number, got {revision!r}.",
                code="whole-number",
                argument="revision",
                value=revision,
            )
        if revision <= self.labels[number].revision:
            return False
        self.labels[number] = SceneLabels(revision, parse_shapes(shapes, self.store.scenes[number].size))
        return True

    def replace(self, drawn: Mapping[int, Shapes]) -> None:
        """Replace what is drawn on some scenes, as an import does."""
        for k, shapes in drawn.items():
            self.labels[k] = SceneLabels(self.labels[k].revision + 1, shapes)

    def add(self, scenes: Sequence[StudioScene], notes: Sequence[str] = ()) -> None:
        """Add scenes of the same sources behind the others, with nothing drawn on them."""
        if self.store is None:
            raise InvalidInputError("Open scenes before others are added to them.", code="scenes-empty")
        self.store.add(scenes)
        self.labels += [SceneLabels() for _ in scenes]
        self.notes += notes

    def set_mode(self, mode: Any) -> None:
        """Choose when to learn: after every edit, when asked, or never."""
        check_choice(mode, "mode", MODES)
        self.mode = mode

    def set_threshold(self, value: Any) -> None:
        """Choose the value of the map above which the page outlines targets; None for none."""
        number = isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1
        if value is not None and not number:
            raise InvalidInputError(
                f"threshold must be a value of the map, or none, got {value!r:.40}.",
                code="threshold",
                argument="threshold",
                value=value,
            )
        self.threshold = None if value is None else float(value)

    def task(self) -> Task:
        """Return what is to be learned: from all scenes on which anything is drawn."""
        drawn = ((k, one.revision, one.shapes) for k, one in enumerate(self.labels) if one.shapes)
        return Task(self.settings, tuple(drawn))

    def save(self) -> str:
        """Write the project file; return the time that it holds."""
        if self.project is None or self.store is None:
            raise BimichiError(
                "There is nothing to save: no scenes are open, or no project file is named.", code="nothing-to-save"
            )
        collection, folder = self.store.collection, self.project.parent
        content = {
            "title": self.title,
            "sources": {
                "arguments": [relative_argument(one, folder) for one in self.arguments],
                "labels": collection.source_names,
                "many": collection.many,
                "names": self.store.source_names,
                "given": collection.given is not None,
                "recipes": list(self.store.recipes),
                "align": collection.align,
                "drivers": list(collection.drivers),
                "expressions": [f"{one.name}: {one.text}" for one in collection.computed],
            },
            "settings": self.settings.to_json(),
            "mode": self.mode,
            "threshold": self.threshold,
            "truth": {one.name: relative_to(one.truth, folder) for one in self.store.scenes if one.truth is not None},
        }
        known = list(zip(list(self.labels), self.store.scenes, strict=False))  # scenes are added before their labels
        entries = [
            scene_entry(scene.files, drawn.revision, drawn.shapes, scene.placement, folder, self.store.hashes)
            if drawn.kept is None
            else drawn.kept
            for drawn, scene in known
        ]
        return write_studio(self.project, content, entries)

    def state(self) -> dict[str, Any]:
        """Return all of it for the page, without reading pixels; the page asks for these scene by scene."""
        recipes = () if self.store is None else self.settings.recipes(self.store.recipes)
        names = [] if self.store is None else self.store.source_names
        return {
            "version": __version__,
            "title": self.title,
            "project": None if self.project is None else self.project.name,
            "settings": self.settings.to_json(),
            "mode": self.mode,
            "threshold": self.threshold,
            "choices": {"objectives": list(OBJECTIVES), "additivities": list(ADDITIVITIES)},
            "sources": [{"name": name, "recipe": recipe} for name, recipe in zip(names, recipes, strict=True)],
            "scenes": [self._scene(k) for k in range(len(self.labels))],
            "notes": self.notes,
        }

    def prepare(self) -> None:
        """Read what the page asks for first: the heads of all files, and the sources of the scene that it shows."""
        if self.store is None:
            return
        self.state()
        first = next((k for k, scene in enumerate(self.store.scenes) if scene.usable), None)
        if first is not None and not self.store.scenes[first].tiled:
            self.store.planes(first, self.settings.recipes(self.store.recipes))

    def _scene(self, k: int) -> dict[str, Any]:
        assert self.store is not None
        scene, drawn = self.store.look(k), self.labels[k]
        height, width = scene.size
        return {
            "name": scene.name,
            "width": width,
            "height": height,
            "files": [file.name for file in scene.files.files],
            "rgb": scene.coloured,
            "truth": scene.truth is not None,
            "tiled": scene.tiled,
            "crs": None if scene.placement is None else str(scene.grid.crs),
            "problems": list(scene.problems),
            "usable": scene.usable,
            "lost": drawn.kept is not None,
            "revision": drawn.revision,
            "shapes": [shape.to_json() for shape in drawn.shapes],
        }


def _title(collection: SceneCollection) -> str:
    if not collection.many:
        return collection.names[0]
    folders = {file.resolve().parent.parent.name for file in collection.files}
    return folders.pop() if len(folders) == 1 else f"{len(collection)} scenes"


class Roots:
    """The folders whose files may be read; links are followed before a path is compared."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders: list[Path] = []
        for folder in folders:
            self.add(folder)

    def add(self, folder: Path) -> None:
        """Let the files of one more folder be read."""
        resolved = folder.resolve()
        if resolved not in self.folders:
            self.folders.append(resolved)

    @property
    def outermost(self) -> list[Path]:
        """Those that lie in no other."""
        return [one for one in self.folders if not any(other in one.parents for other in self.folders)]

    def allowed(self, path: Any) -> Path:
        """Return a path of the page, relative ones to the first folder, that lies in one of the folders."""
        if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
            raise InvalidInputError("A path must be text.", code="path")
        given = _expanded(Path(path))
        places = [given] if given.is_absolute() else [folder / given for folder in self.folders]
        resolved = [place.resolve() for place in places]
        inside = [one for one in resolved if any(one.is_relative_to(folder) for folder in self.folders)]
        existing = [one for one in inside if exists(one)]
        if existing:
            return existing[0]
        if inside:
            raise InvalidInputError(f"There is no file or folder {path}.", code="file-missing")
        raise InvalidInputError(
            f"{path} is not in a folder that this studio may read: "
            f"{first_few([str(folder) for folder in self.outermost])}. End it, and start `bimichi studio "
            f"{shlex.quote(str(given))}`, or add --allow FOLDER; or drag the files into the page.",
            code="folder-forbidden",
        )


def _expanded(path: Path) -> Path:
    """Return a path with ~ replaced by the user's folder, where there is one."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path
