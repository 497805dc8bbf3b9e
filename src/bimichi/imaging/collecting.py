"""From files, folders and patterns to the image files of scenes.

Each argument is one source: a file for one scene, a folder or a pattern for many. Files of many scenes are paired by
their name without suffix, or by what the wildcards match. Files may hold several bands, each of which is a source;
``s2.tif[B3,B8]`` chooses some of them.
"""

import glob
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, overload

from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import first_few
from bimichi.imaging.labelled_layers import is_store
from bimichi.imaging.limits import check_file
from bimichi.imaging.opening import open_layer
from bimichi.imaging.reading import distinct_names
from bimichi.imaging.scenes import Expression, OpenScene
from bimichi.measures.base import check_names

PLAIN_SUFFIXES = (".jpeg", ".jpg", ".npy", ".png", ".tif", ".tiff")
SUFFIXES = (*PLAIN_SUFFIXES, ".dcm", ".nc", ".nii", ".nii.gz", ".npz", ".zarr")
MAX_SOURCES = 14  # of a bi-capacity
MAX_ADDITIVE_SOURCES = 30  # of an additive one; more are probably the files of one pattern that the shell has expanded
WILDCARD = re.compile(r"(?:\*|\?|\[[^\]]+\])+")
SELECTION = re.compile(r"(?P<path>.+)\[(?P<bands>[^\[\]]+)\]")


@dataclass(frozen=True)
class SceneFiles:
    """What one scene is made of: one file per source, or files of several bands; or arrays."""

    name: str
    files: tuple[Path, ...]
    picks: tuple[tuple[str, ...], ...] = ()
    """Bands that were chosen of each file, by description or number; none for all of them."""
    arrays: tuple[Any, ...] = ()
    """Instead of files: arrays, or objects of xarray."""

    @property
    def aliases(self) -> set[str]:
        """Names that annotation files may use for it: its own, or that of any file, with or without suffix."""
        names = {self.name} | {stem_of(file) for file in self.files}
        return names | {f"{name}{suffix}" for name in names for suffix in SUFFIXES}


