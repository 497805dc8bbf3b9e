"""Workspaces from what a user names: a project, a folder, or images."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bimichi.datasets import street
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.annotations.match import SceneTargets
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, SceneCollection, SceneFiles, open_scenes
from bimichi.io.open import SUFFIXES, is_pattern, selected_bands
from bimichi.io.project import FILE_NAME, LABEL_OPTIONS, Project, discover, read_project
from bimichi.io.write import write_image
from bimichi.sources.bands import first_few
from bimichi.sources.expressions import parse_expression
from bimichi.studio.labels import Shapes, collected_warnings, parse_shapes, shapes_of
from bimichi.studio.project import (
    Finder,
    Hashes,
    SavedLabels,
    View,
    own_label_file,
    read_labels,
    read_view,
    shapes_from,
)
from bimichi.studio.workspace import AUTO, SceneLabels, Settings, Workspace

MOST_PROJECTS = 100
OWN_LABELS = ("boxes", "labels", "truth", "rest", "core", *LABEL_OPTIONS)
OWN_TRAIN = ("objective", "additivity", "polarity", "seed")
"""What a studio takes over of [labels] and [train]."""
TRUTH = "truth"


@dataclass(frozen=True)
class Options:
    """How images are read, as `bimichi train` takes it, and what is known about them."""

    names: Sequence[str] | None = None
    recipes: Sequence[str] | None = None
    align: bool = False
    drivers: Sequence[str] = ()
    expressions: Sequence[str] = ()
    annotations: str | None = None
    truth: str | None = None

    def open(self, sources: Any) -> SceneCollection:
        """Open scenes."""
        computed = [parse_expression(text) for text in self.expressions]
        reading: Any = {"align": self.align, "drivers": self.drivers, "computed": computed}
        return open_scenes(sources, self.names, limit=MAX_ADDITIVE_SOURCES, **reading)


def open_workspace(paths: Sequence[str], options: Options, folders: Sequence[Path] = ()) -> Workspace:
    """Return the workspace of a project, a folder or images; `folders` are searched for images that were moved."""
    with collected_warnings() as texts:
        work = _opened(paths, options, folders)
    work.notes += texts
    return work


def _opened(paths: Sequence[str], options: Options, folders: Sequence[Path]) -> Workspace:
    alone = Path(paths[0]) if len(paths) == 1 and not is_pattern(paths[0]) else None
    if alone is not None and alone.is_file() and alone.suffix == ".toml":
        return open_project(alone, options, folders)
    if alone is None or not alone.is_dir() or (alone / ".zgroup").exists() or alone.suffix == ".zarr":
        return _of_sources(options.open(list(paths)), options, paths)
    if (alone / FILE_NAME).is_file():
        return open_project(alone / FILE_NAME, options, folders)
    seen = discover(alone)
    if seen.project is None:
        held = f"It holds {first_few(seen.unknown)}." if seen.unknown else "It is empty."
        raise InvalidInputError(f"Found no images of sources in {alone}. {held}", code="images-missing")
    work = _of_project(seen.project, options, View(), Finder([], Hashes()))
    _draw_labels(work, seen.project, options, discovered=True)
    work.notes += [f"Found {line}." for line in seen.found]
    if seen.unknown:
        work.notes.append(f"Not used: {first_few(seen.unknown)}.")
    return work


def _of_sources(collection: SceneCollection, options: Options, arguments: Sequence[str]) -> Workspace:
    """Return the workspace of new scenes."""
    truth = collection.companions(options.truth, TRUTH, partial=True) if options.truth else None
    work = Workspace.of(collection, options.recipes, truth)
    work.arguments, work.truth = list(arguments), options.truth
    if options.annotations is not None:
        add_annotations(work, options.annotations)
    return work


def open_project(path: Path, options: Options | None = None, folders: Sequence[Path] = ()) -> Workspace:
    """Open the scenes of a project, wherever their images are now, with all that was drawn on them."""
    project, view, options = read_project(path), read_view(path), options or Options()
    work = _of_project(project, options, view, Finder([path.resolve().parent, *folders], Hashes()))
    work.project = path
    unused = [key for key in project.labels if key not in OWN_LABELS]
    train = project.commands.get("train", {})
    unused += [key for key in train if key not in OWN_TRAIN or "solver" in train]
    if unused:
        work.notes.append(f"The studio does not use what {path.name} says about {first_few(unused)}.")
    _draw_labels(work, project, options)
    return work


def _of_project(project: Project, options: Options, view: View, finder: Finder) -> Workspace:
    """Return the workspace of a project with its settings, and nothing drawn."""
    train = project.commands.get("train", {})
    settings = Settings.of_options(project.labels, {} if "solver" in train else train)
    recipes = options.recipes or project.recipes()
    if recipes is not None and options.recipes is None:
        settings, recipes = settings.without_ranks(recipes)
    project = replace(
        project,
        expressions=options.expressions or project.expressions,
        all_names=options.names or project.all_names,
        align=options.align or project.align,
    )
    collection, lost, moved = _located(project, options.drivers, view, finder)
    work = Workspace.of(collection, recipes, None, lost, finder.hashes)
    work.settings, work.auto = settings, train.get("objective") == AUTO
    work.mode, work.threshold, work.title = view.mode, view.threshold, view.title or work.title
    work.arguments, work.images = list(project.arguments()), view.scenes
    work.commands = {name: values for name, values in project.commands.items() if name != "train"}
    for k, name in enumerate(collection.names):
        if name in lost:
            work.labels[k] = SceneLabels(kept=SavedLabels({"file_name": name}, ()))
    if moved:
        work.notes.append(f"Images of {first_few(moved)} were moved, and found again by their content.")
    named = project.labels.get(TRUTH, view.truth)
    work.truth = options.truth or (project.located(str(named)) if named else _truth_beside(project, collection))
    _show_truth(work)
    return work


def _located(
    project: Project, drivers: Sequence[str], view: View, finder: Finder
) -> tuple[SceneCollection, dict[str, str], list[str]]:
    """Return the scenes of a project; why some cannot be opened, by name; and which were moved.

    Scenes that were there when the project was saved are looked for by the content of their images.
    """
    try:
        collection = project.open(drivers=drivers)
    except BimichiError:
        if not view.scenes or len(view.sources) != len(project.sources):
            raise
        names = project.names()
        computed = tuple(parse_expression(text) for text in project.expressions)
        given = None if names is None else tuple(names)
        collection = SceneCollection([], list(view.sources), view.many, given, project.align, tuple(drivers), computed)
    listed = {scene.name: scene for scene in collection.scenes}
    lost: dict[str, str] = {}
    moved: list[str] = []
    for name, saved in view.scenes.items():
        places = [(project.folder / file["path"]).resolve() for file in saved.files]
        edited = name in listed and places != [file.resolve() for file in listed[name].files]
        if edited or len(places) != len(project.sources):
            continue
        located = finder.locate(saved, project.folder)
        listed[name] = SceneFiles(name, located.files, tuple(source.bands for source in project.sources))
        if located.problem:
            lost[name] = located.problem
        elif located.moved:
            moved.append(name)
    scenes = list(listed.values()) if project.scenes else [listed[name] for name in sorted(listed)]
    return replace(collection, scenes=scenes, many=collection.many or len(scenes) > 1), lost, sorted(moved)


def _show_truth(work: Workspace) -> None:
    """Let scenes know the masks of the truth, as far as there are any."""
    collection = work.opened.collection
    try:
        masks = collection.companions(work.truth, TRUTH, partial=True) if work.truth else {}
    except (InvalidInputError, OSError):  # they are only looked at
        masks = {}
    for scene in work.opened.scenes:
        scene.truth = masks.get(scene.name)


def _truth_beside(project: Project, collection: SceneCollection) -> str | None:
    """Return the folder of masks that `bimichi draw` writes beside sources, if there is one for these scenes."""
    folder = project.located(TRUTH)
    named = any(TRUTH in Path(path).parts[-1:] for path in (*project.arguments(), *map(str, project.labels.values())))
    if named or not collection.many or not Path(folder).is_dir():
        return None
    stems = {path.stem for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES}
    return folder if stems & set(collection.names) else None


def _draw_labels(work: Workspace, project: Project, options: Options, discovered: bool = False) -> None:
    """Draw the labels of a project: its own, or those of a file that it names, which stays as it is.

    Masks that were `discovered` rather than named are the truth: a folder with images has them more often as that.
    """
    named = next(
        (project.located(str(project.labels[key])) for key in ("boxes", "labels") if key in project.labels), None
    )
    own = None if work.project is None else own_label_file(work.project, named)
    work.named = [] if named is None else folders_of([named]) if is_pattern(named) else [Path(named)]
    if own is not None:
        work.label_file = own
        _draw_saved(work, own)
    if options.annotations is not None:
        add_annotations(work, options.annotations)
    elif named is not None and own is None:
        if discovered and SceneTargets(named, work.opened.collection).masks:
            if work.truth is None:
                work.truth = named
                _show_truth(work)
        else:
            target = project.labels.get("target")
            add_annotations(work, named, target=None if target is None else str(target))


def _draw_saved(work: Workspace, path: Path) -> None:
    """Take over what was drawn; of scenes that cannot be used, it is kept as it is."""
    labels, kept = read_labels(path)
    by_name = {saved.name: saved for saved in (*kept, *labels)}
    store = work.opened
    for k, scene in enumerate(store.scenes):
        saved = by_name.pop(scene.name, None)
        if saved is None:
            continue
        if store.load(k) is None:
            work.labels[k] = SceneLabels(saved.revision, (), saved)
        else:
            work.labels[k] = SceneLabels(saved.revision, shapes_from(saved, scene.size, path))
    work.unmatched = tuple(by_name.values())


def add_annotations(
    work: Workspace, named: str | Path, add: bool = False, target: str | None = None
) -> dict[int, Shapes]:
    """Draw what an annotation file, of any format, says about the scenes; return what was drawn, by scene.

    Scenes that the file does not name stay as they are; others lose what was drawn on them, unless `add`.
    """
    store = work.store
    if store is None:
        raise InvalidInputError("Open scenes before labels.", code="scenes-empty")
    with collected_warnings() as texts:
        targets = SceneTargets(named, store.collection, target, named_only=True)
    drawn: dict[int, Shapes] = {}
    for k, scene in enumerate(store.scenes):
        if scene.name not in targets.named or store.load(k) is None:
            continue
        annotations = targets.of(scene.name, scene.placement)
        before = work.labels[k].shapes if add else ()
        shapes = shapes_of(annotations, scene.size, f"file-{work.labels[k].revision + 1}", target)
        drawn[k] = before + parse_shapes([shape.to_json() for shape in shapes], scene.size)
    work.notes += [*targets.notes, *texts]
    work.replace(drawn)
    return drawn


def choose_project(work: Workspace, folder: Path) -> Workspace:
    """Name a project file in a folder for new scenes; if they have one there, return what it holds instead."""
    for number in range(1, MOST_PROJECTS):
        path = folder / (FILE_NAME if number == 1 else f"bimichi-{number}.toml")
        if not path.exists():
            work.project = path
            return work
        again = gone_on(work, path)
        if again is not None:
            return again
    raise InvalidInputError(f"{folder} has too many projects; name one with --project.", code="projects-many")


def gone_on(work: Workspace, path: Path) -> Workspace | None:
    """Return what a project file holds, if it is about the same images and sources as a new workspace."""
    new = work.opened
    try:
        again = open_project(path, Options(drivers=new.collection.drivers))
        own = again.opened
        files = [[file.resolve() for scene in store.scenes for file in scene.files.files] for store in (own, new)]
        named = new.collection.given is not None and own.source_names != new.source_names
        if files[0] != files[1] or named or (new.recipes_given and own.recipes != new.recipes):
            return None
    except BimichiError:
        return None
    if any(labels.shapes for labels in work.labels):  # labels that were given now are newer
        again.replace({k: labels.shapes for k, labels in enumerate(work.labels) if labels.shapes})
    for scene, added in zip(own.scenes, new.scenes, strict=True):
        scene.truth = scene.truth or added.truth
    again.truth = again.truth or work.truth
    again.notes.append(f"Went on with {path.name}, saved at {read_view(path).saved}.")
    return again


def folders_of(paths: Sequence[str]) -> list[Path]:
    """Return the folders in which the files of arguments are."""
    folders = []
    for text in paths:
        path = Path(selected_bands(text)[0])
        while is_pattern(str(path)):
            path = path.parent
        folders.append(path if path.is_dir() else path.parent)
    return [folder.resolve() for folder in dict.fromkeys(folders)]


STREETS, SIZE = 3, (360, 480)


def as_files(sources: Any) -> tuple[list[str], list[str] | None]:
    """Return arrays in memory as files in a new folder, so that a project can name them; paths as they are.

    The second is the names of the sources, None if the files name them.
    """
    collection = open_scenes(sources)
    scene = collection[0]
    folder = Path(tempfile.mkdtemp(prefix="bimichi-studio-")) / "sources"
    folder.mkdir()
    files = []
    for k, image in enumerate(scene.read()):
        np.save(folder / f"source{k + 1}.npy", image)
        files.append(str(folder / f"source{k + 1}.npy"))
    return files, list(scene.source_names)


def drawn_streets() -> Workspace:
    """Draw streets at night into a new folder, and open them: something to try the studio with."""
    folder = Path(tempfile.mkdtemp(prefix="bimichi-studio-"))
    for kind in ("colour", "thermal", "truth"):
        (folder / kind).mkdir()
    for seed in range(STREETS):
        scene = street(*SIZE, random_state=seed, n_segments=50)
        name = f"street-{seed + 1}.png"
        assert scene.rgb is not None
        assert scene.thermal is not None
        assert scene.truth is not None  # drawn scenes have all three
        write_image(folder / "colour" / name, scene.rgb)
        write_image(folder / "thermal" / name, scene.thermal)
        write_image(folder / "truth" / name, scene.truth.astype("uint8"))
    paths = [str(folder / "thermal"), str(folder / "colour"), str(folder / "colour")]
    options = Options(names=["thermal", "grey", "dark"], recipes=["gamma_correction", "equalize", "adaptive_threshold"])
    work = open_workspace(paths, replace(options, truth=str(folder / "truth")))
    work.title, work.project = "Streets at night", folder / FILE_NAME
    return work
