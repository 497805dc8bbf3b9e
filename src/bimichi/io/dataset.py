"""From files, folders and patterns to the image files of scenes.

Each argument is one source: a file for one scene, a folder or a pattern for many. Files of many scenes are paired by
their name without suffix, or by what the wildcards match. Files may hold several bands, each of which is a source;
``s2.tif[B3,B8]`` chooses some of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np

from bimichi.errors import InvalidInputError, warn
from bimichi.io import open as finding
from bimichi.io.images import check_file, distinct_names
from bimichi.io.open import is_store, open_layer
from bimichi.io.scene import OpenScene
from bimichi.measures.base import check_names
from bimichi.sources.bands import Image, first_few
from bimichi.sources.expressions import BandExpression

MAX_SOURCES = 14  # of a bi-capacity
MAX_ADDITIVE_SOURCES = 30  # of an additive one; more are probably the files of one pattern that the shell has expanded


@dataclass(frozen=True)
class SceneFiles:
    """The files of one scene: one file per source, or files of several bands; or arrays."""

    name: str
    files: tuple[Path, ...]
    picks: tuple[tuple[str, ...], ...] = ()
    """Bands that were chosen of each file, by description or number; none for all of them."""
    arrays: tuple[Any, ...] = ()
    """Instead of files: arrays, or objects of xarray."""

    @property
    def aliases(self) -> set[str]:
        """Names that annotation files may use for it: its own, or that of any file, with or without suffix."""
        names = {self.name} | {finding.stem_of(file) for file in self.files}
        return names | {f"{name}{suffix}" for name in names for suffix in finding.SUFFIXES}


@dataclass(frozen=True)
class SceneCollection(Sequence[OpenScene]):
    """Scenes, in the order of their names, each opened when it is asked for, by its number or name."""

    scenes: list[SceneFiles]
    source_names: list[str]
    """Of the arguments: names of files or folders, or the fixed text of patterns."""
    many: bool
    """True if folders or patterns were given, so that there may be many scenes."""
    given: tuple[str, ...] | None = None
    """Names of the sources that the user gave."""
    align: bool = False
    drivers: tuple[str, ...] = ()
    computed: tuple[BandExpression, ...] = ()

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
            raise InvalidInputError(
                f"No scene is named {name!r}; there are {first_few(self.names)}.", code="scene-unknown"
            )
        items = scene.arrays or scene.files
        layers = [open_layer(item, self.drivers, label) for item, label in zip(items, self.source_names, strict=True)]
        picks = scene.picks or ((),) * len(layers)
        layers = [layer.select(pick) if pick else layer for layer, pick in zip(layers, picks, strict=True)]
        opened = OpenScene(name, layers, self.source_names, self.align)
        return (opened.computed(self.computed) if self.computed else opened).renamed(self.given)

    def only(self, names: Collection[str]) -> "SceneCollection":
        """Return the scenes of these names alone."""
        return replace(self, scenes=[scene for scene in self.scenes if scene.name in names])

    def companions(self, given: str, what: str, partial: bool = False) -> dict[str, Path]:
        """Return one more file per scene, such as its mask, by the name of the scene.

        `given` is a file for one scene, or a folder or a pattern for many; `what` says what the files are, for errors.
        With `partial`, some of many scenes, but not all, may lack one.
        """
        if not self.many:
            return {self.names[0]: finding.existing_path(Path(given))}
        if not finding.is_many(given):
            raise InvalidInputError(
                f"{what} must be a folder or a pattern, as the sources are, got {given}.",
                code="not-folder",
                argument=what,
                value=given,
            )
        found = finding.files_by_scene(given)
        missing = [name for name in self.names if name not in found]
        if missing and not (partial and len(missing) < len(self.names)):
            raise InvalidInputError(
                f"{what} {given} has no file for {first_few(missing)}; it has {first_few(found)}. "
                "Every scene needs one; add it, or leave the scene out.",
                code="scene-file-missing",
            )
        return {name: found[name] for name in self.names if name in found}


def open_scenes(
    sources: Any,
    names: Sequence[str] | None = None,
    *,
    align: bool = False,
    drivers: Sequence[str] = (),
    computed: Sequence[BandExpression] = (),
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
    collection = _collection(sources, limit)
    chosen = None if names is None else tuple(names)
    if chosen and chosen != tuple(collection.source_names) and sorted(chosen) == sorted(collection.source_names):
        warn(
            f"names (--names) gives sources the names of others: {', '.join(chosen)} for "
            f"{', '.join(collection.source_names)}, which may be swapped. Give names in the order of the sources, or "
            "none to keep those of the files.",
            code="names-swapped",
            stacklevel=2,
        )
    return replace(collection, given=chosen, align=align, drivers=tuple(drivers), computed=tuple(computed))


def read_sources(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]], names: Sequence[str] | None = None
) -> tuple[list[Image], list[str]]:
    """Read the sources of one scene: several files of one band each, or files of several bands.

    Parameters
    ----------
    paths : path, or sequence of paths
        Files that `open_scenes` opens, all of one size.
    names : sequence of str, optional
        Names of the sources, by default those that `open_scenes` gives them.

    Returns
    -------
    planes : list of ndarray, shape (height, width)
        Values as in the files, NaN where there is no data; `to_bipolar` and other recipes map them to [-1, 1].
    names : list of str
        One per plane.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    collection = open_scenes(listed, names)
    if collection.many:
        raise InvalidInputError(f"paths names many scenes, got {listed[0]!s}; use open_scenes.", code="paths-many")
    scene = collection[0]
    for source in scene.sources:
        if len(source.bands) > 1:
            label = scene.layers[source.bands[0][0]].label
            raise InvalidInputError(
                f"{label} has {len(source.bands)} bands; with several files, a colour image must become one band. Make "
                "one of it first, e.g. with bimichi.sources.grey(read_image(path)), or pass this file alone.",
                code="bands-many",
            )
    return [np.ascontiguousarray(image) for image in scene.read()], list(scene.source_names)


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
        raise InvalidInputError("sources is empty; name at least one file.", code="sources-empty", argument="sources")
    if all(isinstance(item, str | PathLike) for item in items):
        collection = collect_scenes([str(item) for item in items], limit)
        return replace(collection, source_names=list(check_names(names, len(items)))) if names else collection
    if any(isinstance(item, str | PathLike) for item in items):
        raise InvalidInputError(
            "sources are files or arrays, not both; read the files first, or save the arrays.", code="sources-mixed"
        )
    labels = names or [str(getattr(item, "name", None) or f"source {k + 1}") for k, item in enumerate(items)]
    return SceneCollection([SceneFiles("scene", (), arrays=tuple(items))], distinct_names(labels), False)


