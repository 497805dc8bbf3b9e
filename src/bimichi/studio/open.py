"""Workspaces from what a user names: a project, a folder, a project file of `bimichi init`, or images."""

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
from bimichi.io.project import FILE_NAME, Project, discover, read_project
from bimichi.io.write import write_image
from bimichi.sources.bands import first_few
from bimichi.sources.expressions import parse_expression
from bimichi.studio.labels import Shapes, doubts, parse_shapes, shapes_of
from bimichi.studio.project import Finder, Hashes, StudioProject, exists, is_studio, read_studio
from bimichi.studio.settings import MODES, Settings
from bimichi.studio.workspace import SceneLabels, Workspace

NAME = "studio.json"
MOST_PROJECTS = 100
PATHS = ("boxes", "labels", "truth")
"""What a project file names of labels that is shown in a studio."""
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
    target: str | None = None
    """The label, or value of masks, that is the target; others are left out."""

    def open(self, sources: Any) -> SceneCollection:
        """Open scenes."""
        computed = [parse_expression(text) for text in self.expressions]
        how: Any = {"align": self.align, "drivers": self.drivers, "computed": computed}
        return open_scenes(sources, self.names, limit=MAX_ADDITIVE_SOURCES, **how)


def open_workspace(paths: Sequence[str], options: Options, folders: Sequence[Path] = ()) -> Workspace:
    """Return the workspace of a project, a folder or images; `folders` are searched for images that were moved."""
    with doubts() as told:
        work = _opened(paths, options, folders)
    work.notes += told
    return work


def _opened(paths: Sequence[str], options: Options, folders: Sequence[Path]) -> Workspace:
    alone = Path(paths[0]) if len(paths) == 1 and not is_pattern(paths[0]) else None
    if alone is not None and alone.is_file() and is_studio(alone):
        return open_studio(read_studio(alone), folders, options.recipes)
    if alone is not None and alone.is_file() and alone.suffix == ".toml":
        return _from_project(read_project(alone), options)
    if alone is not None and alone.is_dir() and not (alone / ".zgroup").exists() and alone.suffix != ".zarr":
        return _from_folder(alone, options, folders)
    return _made(options.open(list(paths)), options, paths)


def _from_folder(folder: Path, options: Options, folders: Sequence[Path]) -> Workspace:
    """Open the project in a folder, or the images that seem to be in it."""
    projects = [path for path in sorted(folder.glob("*.json")) if is_studio(path)]
    if len(projects) > 1:
        shown = first_few([path.name for path in projects])
        raise InvalidInputError(f"{folder} holds several projects: {shown}. Name one of them.", code="projects-many")
    if projects:
        return open_studio(read_studio(projects[0]), folders, options.recipes)
    if (folder / FILE_NAME).is_file():
        return _from_project(read_project(folder), options)
    found = discover(folder)
    if found.project is None:
        held = f"It holds {first_few(found.unknown)}." if found.unknown else "It is empty."
        raise InvalidInputError(f"Found no images of sources in {folder}. {held}", code="images-missing")
    work = _from_project(found.project, options, found=True)
    work.notes += [f"Found {line}." for line in found.found]
    if found.unknown:
        work.notes.append(f"Not used: {first_few(found.unknown)}.")
    return work


def _from_project(project: Project, options: Options, found: bool = False) -> Workspace:
    """Open the sources of a project, with its labels; masks that were `found` rather than named as labels are truth."""
    given = replace(
        options,
        names=options.names or project.names(),
        recipes=options.recipes or project.recipes(),
        expressions=options.expressions or project.expressions,
    )
    labels = {key: project.located(str(value)) for key, value in project.labels.items() if key in PATHS}
    collection = given.open(project.arguments())
    named = labels.get("boxes") or labels.get("labels")
    if given.truth is None:
        given = replace(given, truth=labels.get("truth") or _truth_beside(project, collection))
    if named is not None and given.annotations is None:
        if found and _is_mask(named, collection):
            given = replace(given, truth=given.truth or named)
        else:
            target = project.labels.get("target")
            given = replace(given, annotations=named, target=None if target is None else str(target))
    work = _made(collection, given, project.arguments())
    if "rest" in project.labels:
        work.settings = work.settings.changed({"rest": project.labels["rest"]})
    unused = [key for key in project.labels if key not in (*PATHS, "target", "rest")]
    if unused:
        work.notes.append(f"The studio does not use what {FILE_NAME} says about {first_few(unused)}.")
    return work


def _truth_beside(project: Project, collection: SceneCollection) -> str | None:
    """Return the folder of masks that `bimichi draw` writes beside sources, if there is one for these scenes."""
    folder = project.located(TRUTH)
    named = any(TRUTH in Path(one).parts[-1:] for one in (*project.arguments(), *map(str, project.labels.values())))
    if named or not collection.many or not Path(folder).is_dir():
        return None
    known = {path.stem for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES}
    return folder if known & set(collection.names) else None


def _is_mask(named: str, collection: SceneCollection) -> bool:
    """Whether annotations are masks, which a folder with images more often has as the truth than as labels."""
    return bool(SceneTargets(named, collection).masks)


def _made(collection: SceneCollection, options: Options, arguments: Sequence[str]) -> Workspace:
    truth = collection.companions(options.truth, "truth", partial=True) if options.truth else None
    work = Workspace.of(collection, options.recipes, truth)
    work.arguments = list(arguments)
    if options.annotations is not None:
        add_annotations(work, options.annotations, target=options.target)
    return work