@dataclass(frozen=True)
class SceneCollection(Sequence[OpenScene]):
    """Scenes, in the order of their names, each opened when it is asked for, by its number or name."""

    scenes: list[SceneFiles]
    source_names: list[str]
    """Of the arguments: names of files or folders, or the fixed text of patterns."""
    many: bool
    """Whether folders or patterns were given, so that there may be many scenes."""
    given: tuple[str, ...] | None = None
    """Names of the sources that the user gave."""
    align: bool = False
    drivers: tuple[str, ...] = ()
    computed: tuple[Expression, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the scenes."""
        return [scene.name for scene in self.scenes]

    @property
    def files(self) -> list[Path]:
        """All files, each once."""
        return list(dict.fromkeys(file for scene in self.scenes for file in scene.files))

    @cached_property
    def _by_name(self) -> dict[str, SceneFiles]:
        return {scene.name: scene for scene in self.scenes}

    def __len__(self) -> int:
        return len(self.scenes)

    def __iter__(self) -> Iterator[OpenScene]:
        return map(self.open, self.names)

    @overload
    def __getitem__(self, which: int | str) -> OpenScene: ...
    @overload
    def __getitem__(self, which: slice) -> "SceneCollection": ...
    def __getitem__(self, which: int | str | slice) -> "OpenScene | SceneCollection":
        if isinstance(which, slice):
            return replace(self, scenes=self.scenes[which])
        return self.open(which if isinstance(which, str) else self.names[which])

    def open(self, name: str) -> OpenScene:
        """Open the files of a scene; rasters are inspected, but not read yet."""
        scene = self._by_name.get(name)
        if scene is None:
            raise InvalidInputError(f"No scene is named {name!r}; there are {first_few(self.names)}.")
        items = scene.arrays or scene.files
        layers = [open_layer(item, self.drivers, label) for item, label in zip(items, self.source_names, strict=True)]
        picks = scene.picks or ((),) * len(layers)
        layers = [layer.select(pick) if pick else layer for layer, pick in zip(layers, picks, strict=True)]
        opened = OpenScene(name, layers, self.source_names, self.align)
        return (opened.computed(self.computed) if self.computed else opened).renamed(self.given)

    def only(self, names: Collection[str]) -> "SceneCollection":
        """Return the scenes of these names alone."""
        return replace(self, scenes=[one for one in self.scenes if one.name in names])

    def companions(self, given: str, what: str) -> dict[str, Path]:
        """Return one more file per scene, such as its mask, by the name of the scene.

        `given` is a file for one scene, or a folder or a pattern for many; `what` says what the files are, for errors.
        """
        if not self.many:
            return {self.names[0]: _existing(Path(given))}
        if not _is_many(given):
            raise InvalidInputError(f"{what} must be a folder or a pattern, as the sources are, got {given}.")
        found = _found(given)
        missing = [name for name in self.names if name not in found]
        if missing:
            raise InvalidInputError(f"{what} {given} has no file for {first_few(missing)}; it has {first_few(found)}.")
        return {name: found[name] for name in self.names}


def open_scenes(
    sources: Any,
    names: Sequence[str] | None = None,
    *,
    align: bool = False,
    drivers: Sequence[str] = (),
    computed: Sequence[Expression] = (),
    limit: int = MAX_ADDITIVE_SOURCES,
) -> SceneCollection:
    """Open scenes, whatever they are stored in; all commands, and Python, read images in this way.

    Parameters
    ----------
    sources : path, sequence of paths, array or object of xarray, or mapping of names to arrays
        One entry per source, as on the command line: a file for one scene, a folder or a pattern for many, paired by
        name. Files hold one band or several (``"s2.tif[B3,B8]"`` chooses some, by description or number). Formats:
        PNG, JPEG, TIFF, GeoTIFF, .npy, .npz; Zarr and NetCDF by xarray; DICOM and NIfTI (extra ``medical``). Or one
        scene in memory: an array of shape (height, width, n_sources), a DataArray, a Dataset, or one plane per name.
    names : sequence of str, optional
        Names of the sources; by default descriptions of bands, or else names of files, folders or variables.
    align : bool, default=False
        Whether files on other grids are resampled, bilinearly, to that of the first. Images without georeference are
        then taken to show the same area.
    drivers : sequence of str
        Drivers of GDAL, such as "ENVI", that may read files of other formats. Apart from GeoTIFF, no file is opened by
        a driver that is not named here, so that none leads to other files or to the network.
    computed : sequence of expressions
        Sources that are computed from bands instead of these themselves; each has `name`, `bands` and `evaluate`.
    limit : int, default=30
        The largest number of entries in `sources`.

    Returns
    -------
    SceneCollection
        A sequence of `OpenScene`, by number or name. A scene has `source_names`, `dtypes`, `shape`, `crs`, `transform`,
        ``read()``, which returns one array per source with NaN where there is no data, and ``valid()``.

    Raises
    ------
    InvalidInputError
        If a path does not exist or is no regular file, or if files do not pair up. What is wrong within a file is
        reported when its scene is opened.

    Examples
    --------
    >>> import numpy as np
    >>> scene = open_scenes({"thermal": np.zeros((2, 3), np.uint16), "grey": np.ones((2, 3), np.uint8)})[0]
    >>> scene.source_names, scene.shape, [image.dtype.name for image in scene.read()]
    (('thermal', 'grey'), (2, 3), ['uint16', 'uint8'])
    """
    found = _collection(sources, limit)
    given = None if names is None else tuple(names)
    return replace(found, given=given, align=align, drivers=tuple(drivers), computed=tuple(computed))


def _collection(sources: Any, limit: int) -> SceneCollection:
    if isinstance(sources, str | PathLike):
        sources = [sources]
    if isinstance(sources, Mapping) and not hasattr(sources, "data_vars"):
        names, items = [str(name) for name in sources], list(sources.values())
    elif isinstance(sources, Sequence):
        names, items = [], list(sources)
    else:
        names, items = ["scene"], [sources]
    if not items:
        raise InvalidInputError("sources is empty; name at least one file.")
    if all(isinstance(item, str | PathLike) for item in items):
        found = collect_scenes([str(item) for item in items], limit)
        return replace(found, source_names=list(check_names(names, len(items)))) if names else found
    if any(isinstance(item, str | PathLike) for item in items):
        raise InvalidInputError("sources are files or arrays, not both; read the files first, or save the arrays.")
    labels = names or [str(getattr(item, "name", None) or f"source {k + 1}") for k, item in enumerate(items)]
    return SceneCollection([SceneFiles("scene", (), arrays=tuple(items))], distinct_names(labels), False)


def collect_scenes(sources: Sequence[str], limit: int = MAX_SOURCES) -> SceneCollection:
    """Find the files of one or many scenes, without reading them; there may be up to `limit` sources."""
    paths, picks = zip(*map(_selected, sources), strict=True)
    for path in paths:
        if WILDCARD.search(path) is None or Path(path).exists():
            _existing(Path(path))
    if len(paths) > limit:
        more = f" (`bimichi train --additivity 2` takes up to {MAX_ADDITIVE_SOURCES})" if limit <= MAX_SOURCES else ""
        raise InvalidInputError(
            f"{len(paths)} sources, one per argument, are more than {limit}{more}."
            " Quote patterns, or the shell replaces each by all its files."
        )
    many = [_is_many(path) for path in paths]
    if not any(many):
        return _one_scene(tuple(map(Path, paths)), picks)
    names = distinct_names([_source_name(path) for path in paths])
    if not all(many):
        raise InvalidInputError(
            f"{paths[many.index(False)]} is a file, but {paths[many.index(True)]} is a folder or a pattern. "
            "Give one file per source for one scene, or one folder or pattern per source for many."
        )
    found = [_found(path) for path in paths]
    scenes = sorted(set().union(*found))
    for scene in scenes:
        for path, files_of in zip(paths, found, strict=True):
            if scene not in files_of:
                raise InvalidInputError(
                    f"Scene {scene!r} has no file in {path}, but has {next(f[scene] for f in found if scene in f)}. "
                    "Every scene needs a file of the same name for each source."
                )
    return SceneCollection([SceneFiles(s, tuple(files[s] for files in found), picks) for s in scenes], names, True)


def stem_of(path: Path) -> str:
    """Return the name of a file without its suffix, which may have two parts."""
    return path.name[: -len(".nii.gz")] if path.name.lower().endswith(".nii.gz") else path.stem


def _one_scene(files: tuple[Path, ...], picks: tuple[tuple[str, ...], ...]) -> SceneCollection:
    """Name the sources of one scene by their files, or, as with ir/7.png and vi/7.png, by the folders of these."""
    for file in files:
        if not is_store(file):
            check_file(file)
    stems, folders = [stem_of(file) for file in files], [file.resolve().parent.name for file in files]
    if len(set(stems)) == 1 and len(set(folders)) == len(files):
        return SceneCollection([SceneFiles(stems[0], files, picks)], folders if len(files) > 1 else stems, False)
    return SceneCollection([SceneFiles(folders[0] or "scene", files, picks)], distinct_names(stems), False)


def _selected(source: str) -> tuple[str, tuple[str, ...]]:
    """Split an argument into a path and the bands chosen in brackets behind it, if there are any."""
    found = SELECTION.fullmatch(source)
    if found is None or Path(source).exists():
        return source, ()
    path = found["path"]
    if not Path(path).exists() and not path.lower().endswith(SUFFIXES):
        return source, ()  # brackets of a pattern
    bands = tuple(part.strip() for part in found["bands"].split(","))
    if not all(bands):
        raise InvalidInputError(f"{source}: name bands by description or number, separated by commas, as in [B3,B8].")
    return path, bands


def _existing(path: Path) -> Path:
    """Return a path that exists; that it does not is the first thing to say."""
    if not path.exists():
        parent = next((folder for folder in path.parents if folder.exists()), None)
        where = f" ({parent} exists.)" if parent not in (None, path.parent) else ""
        raise InvalidInputError(f"There is no file or folder {path}.{where}")
    return path


def _is_many(source: str) -> bool:
    if is_store(Path(source)):
        return False
    return Path(source).is_dir() or (WILDCARD.search(source) is not None and not Path(source).exists())


def _found(source: str) -> Mapping[str, Path]:
    """Files of a folder or a pattern, by scene."""
    if Path(source).is_dir():
        files = [p for p in Path(source).iterdir() if p.name.lower().endswith(SUFFIXES) and not p.name.startswith(".")]
        for file in files:
            if not is_store(file):
                check_file(file)
        pairs = [(stem_of(file), file) for file in sorted(files)]
        what = f"image files ({', '.join(SUFFIXES)})"
    else:
        if "**" in source:
            raise InvalidInputError(f"{source}: ** is not supported; write one * per folder.")
        files = [Path(name) for name in sorted(glob.glob(source)) if _is_input(Path(name))]  # noqa: PTH207
        pairs = [(_matched(source, file), file) for file in files]
        what = "files"
    if not pairs:
        raise InvalidInputError(f"{source} has no {what}.")
    by_scene: dict[str, Path] = {}
    for scene, file in pairs:
        if by_scene.setdefault(scene, file) is not file:
            raise InvalidInputError(f"{by_scene[scene]} and {file} both belong to scene {scene!r}; remove one of them.")
    return by_scene


def _is_input(path: Path) -> bool:
    return path.is_file() or is_store(path)


def _matched(pattern: str, file: Path) -> str:
    """What the wildcards of a pattern match in a file's path, without its suffix."""
    fixed = [re.escape(text) for text in WILDCARD.split(Path(pattern).with_suffix("").as_posix())]
    found = re.fullmatch("([^/]*)".join(fixed), file.with_suffix("").as_posix())
    return "_".join(text for text in found.groups() if text) if found else file.stem


def _source_name(source: str) -> str:
    """Name a source by its file or folder, or by the fixed text of its pattern."""
    if not _is_many(source):
        return stem_of(Path(source))
    if Path(source).is_dir():
        return Path(source).resolve().name
    parts = (Path(source).stem, *reversed(Path(source).parent.parts))
    fixed = (WILDCARD.sub("", part).strip("_-. ") for part in parts)
    return next(filter(None, fixed), "source")
