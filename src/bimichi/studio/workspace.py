"""What a studio works on: scenes, what is drawn on them, and settings, which are those of `bimichi train`.

Estimators are imported when they are needed: the page is served without them.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from bimichi._checks import check_choice
from bimichi._files import atomic_write
from bimichi._version import __version__
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.io.dataset import SceneCollection, collect_scenes
from bimichi.io.open import selected_bands
from bimichi.io.project import LABEL_OPTIONS, Project, ProjectScene, ProjectSource
from bimichi.scenes.labels import CORE, Labelling
from bimichi.sources.recipes import AS_IS
from bimichi.studio.labels import Shapes, parse_shapes
from bimichi.studio.project import (
    MODES,
    Hashes,
    SavedLabels,
    SavedScene,
    labels_of,
    labels_text,
    new_label_file,
    relative_to,
    view_file,
)
from bimichi.studio.scenes import SceneStore, StudioScene

if TYPE_CHECKING:
    from bimichi.methods.bimichi import BiMIChI

AUTO = "auto"
ABOUT = (
    "Paths are relative to this file, which bimichi studio writes. Every command reads it: bimichi train --project {}"
)
SOURCES = ("given", "rarity")
ADDITIVITIES = (1, 2, None)


@dataclass(frozen=True)
class Settings:
    """How labels become bags, and what is minimised; `BiMIChI` and `Labelling` describe the fields."""

    objective: str = "logistic"
    additivity: int | None = 1
    sources: str = "given"
    rest: str = "negative"
    core: tuple[float, float] = CORE
    polarity: str = "given"
    seed: int = 0
    inverted: tuple[int, ...] = ()
    """Sources that are inverted before their values are ranked, with ``sources="rarity"``."""

    def __post_init__(self) -> None:
        check_choice(self.objective, "objective", tuple(OBJECTIVES))
        check_choice(self.additivity, "additivity", ADDITIVITIES)
        check_choice(self.sources, "sources", SOURCES)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise InvalidInputError(
                f"seed must be a whole number from 0, got {self.seed!r}.",
                code="whole-number",
                argument="seed",
                value=self.seed,
            )
        if not isinstance(self.inverted, tuple) or not all(isinstance(k, int) for k in self.inverted):
            raise InvalidInputError(
                f"inverted must be numbers of sources, got {self.inverted!r:.40}.",
                code="inverted",
                argument="inverted",
                value=self.inverted,
            )
        shares = self.core if isinstance(self.core, tuple) else ()
        if len(shares) != 2 or not all(isinstance(share, int | float) and 0 < share <= 1 for share in shares):
            raise InvalidInputError(
                f"core must be two shares in (0, 1], of the width and the height, got {self.core!r:.40}.",
                code="core",
                argument="core",
                value=self.core,
            )
        self.labelling  # noqa: B018  # raises if rest is another word
        if (self.objective, self.additivity, self.polarity) != ("logistic", 1, "given"):  # which go together
            from bimichi.fit.solvers import get_solver
            from bimichi.fit.train import check_training

            objective = get_objective(self.objective, additivity=self.additivity)
            check_training(objective, get_solver("convex"), self.polarity)

    @property
    def labelling(self) -> Labelling:
        """Return how labels of the studio become bags, by the options of `bimichi train`."""
        rest: Any = self.rest
        return Labelling(
            bags="boxes", target="target", negative="not", rest=rest, core=self.core, by_pixel=self.objective == "mean"
        )

    def options(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return them as [labels] and [train] of a project file have them."""
        labels = {} if self.rest == "negative" else {"rest": self.rest}
        labels |= {} if self.core == CORE else {"core": ",".join(map(repr, self.core))}
        train: dict[str, Any] = {"objective": self.objective}
        train |= {} if self.additivity is None else {"additivity": self.additivity}
        train |= {} if self.polarity == "given" else {"polarity": self.polarity}
        return labels, train | {"seed": self.seed}

    @classmethod
    def of_options(cls, labels: Mapping[str, Any], train: Mapping[str, Any]) -> "Settings":
        """Return the settings that a project file has in [labels] and [train]."""
        settings = {key: labels[key] for key in ("rest",) if key in labels}
        settings |= {key: train[key] for key in ("polarity", "seed") if key in train}
        if train.get("objective", AUTO) != AUTO:
            settings |= {"objective": train["objective"], "additivity": train.get("additivity")}
        if "core" in labels:
            try:
                settings["core"] = tuple(float(share) for share in str(labels["core"]).split(","))
            except ValueError:
                settings["core"] = str(labels["core"])  # which is refused in words
        return cls().changed(settings)

    def recipes(self, images: Sequence[str]) -> tuple[str, ...]:
        """Return the recipes of the sources, of which those are given that the user asked for."""
        if self.sources == "given":
            return tuple(images)
        from bimichi.methods.cross_validated import followed

        own = ["inverted|rarity" if k in self.inverted else "rarity" for k in range(len(images))]
        return tuple(followed(recipe, f"{AS_IS}|{more}") for recipe, more in zip(images, own, strict=True))

    def without_ranks(self, recipes: Sequence[str]) -> tuple["Settings", list[str]]:
        """Return the settings and recipes of which `recipes` are made: the opposite of `recipes`."""
        if not all(recipe.split("|")[-1] == "rarity" for recipe in recipes):
            return self, list(recipes)
        plain = [recipe.removesuffix("rarity").removesuffix("|") for recipe in recipes]
        inverted = tuple(k for k, recipe in enumerate(plain) if recipe.split("|")[-1] == "inverted")
        images = [recipe.removesuffix("inverted").removesuffix("|") or AS_IS for recipe in plain]
        return replace(self, sources="rarity", inverted=inverted), images

    def model(self, names: Any) -> "BiMIChI":
        """Return what is fitted."""
        from bimichi.methods.bimichi import BiMIChI

        options: Any = {"polarity": self.polarity, "additivity": self.additivity}
        return BiMIChI(self.objective, source_names=list(names), random_state=self.seed, **options)

    def changed(self, values: Mapping[str, Any]) -> "Settings":
        """Return the same settings with some changed, as the page sends them."""
        if not isinstance(values, Mapping):
            raise InvalidInputError(
                f"settings must be an object, got {type(values).__name__}.",
                code="settings-object",
                argument="settings",
                value=values,
            )
        own = {key: value for key, value in values.items() if key in asdict(self)}
        own |= {key: tuple(own[key]) for key in ("core", "inverted") if isinstance(own.get(key), list)}
        try:
            return replace(self, **own)
        except (TypeError, OverflowError) as error:
            raise InvalidInputError(f"A setting is not as it must be: {error}.", code="settings") from error

    def to_json(self) -> dict[str, Any]:
        """Return them as the page takes them."""
        return asdict(self) | {"core": list(self.core), "inverted": list(self.inverted)}