def add_annotations(
    work: Workspace, named: str | Path, add: bool = False, target: str | None = None
) -> dict[int, Shapes]:
    """Draw what an annotation file, of any format, says about the scenes; return what was drawn, by scene.

    Scenes that the file does not name stay as they are; others lose what was drawn on them, unless `add`.
    """
    store = work.store
    if store is None:
        raise InvalidInputError("Open scenes before labels.", code="scenes-empty")
    with doubts() as told:
        targets = SceneTargets(named, store.collection, target, named_only=True)
    drawn: dict[int, Shapes] = {}
    for k, scene in enumerate(store.scenes):
        if scene.name not in targets.named or store.load(k) is None:
            continue
        found = targets.of(scene.name, scene.placement)
        before = work.labels[k].shapes if add else ()
        made = shapes_of(found, scene.size, f"file-{work.labels[k].revision + 1}", target)
        checked = parse_shapes([shape.to_json() for shape in made], scene.size)
        drawn[k] = before + checked
    work.notes += [*targets.notes, *told]
    work.replace(drawn)
    return drawn


def open_studio(
    project: StudioProject, folders: Sequence[Path] = (), recipes: Sequence[str] | None = None
) -> Workspace:
    """Open the scenes of a project file, wherever their images are now, with all that was drawn on them."""
    folder, hashes, sources = project.path.resolve().parent, Hashes(), project.content["sources"]
    finder = Finder([folder, *folders], hashes)
    located = {scene.name: finder.locate(scene, folder) for scene in project.scenes}
    try:
        collection = SceneCollection(
            [SceneFiles(scene.name, located[scene.name].files, scene.picks) for scene in project.scenes],
            [str(name) for name in sources["labels"]],
            bool(sources["many"]),
            tuple(map(str, sources["names"])) if sources["given"] else None,
            bool(sources["align"]),
            tuple(map(str, sources["drivers"])),
            tuple(parse_expression(str(text)) for text in sources["expressions"]),
        )
        lost = {name: one.problem for name, one in located.items() if one.problem}
        work = Workspace.of(collection, recipes or [str(recipe) for recipe in sources["recipes"]], None, lost, hashes)
        work.settings = Settings().changed(project.content["settings"])
        work.mode = project.content["mode"] if project.content["mode"] in MODES else "live"
        work.set_threshold(project.content["threshold"])
        work.title = str(project.content["title"])[:200]
        arguments = [str(folder / str(one)) for one in sources["arguments"]]
        masks = {name: folder / str(path) for name, path in dict(project.content.get("truth", {})).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The project file {project.path} is damaged: {error}.", code=getattr(error, "code", "project-damaged")
        ) from error
    work.project = project.path
    work.arguments = arguments
    assert work.store is not None  # as it was made just now
    for scene in work.store.scenes:
        mask = masks.get(scene.name)
        scene.truth = mask if mask is not None and exists(mask) and mask.is_file() else None
    _draw_saved(work, project)
    moved = sorted(name for name, one in located.items() if one.moved and not one.problem)
    if moved:
        work.notes.append(f"Images of {first_few(moved)} were moved, and found again by their content.")
    return work


def _draw_saved(work: Workspace, project: StudioProject) -> None:
    """Take over what was drawn; of scenes that cannot be opened, it is kept as it is."""
    store = work.store
    assert store is not None  # as it was made just now
    for k, (scene, saved) in enumerate(zip(store.scenes, project.scenes, strict=True)):
        revision = int(saved.entry["revision"])
        if store.load(k) is None:
            work.labels[k] = SceneLabels(revision, (), saved.entry)
            continue
        try:
            shapes = parse_shapes(saved.shapes(scene.placement), scene.size)
        except BimichiError as error:
            raise InvalidInputError(
                f"{project.path}, scene {scene.name!r}: {error}",
                code=error.code,
                argument=error.argument,
                value=error.value,
            ) from error
        work.labels[k] = SceneLabels(revision, shapes)


def choose_project(work: Workspace, folder: Path) -> Workspace:
    """Name a project file in a folder for new scenes; if they have one there, return what it holds instead."""
    for number in range(1, MOST_PROJECTS):
        path = folder / (NAME if number == 1 else f"studio-{number}.json")
        if not path.exists():
            work.project = path
            return work
        again = gone_on(work, path)
        if again is not None:
            return again
    raise InvalidInputError(f"{folder} has too many projects; name one with --project.", code="projects-many")


def gone_on(work: Workspace, path: Path) -> Workspace | None:
    """Return what a project file holds, if it is about the same images and sources as a new workspace."""
    assert work.store is not None  # or it would not be asked for
    try:
        found = read_studio(path)
        folder = path.resolve().parent
        files = [(folder / file["path"]).resolve() for scene in found.scenes for file in scene.files]
        if files != [file.resolve() for scene in work.store.collection.scenes for file in scene.files]:
            return None
        again = open_studio(found)
        assert again.store is not None  # as it was opened
        named, made = work.store.collection.given is not None, work.store.recipes_given
        if named and again.store.source_names != work.store.source_names:
            return None
        if made and again.store.recipes != work.store.recipes:
            return None
    except BimichiError:
        return None
    if any(one.shapes for one in work.labels):  # labels that were given now are newer
        again.replace({k: one.shapes for k, one in enumerate(work.labels) if one.shapes})
    for scene, new in zip(again.store.scenes, work.store.scenes, strict=True):
        scene.truth = scene.truth or new.truth
    again.notes.append(f"Went on with {path.name}, saved at {found.saved}.")
    return again


def folders_of(paths: Sequence[str]) -> list[Path]:
    """Return the folders in which the files of arguments are."""
    found = []
    for text in paths:
        path = Path(selected_bands(text)[0])
        while is_pattern(str(path)):
            path = path.parent
        found.append(path if path.is_dir() else path.parent)
    return [folder.resolve() for folder in dict.fromkeys(found)]


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
    work.title, work.project = "Streets at night", folder / NAME
    return work
