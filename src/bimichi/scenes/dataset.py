"""`Dataset`: named scenes, each read when it is needed, from memory, files or a cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np

from bimichi.errors import InvalidInputError
from bimichi.integral.planes import in_threads
from bimichi.scenes.bags import Bags
from bimichi.scenes.scene import Scene, join_bags

Nan = Literal["raise", "drop"]


class Part(NamedTuple):
    """Whole bags (None if no instance is in a labelled one), and where they come from."""

    bags: Bags | None
    n_given: int  # number of instances, including those that were left out
    n_sources: int
    source_names: tuple[str, ...] = ()
    name: str = ""  # of the scene; rows of an array have none
    scene: Scene | None = None

    @property
    def nbytes(self) -> int:
        """The memory that its arrays take."""
        arrays = [] if self.bags is None else [self.bags.X, self.bags.counts, self.bags.instance]
        if self.scene is not None:
            arrays += [self.scene.sources] + ([] if self.scene.segments is None else [self.scene.segments])
        return sum(array.nbytes for array in arrays)


class Dataset(Sequence[Scene]):
    """Named scenes that are read one at a time, each when it is asked for.

    ``data[0]``, ``data["name"]`` and loops read scenes; ``data[:8]`` and ``data.select(names)`` are smaller datasets
    and read none; ``"name" in data`` asks for a name. Scenes are not kept, unless `keeping` says how many.

    Parameters
    ----------
    names : sequence of str
        Names of the scenes, in order.
    load : callable, optional
        Takes a name, returns its scene; without it, scenes are added by `put`.
    """

    def __init__(self, names: Sequence[str] = (), load: Callable[[str], Scene] | None = None) -> None:
        self.names, self._load = tuple(names), load
        self._items: dict[str, Any] = {}
        self._nan: Nan = "raise"
        self._room = 0  # bytes of parts that are kept
        self._parts: dict[str, Part] = {}
        self._results: dict[tuple[str, Any], Any] = {}

    @classmethod
    def of(cls, scenes: Any, nan: Nan = "raise") -> "Dataset":
        """Return a dataset of scenes in any form, of which those in memory are not copied.

        Parameters
        ----------
        scenes : Dataset, or sequence
            Of `Scene`, paths of files of `Scene.save`, functions or Dask delayed objects that return one, or `Bags`.
        nan : {"raise", "drop"}
            Whether instances with NaN are an error, or left out of learning with a warning.
        """
        if isinstance(scenes, Dataset):
            data = copy(scenes)
        else:
            items: dict[str, Any] = {}
            for number, item in enumerate(scenes, 1):
                name = item.name if isinstance(item, Scene) else f"scene {number}"
                while name in items:  # an error when they are joined; until then, nothing is lost
                    name += "'"
                items[name] = item
            data = Dataset(list(items))
            data._items = items
        if nan != data._nan:
            data._nan, data._parts, data._results = nan, {}, {}
        return data

    def put(self, name: str, item: Any) -> None:
        """Add a scene, or replace it and forget what was kept of the one before."""
        if name not in self._items:
            self.names = (*self.names, name)
        self._items[name] = item
        self._parts.pop(name, None)
        for key in [key for key in self._results if key[0] == name]:
            del self._results[key]

    def keeping(self, room: int) -> Self:
        """Return the same dataset, which keeps up to so many bytes of what it reads, and what that is reduced to."""
        if self._room >= room:
            return self
        data = copy(self)
        data._room, data._parts, data._results = room, dict(self._parts), dict(self._results)
        return data

    def select(self, which: Iterable[int | str]) -> Self:
        """Return some of the scenes, by position or name; reads none, and shares what is kept."""
        data = copy(self)
        data.names = tuple(place if isinstance(place, str) else self.names[place] for place in which)
        for name in set(data.names) - set(self.names):
            self._check(name)
        return data

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:3]) + (", ..." if len(self) > 3 else "")
        return f"Dataset({len(self)}: {shown})"

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Scene]:
        return map(self.read, self.names)

    @overload
    def __getitem__(self, which: int | str) -> Scene: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    def __getitem__(self, which: int | str | slice) -> "Scene | Self":
        if isinstance(which, slice):
            return self.select(range(len(self))[which])
        name = which if isinstance(which, str) else self.names[which]
        self._check(name)
        return self.read(name)

    def _check(self, which: str) -> None:
        if which not in self.names:
            raise InvalidInputError(
                f"No scene is named {which!r}; {self!r} lists names in its attribute `names`.", code="scene-unknown"
            )

    def read(self, name: str) -> Scene:
        """Read one scene, unless it is kept."""
        part = self._parts.get(name)
        if part is not None and part.scene is not None:
            return part.scene
        return self._load(name) if self._load is not None else read_item(self._items[name])

    @property
    def items(self) -> list[Any]:
        """Return what `read_part` takes of each scene, in this process or on a worker that gets nothing else."""
        items = [self._items[name] if self._load is None else partial(_named, self._load, name) for name in self.names]
        return [partial(read_part, item, "drop") for item in items] if self._nan == "drop" else items

    def apply(self, function: Callable[[Part], Any], n_jobs: int = 1, key: Any = None) -> Iterator[Any]:
        """Read all scenes in threads, one each at a time, and yield in order what the function returns for each.

        With a `key`, results are kept as parts are, and given back when asked for by that key again.
        """
        items = dict(zip(self.names, self.items, strict=True))

        def run(name: str) -> tuple[str, Part | None, Any]:
            if key is not None and (name, key) in self._results:
                return name, None, self._results[name, key]
            part = self._parts.get(name) or read_part(items[name])
            return name, part if self._room else None, function(part)

        for name, part, result in in_threads(run, self.names, n_jobs) if len(self) > 1 else map(run, self.names):
            if part is not None:
                self._keep(name, part)
                if key is not None and name in self._parts:
                    self._results[name, key] = result
            yield result

    def _keep(self, name: str, part: Part) -> None:
        if name not in self._parts and part.nbytes + sum(kept.nbytes for kept in self._parts.values()) <= self._room:
            self._parts[name] = part


def is_lazy(X: Any) -> bool:
    """Return whether data are read part by part: a Dask collection, a dataset, or a list of scenes in any form."""
    if hasattr(X, "__dask_graph__") or isinstance(X, Dataset):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    return isinstance(X[0], Scene | str | PathLike) or callable(X[0]) or hasattr(X[0], "__dask_graph__")


def read_part(item: Any, nan: Nan = "raise") -> Part:
    """Return a part from a part, a scene, bags, a path, or a lazy form of these; its bags may be of one class."""
    scene = read_item(item)
    if isinstance(scene, Part):
        return scene
    if isinstance(scene, Bags):
        return Part(scene, len(scene.X), scene.n_sources)
    if not isinstance(scene, Scene):
        raise InvalidInputError(
            f"A scene must be a Scene, its path, or a function that returns it, got {type(scene).__name__}.",
            code="scene-kind",
            value=scene,
        )
    bags = join_bags([scene], one_class=True, nan=nan) if scene.labels is None or len(scene.labels) else None
    return Part(bags, int(np.prod(scene.shape)), scene.n_sources, scene.source_names, scene.name, scene)


def read_item(item: Any) -> Any:
    """Return what a lazy form of a scene stands for."""
    if hasattr(item, "__dask_graph__"):
        item = item.compute(scheduler="threads")
    return item() if callable(item) else Scene.load(item) if isinstance(item, str | PathLike) else item


def _named(load: Callable[[str], Scene], name: str) -> Scene:
    """Read one scene; an error names it."""
    try:
        return load(name)
    except InvalidInputError as error:
        if repr(name) in str(error):
            raise
        raise InvalidInputError(
            f"Scene {name!r}: {error}", code=error.code, argument=error.argument, value=error.value
        ) from error
