"""From files, folders and patterns to the image files of scenes.

Each argument is one source: a file for one scene, a folder or a pattern for many. Files of many scenes are paired by
their name without suffix, or by what the wildcards match. A single argument may name files of several bands, each of
which is a source.
"""

import glob
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.reading import distinct_names
from bimichi.measures.base import check_names

SUFFIXES = (".jpeg", ".jpg", ".npy", ".png", ".tif", ".tiff")
MAX_SOURCES = 14  # of a bi-capacity
MAX_ADDITIVE_SOURCES = 30  # of an additive one; more are probably the files of one pattern that the shell has expanded
WILDCARD = re.compile(r"(?:\*|\?|\[[^\]]+\])+")


@dataclass(frozen=True)
class SceneFiles:
    """The image files of one scene: one file per source, or a single file of several bands."""

    name: str
    files: tuple[Path, ...]

    @property
    def aliases(self) -> set[str]:
        """Names that annotation files may use for it: its own, or that of any file, with or without suffix."""
        names = {self.name} | {file.stem for file in self.files}
        return names | {f"{name}{suffix}" for name in names for suffix in SUFFIXES}


@dataclass(frozen=True)
class SceneCollection:
    """The files of all scenes, in the order of their names."""

    scenes: list[SceneFiles]
    source_names: list[str]
    """Of the arguments: names of files or folders, or the fixed text of patterns."""
    many: bool
    """Whether folders or patterns were given, so that there may be many scenes."""

    @property
    def names(self) -> list[str]:
        """Names of the scenes."""
        return [scene.name for scene in self.scenes]

    @property
    def files(self) -> list[Path]:
        """All files, each once."""
        return list(dict.fromkeys(file for scene in self.scenes for file in scene.files))

    def only(self, names: Collection[str]) -> "SceneCollection":
        """Return the scenes of these names alone."""
        return SceneCollection([one for one in self.scenes if one.name in names], self.source_names, self.many)

    def names_of_sources(self, given: Sequence[str] | None, n_sources: int) -> list[str]:
        """Return one name per source: those `given`, or those of files, folders or patterns, or of bands."""
        if given is None and len(self.source_names) != n_sources:
            return [f"band {k + 1}" for k in range(n_sources)]
        return list(check_names(self.source_names if given is None else given, n_sources))

    def companions(self, given: str, what: str, partial: bool = False) -> dict[str, Path]:
        """Return one more file per scene, such as its mask, by the name of the scene.

        `given` is a file for one scene, or a folder or a pattern for many; `what` says what the files are, for errors.
        With `partial`, some of many scenes, but not all, may lack one.
        """
        if not self.many:
            return {self.names[0]: Path(given)}
        if not _is_many(given):
            raise InvalidInputError(f"{what} must be a folder or a pattern, as the sources are, got {given}.")
        found = _found(given)
        missing = [name for name in self.names if name not in found]
        if missing and not (partial and len(missing) < len(self.names)):
            raise InvalidInputError(f"{what} {given} has no file for {first_few(missing)}; it has {first_few(found)}.")
        return {name: found[name] for name in self.names if name in found}


def collect_scenes(sources: Sequence[str], limit: int = MAX_SOURCES) -> SceneCollection:
    """Find the files of one or many scenes, without reading them; there may be up to `limit` sources."""
    if len(sources) > limit:
        more = f" (`bimichi train --additivity 2` takes up to {MAX_ADDITIVE_SOURCES})" if limit <= MAX_SOURCES else ""
        raise InvalidInputError(
            f"{len(sources)} sources, one per argument, are more than {limit}{more}."
            " Quote patterns, or the shell replaces each by all its files."
        )
    many = [_is_many(source) for source in sources]
    if not any(many):
        return _one_scene(tuple(map(Path, sources)))
    names = distinct_names([_source_name(source) for source in sources])
    if not all(many):
        raise InvalidInputError(
            f"{sources[many.index(False)]} is a file, but {sources[many.index(True)]} is a folder or a pattern. "
            "Give one file per source for one scene, or one folder or pattern per source for many."
        )
    found = [_found(source) for source in sources]
    scenes = sorted(set().union(*found))
    for scene in scenes:
        for source, files_of in zip(sources, found, strict=True):
            if scene not in files_of:
                raise InvalidInputError(
                    f"Scene {scene!r} has no file in {source}, but has {next(f[scene] for f in found if scene in f)}. "
                    "Every scene needs a file of the same name for each source."
                )
    return SceneCollection([SceneFiles(s, tuple(files[s] for files in found)) for s in scenes], names, True)


def _one_scene(files: tuple[Path, ...]) -> SceneCollection:
    """Name the sources of one scene by their files, or, as with ir/7.png and vi/7.png, by the folders of these."""
    stems, folders = [file.stem for file in files], [file.resolve().parent.name for file in files]
    if len(set(stems)) == 1 and len(set(folders)) == len(files):
        return SceneCollection([SceneFiles(stems[0], files)], folders if len(files) > 1 else stems, False)
    return SceneCollection([SceneFiles(folders[0] or "scene", files)], distinct_names(stems), False)


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
            raise InvalidInputError(f"{source}: ** is not supported; write one * per folder.")
        files = [Path(name) for name in sorted(glob.glob(source)) if Path(name).is_file()]  # noqa: PTH207
        pairs = [(_matched(source, file), file) for file in files]
        what = "files"
    if not pairs:
        raise InvalidInputError(f"{source} has no {what}.")
    by_scene: dict[str, Path] = {}
    for scene, file in pairs:
        if by_scene.setdefault(scene, file) is not file:
            raise InvalidInputError(f"{by_scene[scene]} and {file} both belong to scene {scene!r}; remove one of them.")
    return by_scene


def _matched(pattern: str, file: Path) -> str:
    """What the wildcards of a pattern match in a file's path, without its suffix."""
    fixed = [re.escape(text) for text in WILDCARD.split(Path(pattern).with_suffix("").as_posix())]
    found = re.fullmatch("([^/]*)".join(fixed), file.with_suffix("").as_posix())
    return "_".join(text for text in found.groups() if text) if found else file.stem


def _source_name(source: str) -> str:
    """Name a source by its file or folder, or by the fixed text of its pattern."""
    if not _is_many(source):
        return Path(source).stem
    if Path(source).is_dir():
        return Path(source).resolve().name
    parts = (Path(source).stem, *reversed(Path(source).parent.parts))
    fixed = (WILDCARD.sub("", part).strip("_-. ") for part in parts)
    return next(filter(None, fixed), "source")