@dataclass(frozen=True)
class Task:
    """What is learned: the shapes of the labelled scenes, with their revisions, under some settings."""

    settings: Settings
    labels: tuple[tuple[int, int, Shapes], ...]
    """Number of the scene, revision, shapes."""

    @property
    def revisions(self) -> dict[str, int]:
        """The revision of each scene, by its number as text, as JSON has it."""
        return {str(scene): revision for scene, revision, _ in self.labels}


@dataclass(frozen=True)
class SceneLabels:
    """What is drawn on a scene, and how often that changed."""

    revision: int = 0
    shapes: Shapes = ()
    kept: SavedLabels | None = None
    """What the label file has of a scene whose images cannot be used, to be written again as it is."""


Drawn = tuple[SceneLabels, StudioScene]


@dataclass(eq=False)
class Workspace:
    """The state of a studio, apart from models and tabs; one thread changes it."""

    store: SceneStore | None = None
    labels: list[SceneLabels] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    auto: bool = False
    """Whether the model is the one that cross-validation chooses, rather than that of the settings."""
    mode: str = "live"
    threshold: float | None = None
    title: str = "bimichi studio"
    project: Path | None = None
    label_file: Path | None = None
    named: Sequence[Path] = ()
    """Files of labels that a project names."""
    notes: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    """The sources, as `bimichi train` would take them."""
    truth: str | None = None
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the project file says about commands other than train."""
    images: Mapping[str, SavedScene] = field(default_factory=dict)
    """The images of scenes, as they were when the project was saved last."""
    unmatched: Sequence[SavedLabels] = ()
    """Labels of scenes that are not there."""
    with_empty: bool = False
    """Whether scenes without labels are learned from, too, as windows of a large scene are."""
    _texts: dict[Path, str] = field(default_factory=dict)
    _in_order: list[str] | None = None
    """Scenes that the paths of the sources find as they are."""
    _saving: Lock = field(default_factory=Lock)

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
    def opened(self) -> SceneStore:
        """The scenes that are open."""
        if self.store is None:
            raise InvalidInputError("No scenes are open.", code="scenes-empty")
        return self.store

    @property
    def folder(self) -> Path:
        """The folder of the project, to which paths are relative."""
        if self.project is None:
            raise InvalidInputError("The project has no file yet.", code="project-unnamed")
        return self.project.resolve().parent

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes by which `bimichi train` makes the sources of the model."""
        return self.opened.recipes if self.auto else self.settings.recipes(self.opened.recipes)

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
        scene = self.opened.scenes[number]
        if self.opened.load(number) is None:
            raise InvalidInputError(
                f"Scene {scene.name!r} cannot be used, so nothing is drawn on it.", code="scene-unreadable"
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
        self.labels[number] = SceneLabels(revision, parse_shapes(shapes, scene.size))
        self.auto = False
        return True

    def replace(self, drawn: Mapping[int, Shapes]) -> None:
        """Replace what is drawn on some scenes, as an import does."""
        for k, shapes in drawn.items():
            self.labels[k] = SceneLabels(self.labels[k].revision + 1, shapes)
            self.auto = False

    def add(self, scenes: Sequence[StudioScene], notes: Sequence[str] = ()) -> None:
        """Add scenes of the same sources behind the others, with nothing drawn on them."""
        if self.store is None:
            raise InvalidInputError("Open scenes before others are added to them.", code="scenes-empty")
        self.store.add(scenes)
        self._in_order = None
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
        drawn = ((k, labels.revision, labels.shapes) for k, labels in enumerate(self.labels) if self._learned(labels))
        return Task(self.settings, tuple(drawn))

    def _learned(self, labels: SceneLabels) -> bool:
        return bool(labels.shapes) or self.with_empty

    def save(self) -> str:
        """Write the project, its labels and what the studio alone knows; return the time of it."""
        if self.project is None or self.store is None:
            raise BimichiError(
                "There is nothing to save: no scenes are open, or no project file is named.", code="nothing-to-save"
            )
        with self._saving:  # an export saves, too
            if self.label_file is None or self.label_file.resolve().parent != self.folder:
                self.label_file = new_label_file(self.project)
            saved = datetime.now(UTC).isoformat(timespec="milliseconds")
            pairs = list(zip(list(self.labels), self.store.scenes, strict=False))  # scenes are added before labels
            labels = [
                labels_of(scene.name, drawn.revision, drawn.shapes, scene.size)
                for drawn, scene in pairs
                if self._learned(drawn)
            ]
            kept = [drawn.kept for drawn, _ in pairs if drawn.kept is not None and drawn.kept.annotations]
            texts = {
                self.label_file: labels_text(labels, [*kept, *self.unmatched]),
                self.project: self._to_project(self.label_file.name, pairs).to_toml([ABOUT]),
                view_file(self.project): self._view(saved, pairs),
            }
            for path, text in texts.items():
                if self._texts.get(path) != text or not path.exists():
                    atomic_write(path, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
                    self._texts[path] = text
        return saved

    def _to_project(self, label_file: str, pairs: Sequence[Drawn]) -> Project:
        """Return the project from which `bimichi train` learns the model of the labels and settings."""
        collection, listed = self.opened.collection, self._listed(pairs)
        names = self.opened.source_names if listed else list(collection.given or ())
        names = [] if any("," in name for name in names) else names  # at which a project file would part them
        recipes = () if any(":" in recipe for recipe in self.recipes) else self.recipes  # a project file runs no code
        each = len(self.arguments) == len(recipes) and len(names) in (0, len(recipes))
        sources = []
        for k, (path, bands) in enumerate(map(selected_bands, self.arguments)):
            own = (tuple(names[k : k + 1]), recipes[k : k + 1]) if each else ((), ())
            sources.append(ProjectSource(relative_to(Path(path), self.folder), bands, *own))
        labels, train = self.settings.options()
        if self.truth is not None and all(scene.truth is not None for _, scene in pairs):
            labels["truth"] = relative_to(Path(self.truth), self.folder)
        return Project(
            sources,
            [f"{source.name}: {source.text}" for source in collection.computed],
            {"boxes": label_file, **LABEL_OPTIONS, **labels},
            {"train": {"objective": AUTO, "seed": self.settings.seed} if self.auto else train, **self.commands},
            self.folder,
            listed,
            () if each else names,
            () if each else recipes,
            collection.align,
        )

    def _listed(self, pairs: Sequence[Drawn]) -> list[ProjectScene]:
        """Return the scenes that the project must list, as the paths of the sources do not find them as they are."""
        usable = [(drawn, scene) for drawn, scene in pairs if drawn.kept is None]
        if self._in_order is None:
            self._in_order = []
            with suppress(BimichiError):
                scenes = collect_scenes(self.arguments, len(self.arguments)).scenes
                files = {scene.name: _resolved(scene.files) for scene in scenes}
                same = all(files.get(scene.name) == _resolved(scene.files.files) for _, scene in usable)
                by_folder = {path.parent.name for paths in files.values() for path in paths}  # which may be renamed
                self._in_order = list(files) if same and not by_folder & set(files) else []
        learned = [scene.name for drawn, scene in usable if self._learned(drawn)]
        if self._in_order and learned == [name for name in self._in_order if name in learned]:
            return []
        return [
            ProjectScene(scene.name, tuple(relative_to(file, self.folder) for file in scene.files.files))
            for _, scene in usable
        ]

    def _view(self, saved: str, pairs: Sequence[Drawn]) -> str:
        """Return the text of the file of what the studio alone knows."""
        scenes, collection = [], self.opened.collection
        for drawn, scene in pairs:
            files: Sequence[Mapping[str, Any]] = ()
            if drawn.kept is not None and scene.name in self.images:
                files = self.images[scene.name].files
            else:
                with suppress(BimichiError):  # without its images, a scene is known by name
                    hashes = [(file, *self.opened.hashes.keep(file)) for file in scene.files.files]
                    names = [relative_to(file, self.folder) for file, _, _ in hashes]
                    files = [
                        {"path": name, "size": size, "sha256": digest}
                        for name, (_, size, digest) in zip(names, hashes, strict=True)
                    ]
            scenes += [{"name": scene.name, "files": files}] if files else []
        some = self.truth is not None and not all(scene.truth is not None for _, scene in pairs)
        truth = relative_to(Path(self.truth), self.folder) if some and self.truth else ""
        data: dict[str, Any] = {"about": "What the studio alone knows of a project; it may be deleted.", "saved": saved}
        data |= {"title": self.title, "mode": self.mode, "threshold": self.threshold, "truth": truth}
        data |= {"sources": collection.source_names, "many": collection.many, "scenes": scenes}
        return json.dumps(data, indent=1, allow_nan=False)

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
        scene, drawn = self.opened.look(k), self.labels[k]
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


def _resolved(files: Sequence[Path]) -> list[Path]:
    return [file.resolve() for file in files]


def _title(collection: SceneCollection) -> str:
    if not collection.many:
        return collection.names[0]
    folders = {file.resolve().parent.parent.name for file in collection.files}
    return folders.pop() if len(folders) == 1 else f"{len(collection)} scenes"
