"""From SOURCES on the command line to sets of image files.

One argument is one source. A file holds it for one scene; a folder, or a quoted pattern, for many scenes, which pair up
by name: that of the file without its ending, or what the wildcards of the pattern stand for. A single argument names
files of several bands, each band a source.
"""

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bimichi.errors import InvalidInputError

__all__ = ["MAX_ADDITIVE_SOURCES", "MAX_SOURCES", "ImageSet", "ImageSets", "find_sets"]

SUFFIXES = (".jpeg", ".jpg", ".npy", ".png", ".tif", ".tiff")
MAX_SOURCES = 14
"""What a bi-capacity may have."""

MAX_ADDITIVE_SOURCES = 30
"""What a 2-additive one may have here; more arguments are rather files of one pattern."""

ADDITIVE = f" (`bimichi train --additivity 2` takes up to {MAX_ADDITIVE_SOURCES})"

WILDCARD = re.compile(r"(?:\*|\?|\[[^\]]+\])+")


@dataclass(frozen=True)
class ImageSet:
    """The files of one scene: one a source, or a single one of several bands."""

    name: str
    files: tuple[Path, ...]

    @property
    def aliases(self) -> set[str]:
        """What tables may call it: its name, or any of its files, with or without ending."""
        names = {self.name} | {file.stem for file in self.files}
        return names | {f"{name}{suffix}" for name in names for suffix in SUFFIXES}


@dataclass(frozen=True)
class ImageSets:
    """All scenes, what their sources are called, and whether folders or patterns were given."""

    sets: list[ImageSet]
    source_names: list[str]
    many: bool

    @property
    def scenes(self) -> list[str]:
        """Names of the scenes."""
        return [one.name for one in self.sets]

    @property
    def files(self) -> list[Path]:
        """All files, each once."""
        return list(dict.fromkeys(file for one in self.sets for file in one.files))

    def companions(self, given: str, option: str) -> list[Path]:
        """Return one further file for each scene: a file for one, a folder or a pattern for many."""
        if not self.many:
            return [Path(given)]
        if not _is_many(given):
            raise InvalidInputError(f"{option} must be a folder or a pattern, as the sources are, got {given}.")
        found = _found(given)
        missing = [one.name for one in self.sets if one.name not in found]
        if missing:
            raise InvalidInputError(f"{option} {given} has no file for {_listed(missing)}; it has {_listed(found)}.")
        return [found[one.name] for one in self.sets]


def find_sets(sources: Sequence[str], limit: int = MAX_SOURCES) -> ImageSets:
    """Find the files that SOURCES name, and pair them up.

    Parameters
    ----------
    sources : sequence of str
        Files, or folders and patterns.
    limit : int
        How many there may be.
    """
    if len(sources) > limit:
        raise InvalidInputError(
            f"{len(sources)} sources, one an argument, are more than {limit}{'' if limit > MAX_SOURCES else ADDITIVE}. "
            "Quote patterns, else the shell replaces them by all their files."
        )
    many = [_is_many(source) for source in sources]
    if not any(many):
        return _one_scene(tuple(map(Path, sources)))
    names = _distinct([_source_name(source) for source in sources])
    if not all(many):
        raise InvalidInputError(
            f"{sources[many.index(False)]} is a file, but {sources[many.index(True)]} a folder or a pattern. "
            "Give files for one scene, or a folder or a pattern a source for many."
        )
    found = [_found(source) for source in sources]
    scenes = sorted(set().union(*found))
    for scene in scenes:
        for source, files_of in zip(sources, found, strict=True):
            if scene not in files_of:
                raise InvalidInputError(
                    f"Scene {scene!r} has no file in {source}, but {next(f[scene] for f in found if scene in f)}. "
                    "Every scene needs all its sources; names pair them up."
                )
    return ImageSets([ImageSet(s, tuple(files[s] for files in found)) for s in scenes], names, True)


def _one_scene(files: tuple[Path, ...]) -> ImageSets:
    """Name the sources of one scene by their files, or, as in ir/7.png and vi/7.png, by the folders of these."""
    stems, folders = [file.stem for file in files], [file.resolve().parent.name for file in files]
    if len(set(stems)) == 1 and len(set(folders)) == len(files):
        return ImageSets([ImageSet(stems[0], files)], folders if len(files) > 1 else stems, False)
    return ImageSets([ImageSet(folders[0] or "scene", files)], _distinct(stems), False)


def _is_many(source: str) -> bool:
    return Path(source).is_dir() or (WILDCARD.search(source) is not None and not Path(source).exists())


def _found(source: str) -> Mapping[str, Path]:
    """Files of a folder or a pattern, by scene."""
    if Path(source).is_dir():
        files = [p for p in Path(source).iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith(".")]
        pairs = [(file.stem, file) for file in sorted(files)]
        what = f"image files ({', '.join(SUFFIXES)})"
    else:
        if "**" in source:
            raise InvalidInputError(f"{source}: ** is not supported; write one * a folder.")
        files = [Path(name) for name in sorted(glob.glob(source)) if Path(name).is_file()]  # noqa: PTH207
        pairs = [(_matched(source, file), file) for file in files]
        what = "files"
    if not pairs:
        raise InvalidInputError(f"{source} has no {what}.")
    by_scene: dict[str, Path] = {}
    for scene, file in pairs:
        if scene in by_scene:
            raise InvalidInputError(f"{by_scene[scene]} and {file} are both of scene {scene!r}; leave out one of them.")
        by_scene[scene] = file
    return by_scene


def _matched(pattern: str, file: Path) -> str:
    """What the wildcards of a pattern stand for in a file's path, without its ending."""
    fixed = [re.escape(text) for text in WILDCARD.split(Path(pattern).with_suffix("").as_posix())]
    found = re.fullmatch("([^/]*)".join(fixed), file.with_suffix("").as_posix())
    return "_".join(text for text in found.groups() if text) if found else file.stem


def _source_name(source: str) -> str:
    """Name a source by its file or folder, or by the fixed text of its pattern."""
    if not _is_many(source):
        return Path(source).stem
    if Path(source).is_dir():
        return Path(source).resolve().name
    for part in (Path(source).stem, *reversed(Path(source).parent.parts)):
        fixed = WILDCARD.sub("", part).strip("_-. ")
        if fixed:
            return fixed
    return "source"


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that come again: vi, vi 2."""
    return [name if (n := names[: k + 1].count(name)) == 1 else f"{name} {n}" for k, name in enumerate(names)]


def _listed(names: Sequence[str] | Mapping[str, Path]) -> str:
    shown = list(names)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
