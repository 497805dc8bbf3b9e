"""Find out by looking what a folder holds: sources, masks and annotation files, as a project."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.imaging.annotations import format_of
from bimichi.imaging.bands import Image, first_few
from bimichi.imaging.finding import SUFFIXES
from bimichi.imaging.projects import FILE_NAME, Project, ProjectSource
from bimichi.imaging.reading import read_image
from bimichi.imaging.recipes import default_recipe

MOST_FILES = 50_000
DEPTH = 4  # of folders that are looked into
MOST_CLASSES = 32  # distinct values of an image that may be a mask
TARGETS = re.compile(
    r"(?i)(^|[^a-z])(labels?|masks?|truth|gt|annotations?|annot|anno|seg(mentation)?s?|classes)([^a-z]|$)"
)
PARTS = re.compile(r"(.+?)[_\-. ]([A-Za-z0-9]+)")  # a scene, and the source at the end of a name


@dataclass
class Discovery:
    """What was found: a project, sentences about it, and files that were not understood."""

    project: Project | None = None
    found: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """What a person should decide, for the file."""


@dataclass(frozen=True)
class _Group:
    """Images that belong to one source or are masks: a path or pattern for the project file, and files by scene."""

    path: str
    name: str
    files: dict[str, Path]


def discover(folder: Path) -> Discovery:
    """Look at the files of a folder, and at some of their pixels, and return what they seem to be.

    Recognised are folders of equally named images; images in one folder whose names end in their source (``7_ir.png``,
    ``7_vi.png``); single files of one scene; masks, by their name or since they have few values; annotation files of a
    known format, one for all or one per scene. Nothing is written.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; name one that holds images.")
    images, others = _files(folder)
    result = Discovery()
    groups = (
        _by_leaf(folder, images) or _by_folder(folder, images) or _by_ending(folder, images) or _single(folder, images)
    )
    if not groups:
        result.unknown = _shortened(folder, [*images, *others])
        return result
    looked: dict[str, Image] = {}
    for group in groups:
        try:
            looked[group.path] = read_image(next(iter(group.files.values())))
        except InvalidInputError as error:
            result.unknown.append(f"{group.path} ({error})")
    groups = [group for group in groups if group.path in looked]
    masks = [group for group in groups if _is_mask(group, looked[group.path])]
    sources = [group for group in groups if group not in masks]
    used = {path for group in groups for path in group.files.values()}
    labels = _annotations(folder, groups, others, used, result)
    _describe(sources, masks, looked, labels, result)
    if sources:
        result.project = Project(_project_sources(sources, looked), labels=labels, folder=folder)
    result.unknown += _shortened(folder, [path for path in [*images, *others] if path not in used])
    return result


def _shortened(root: Path, files: Sequence[Path]) -> list[str]:
    """Return the names of files, or of their folder where it holds many of them."""
    by_folder: dict[Path, list[str]] = defaultdict(list)
    for path in files:
        by_folder[path.parent].append(path.relative_to(root).as_posix())
    return [
        text
        for folder, names in sorted(by_folder.items())
        for text in ([f"{folder.relative_to(root).as_posix()} ({len(names)} files)"] if len(names) > 3 else names)
    ]


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    images: list[Path] = []
    others: list[Path] = []
    for path in _walk(folder, DEPTH):
        (images if path.suffix.lower() in SUFFIXES else others).append(path)
        if len(images) + len(others) > MOST_FILES:
            raise InvalidInputError(f"{folder} holds more than {MOST_FILES:,} files; name a folder with fewer.")
    return images, [path for path in others if path.name != FILE_NAME and not path.name.endswith(".aux.xml")]


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink() and depth:
            yield from _walk(path, depth - 1)
        elif path.is_file():
            yield path


