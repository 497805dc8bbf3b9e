"""Which image of an annotation file is which scene."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.collecting import SceneFiles

PATH, NAME, STEM = range(3)


def match_images(images: Iterable[str], scenes: Sequence[SceneFiles], where: str) -> dict[str, list[str]]:
    r"""Return the images of each scene, by its name, as an annotation file names them.

    An image belongs to the scene that has a file of its path, else of its name, else of its name without suffix; the
    path may be longer or shorter than the one given, with / or with \ between folders. Images of no scene are left
    out. What fits several scenes, or several images that fit one, is an error that lists them.
    """
    index = _index(scenes)
    by_scene: dict[str, list[tuple[int, str]]] = {}
    for image in images:
        level, fitting = _fitting(image, index)
        if len(fitting) > 1:
            raise InvalidInputError(
                f"{where}: the image {image!r} may be any of the scenes {first_few(sorted(map(repr, fitting)))}. Name "
                "it by its path, with as many folders as it takes."
            )
        for scene in fitting:
            by_scene.setdefault(scene, []).append((level, image))
    return {scene: _best(scene, found, where) for scene, found in by_scene.items()}


def _best(scene: str, found: list[tuple[int, str]], where: str) -> list[str]:
    """Return the images that fit best; among several paths that merely end alike none is guessed."""
    level = min(fit for fit, _ in found)
    best = sorted(image for fit, image in found if fit == level)
    if len(best) > 1 and level != PATH and any("/" in image or "\\" in image for image in best):
        raise InvalidInputError(
            f"{where}: the images {first_few([repr(image) for image in best])} may all be scene {scene!r}. Name the "
            "sources by paths with the same folders, or remove the other images from the file."
        )
    return best


Index = tuple[Mapping[str, list[tuple[PurePosixPath, str]]], Mapping[str, set[str]], Mapping[str, set[str]]]


def _index(scenes: Sequence[SceneFiles]) -> Index:
    """Return files by name, with their scene; and scenes by the names of files, and by all aliases."""
    paths: dict[str, list[tuple[PurePosixPath, str]]] = {}
    names: dict[str, set[str]] = {}
    stems: dict[str, set[str]] = {}
    for scene in scenes:
        for file in scene.files:
            paths.setdefault(file.name, []).append((PurePosixPath(Path(file).absolute().as_posix()), scene.name))
            names.setdefault(file.name, set()).add(scene.name)
        for alias in scene.aliases:
            stems.setdefault(alias, set()).add(scene.name)
    return paths, names, stems


def _fitting(image: str, index: Index) -> tuple[int, set[str]]:
    paths, names, stems = index
    path = PurePosixPath(image.strip().replace("\\", "/"))
    parts = [part for part in path.parts if part not in ("/", ".", "..")]
    if len(parts) > 1:
        lengths: dict[str, int] = {}
        for file, scene in paths.get(path.name, []):
            ends = takewhile(lambda pair: pair[0] == pair[1], zip(parts[::-1], file.parts[::-1], strict=False))
            same = len(list(ends))
            if same > 1:
                lengths[scene] = max(same, lengths.get(scene, 0))
        best = {scene for scene, length in lengths.items() if length == max(lengths.values())}
        if best:
            return PATH, best
    if path.name in names:
        return NAME, names[path.name]
    exact = stems.get(image) or stems.get(path.name) or stems.get(path.stem) or set()
    return STEM, exact