def collect_scenes(sources: Sequence[str], limit: int = MAX_SOURCES) -> SceneCollection:
    """Find the files of one or many scenes, without reading them; there may be up to `limit` sources."""
    paths, picks = zip(*map(finding.selected_bands, sources), strict=True)
    for path in paths:
        if not finding.is_pattern(path):
            finding.existing_path(Path(path))
    if len(paths) > limit:
        more = f" (`bimichi train --additivity 2` takes up to {MAX_ADDITIVE_SOURCES})" if limit <= MAX_SOURCES else ""
        raise InvalidInputError(
            f"{len(paths)} sources, one per argument, are more than {limit}{more}."
            " Quote patterns, or the shell replaces each by all its files.",
            code="sources-unquoted",
        )
    many = [finding.is_many(path) for path in paths]
    if not any(many):
        return _one_scene(tuple(map(Path, paths)), picks)
    names = distinct_names([finding.name_of_source(path) for path in paths])
    if not all(many):
        raise InvalidInputError(
            f"{paths[many.index(False)]} is a file, but {paths[many.index(True)]} is a folder or a pattern. "
            "Give one file per source for one scene, or one folder or pattern per source for many.",
            code="sources-mixed",
        )
    found = [finding.files_by_scene(path) for path in paths]
    scenes = sorted(set().union(*found))
    for scene in scenes:
        for path, files_of in zip(paths, found, strict=True):
            if scene not in files_of:
                raise InvalidInputError(
                    f"Scene {scene!r} has no file in {path}, but has {next(f[scene] for f in found if scene in f)}. "
                    "Every scene needs a file of the same name for each source.",
                    code="scene-file-missing",
                )
    return SceneCollection([SceneFiles(s, tuple(files[s] for files in found), picks) for s in scenes], names, True)


def _one_scene(files: tuple[Path, ...], picks: tuple[tuple[str, ...], ...]) -> SceneCollection:
    """Name the sources of one scene by their files, or, as with ir/7.png and vi/7.png, by the folders of these."""
    for file in files:
        if not is_store(file):
            check_file(file)
    finding.warn_if_expanded(files)
    stems, folders = [finding.stem_of(file) for file in files], [file.resolve().parent.name for file in files]
    if len(set(stems)) == 1 and len(set(folders)) == len(files):
        return SceneCollection([SceneFiles(stems[0], files, picks)], folders if len(files) > 1 else stems, False)
    return SceneCollection([SceneFiles(folders[0] or "scene", files, picks)], distinct_names(stems), False)
