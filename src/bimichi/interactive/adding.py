"""More scenes of the same sources for a studio in which some are open already."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.collecting import MAX_ADDITIVE_SOURCES, SceneCollection, SceneFiles, collect_scenes
from bimichi.imaging.discovering import discover
from bimichi.imaging.projects import FILE_NAME, read_project
from bimichi.interactive.project import is_studio
from bimichi.interactive.scenes import SceneStore, StudioScene


@dataclass(frozen=True)
class Added:
    """Scenes that fit to those that are open, and what is to be said about them."""

    scenes: list[StudioScene]
    notes: list[str] = field(default_factory=list)


def fitting_scenes(store: SceneStore, paths: Sequence[str]) -> Added:
    """Return the scenes of a folder, or of one file per source, if they have the sources of the open ones.

    Every scene is read, so that none is added that could not be learned from.
    """
    found = _found(store.collection, paths)
    order = _order(store.collection, found, paths)
    known = {_resolved(scene.files) for scene in store.collection.scenes}
    picks, names, notes = store.collection.scenes[0].picks, {one.name for one in store.scenes}, list[str]()
    scenes: list[SceneFiles] = []
    for scene in found.scenes:
        files = tuple(scene.files[k] for k in order)
        if _resolved(files) in known:
            continue
        name = _free(scene.name, names)
        names.add(name)
        scenes.append(SceneFiles(name, files, picks))
    if not scenes:
        raise InvalidInputError(f"All scenes of {first_few(list(paths))} are open already.")
    if len(scenes) < len(found.scenes):
        notes.append(f"{len(found.scenes) - len(scenes)} of {len(found.scenes)} scenes were open already.")
    return Added(_read(store, scenes), notes)


def _read(store: SceneStore, scenes: Sequence[SceneFiles]) -> list[StudioScene]:
    """Return scenes after they have been read and compared with the first open one, as strictly as in training."""
    both = replace(store.collection, scenes=[store.collection.scenes[0], *scenes], many=True)
    fresh = SceneStore(both, store.recipes, hashes=store.hashes)
    for k, one in enumerate(fresh.scenes[1:], 1):
        if fresh.load(k) is None:
            raise InvalidInputError(f"Nothing was added, as scene {one.name!r} does not fit. {one.problems[-1]}")
    return fresh.scenes[1:]


def _found(own: SceneCollection, paths: Sequence[str]) -> SceneCollection:
    """Return the files of scenes: in folders named like those of the open sources, or as a new studio finds them."""
    alone = Path(paths[0]) if len(paths) == 1 else None
    if alone is None or not alone.is_dir():
        if alone is not None and is_studio(alone):
            raise InvalidInputError(f"{alone} is a project of its own; open it instead of adding it.")
        return collect_scenes(list(paths), MAX_ADDITIVE_SOURCES)
    alike = [alone / file.resolve().parent.name for file in own.scenes[0].files]
    if all(folder.is_dir() for folder in alike):
        return replace(collect_scenes(list(map(str, alike)), MAX_ADDITIVE_SOURCES), source_names=own.source_names)
    project = read_project(alone) if (alone / FILE_NAME).is_file() else discover(alone).project
    if project is None:
        raise InvalidInputError(f"Found no images of sources in {alone}.")
    return collect_scenes(project.arguments(), MAX_ADDITIVE_SOURCES)


def _order(own: SceneCollection, found: SceneCollection, paths: Sequence[str]) -> list[int]:
    """Return which file of a new scene is that of each open source, by the names of files or folders."""
    if found.source_names == own.source_names or len(own.source_names) == len(found.source_names) == 1:
        return list(range(len(own.source_names)))
    files = own.scenes[0].files
    wanted = [own.source_names[files.index(file)] for file in files]  # a file may be that of several sources
    missing = [name for name in wanted if name not in found.source_names]
    if missing or (len(paths) > 1 and set(found.source_names) - set(wanted)):
        raise InvalidInputError(
            f"Added scenes need the sources of those that are open, {first_few(list(dict.fromkeys(wanted)))}, by the "
            f"names of their files or folders; these images have {first_few(found.source_names)}. Rename them, or open "
            "them as a project of their own."
        )
    return [found.source_names.index(name) for name in wanted]


def _resolved(files: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(file.resolve() for file in files)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other scene has."""
    numbers = (f"{name} ({number})" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbers if one not in taken)