def _by_folder(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return the largest set of folders with images of the same names, one group per folder."""
    folders: dict[Path, dict[str, Path]] = defaultdict(dict)
    for path in images:
        folders[path.parent].setdefault(path.stem, path)
    alike: dict[frozenset[str], list[Path]] = defaultdict(list)
    for folder, files in folders.items():
        if folder != root:
            alike[frozenset(files)].append(folder)
    best = max(alike.values(), key=lambda some: (len(some), len(folders[some[0]])), default=[])
    if len(best) < 2:
        return []
    paths = {folder: folder.relative_to(root).as_posix() for folder in best}
    distinct = len({folder.name for folder in best}) == len(best)
    names = [folder.name if distinct else paths[folder].replace("/", "_") for folder in best]
    return [_Group(paths[folder], name, folders[folder]) for folder, name in zip(best, names, strict=True)]


def _by_leaf(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return groups by the name of the innermost folder, as in set/video/lwir, if each outer folder has all of them."""
    leaves: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in images:
        outer = path.relative_to(root).parent.parent
        leaves[path.parent.name]["_".join([*outer.parts, path.stem])] = path
    parents = {path.parent.parent for path in images}
    if len(leaves) < 2 or len(parents) < 2 or len({frozenset(files) for files in leaves.values()}) != 1:
        return []
    patterns = {name: _pattern(root, list(files.values())) for name, files in leaves.items()}
    if not all(patterns.values()):
        return []
    return [_Group(str(patterns[name]), name, files) for name, files in leaves.items()]


def _pattern(root: Path, files: Sequence[Path]) -> str | None:
    """Return the pattern that finds files, None if they lie at several depths or have several suffixes."""
    parts = [path.relative_to(root).parts for path in files]
    if len({len(some) for some in parts}) != 1 or len({path.suffix for path in files}) != 1:
        return None
    folders = [names[0] if len(set(names)) == 1 else "*" for names in zip(*(some[:-1] for some in parts), strict=True)]
    return "/".join([*folders, f"*{files[0].suffix}"])


def _by_ending(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return groups of one folder whose names end in the source, if every scene has the same sources."""
    for folder in sorted({path.parent for path in images}):
        endings: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)
        for path in (path for path in images if path.parent == folder):
            parts = PARTS.fullmatch(path.stem)
            if parts is not None:
                endings[path.stem[len(parts[1]) :], path.suffix].setdefault(parts[1], path)
        most = max((len(files) for files in endings.values()), default=0)
        full = {ending: files for ending, files in endings.items() if len(files) == most}
        if len(full) < 2 or len({frozenset(files) for files in full.values()}) != 1:
            continue
        inside = folder.relative_to(root).as_posix()
        before = "" if inside == "." else f"{inside}/"
        return [
            _Group(f"{before}*{end}{suffix}" if most > 1 else f"{before}{scene}{end}{suffix}", end.strip("_-. "), files)
            for (end, suffix), files in full.items()
            for scene in [next(iter(files))]
        ]
    return []


def _single(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return the files of the uppermost folder that has images, as one scene."""
    if not images:
        return []
    upper = min((path.parent for path in images), key=lambda folder: len(folder.parts))
    files = [path for path in images if path.parent == upper]
    return [_Group(path.relative_to(root).as_posix(), path.stem, {"": path}) for path in files]


def _is_mask(group: _Group, image: Image) -> bool:
    """Whether images are masks of targets: by their name, or since they are of one band with few whole values."""
    if image.ndim != 2:
        return False
    if TARGETS.search(group.name):
        return True
    if image.dtype.kind == "f" or image.size < 256:
        return image.dtype == np.bool_
    values = np.unique(image)
    return len(values) <= MOST_CLASSES and (len(values) <= 2 or values.max() < MOST_CLASSES)


def _annotations(
    folder: Path, groups: Sequence[_Group], others: Sequence[Path], used: set[Path], result: Discovery
) -> dict[str, object]:
    """Return options for annotation files: one per scene in a folder, or one for all scenes."""
    first = groups[0].files
    by_suffix: dict[str, list[Path]] = defaultdict(list)
    for path in others:
        by_suffix[path.suffix].append(path)
    for files in by_suffix.values():
        stems = {path.stem for path in files}
        given = _pattern(folder, files)
        if given is None or len(first) < 2 or not all({scene, path.stem} & stems for scene, path in first.items()):
            continue
        known = format_of(files[0])
        result.found.append(
            f"annotations, one file per scene: {given} ({known.name if known else 'of an unknown format'})"
        )
        if known:
            used.update(files)
            return {"labels": given}
    for files in by_suffix.values():
        known = format_of(files[0]) if len(files) == 1 else None
        if known:
            used.update(files)
            result.found.append(f"annotations: {files[0].relative_to(folder).as_posix()} ({known.name})")
            return {"boxes": files[0].relative_to(folder).as_posix()}
    return {}


def _describe(
    sources: Sequence[_Group],
    masks: Sequence[_Group],
    looked: dict[str, Image],
    labels: dict[str, object],
    result: Discovery,
) -> None:
    """Add sentences, and what masks mean: the first says where targets are, or, beside annotations, is scored by."""
    for group in sources:
        n, image = len(group.files), looked[group.path]
        bands = 1 if image.ndim == 2 else image.shape[2]
        kind = f"{bands} bands" if bands > 1 else "one band"
        size = f", {image.shape[1]} x {image.shape[0]} {image.dtype.name}"
        result.found.append(f"source {group.name}: {group.path} ({n} scene{'s' * (n > 1)}, {kind}{size})")
    for group in masks:
        values = first_few([str(value) for value in np.unique(looked[group.path])[:MOST_CLASSES].tolist()])
        result.found.append(f"masks: {group.path} (values {values} in the first)")
    if masks:
        labels["truth" if labels else "labels"] = masks[0].path
        if len(masks) > 1:
            result.hints.append(f"Other masks: {', '.join(group.path for group in masks[1:])}.")
        image = looked[masks[0].path]
        if image.min() < 0:
            result.hints.append(
                "Values below 0 in the masks are unknown: bags there are left out unless they are positive."
            )
        if len(np.unique(image[image > 0])) > 1:
            result.hints.append('The masks have several classes; choose the target in [labels], as in target = "2".')
    if not labels:
        result.hints.append('Nothing says where targets are; add boxes = "FILE" or labels = "MASKS" in [labels].')


def _project_sources(sources: Sequence[_Group], looked: dict[str, Image]) -> list[ProjectSource]:
    """Return sources with names, unless bands give them; and with recipes if one is in colour, which needs one."""
    images = [looked[group.path] for group in sources]
    colours = [image.shape[2:] == (3,) for image in images]
    banded = any(image.ndim == 3 and image.shape[2] != 3 for image in images)
    if banded or len(sources) == 1:
        return [ProjectSource(group.path) for group in sources]
    recipes = [(default_recipe(image.dtype),) if any(colours) else () for image in images]
    pairs = zip(sources, recipes, strict=True)
    return [ProjectSource(group.path, names=(group.name,), recipes=recipe) for group, recipe in pairs]
