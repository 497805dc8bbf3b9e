"""`Scene`: co-registered sources with whatever is known about them; what data sets give and comparisons take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.bags import Bags
from bimichi.errors import InvalidInputError
from bimichi.measure import check_names

__all__ = ["Scene", "join_bags"]


@dataclass(frozen=True, eq=False, repr=False)  # arrays do not compare to one bool, and do not fit on a line
class Scene:
    """Sources of one image (or of any set of instances), and what is known about them.

    Parameters
    ----------
    sources : ndarray of shape (..., n_sources)
        The sources, usually (height, width, n_sources), in [-1, 1].
    name : str
        What to call it.
    source_names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    segments : ndarray of int, shape (...), optional
        To which bag each instance belongs.
    labels : mapping of int to bool, optional
        Whether a bag is positive; bags that are not named are left out of learning.
    truth : ndarray of bool, shape (...), optional
        Whether each instance is a target.
    ignore : ndarray of bool, shape (...), optional
        Instances that no score counts.
    boxes : ndarray of shape (n_boxes, 4)
        Boxes (x, y, width, height) around targets, in pixels.
    rgb : ndarray of uint8, shape (height, width, 3), optional
        For display, and for detectors.
    thermal : ndarray of shape (height, width), optional
        For display.
    truth_from : str, default="pixels"
        What `truth` was made from: "pixels", or "boxes" where nothing better exists.
    licence, citation : str
        Of the data.
    """

    sources: NDArray[Any]
    name: str = "scene"
    source_names: tuple[str, ...] = ()
    segments: NDArray[np.integer[Any]] | None = None
    labels: Mapping[int, bool] | None = None
    truth: NDArray[np.bool_] | None = None
    ignore: NDArray[np.bool_] | None = None
    boxes: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 4)))
    rgb: NDArray[np.uint8] | None = None
    thermal: NDArray[Any] | None = None
    truth_from: str = "pixels"
    licence: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.sources, np.ndarray) or self.sources.ndim < 2:
            raise InvalidInputError(
                f"sources of scene {self.name!r} must be an array of shape (..., n_sources), "
                f"got {np.shape(self.sources)}."
            )
        object.__setattr__(self, "source_names", check_names(self.source_names or None, self.n_sources))
        for what in ("segments", "truth", "ignore"):
            given = getattr(self, what)
            if given is not None and np.shape(given) != self.shape:
                raise InvalidInputError(
                    f"{what} of scene {self.name!r} has shape {np.shape(given)}; "
                    f"it must be that of a source, {self.shape}."
                )

    def __repr__(self) -> str:
        bags = "" if self.labels is None else f"; {len(self.labels)} bags, {sum(self.labels.values())} positive"
        return f"Scene({self.name!r}, {' x '.join(map(str, self.shape))}; {', '.join(self.source_names)}{bags})"

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return int(self.sources.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one source."""
        return self.sources.shape[:-1]

    def bags(self) -> Bags:
        """Return the labelled bags, for learning."""
        segments, labels = self._parts()
        return Bags.from_image(self.sources, segments, labels)

    def _parts(self) -> tuple[NDArray[np.integer[Any]], Mapping[int, bool]]:
        if self.segments is None or self.labels is None:
            raise InvalidInputError(
                f"Scene {self.name!r} has no bags; add them with scene.with_bags(segments, labels)."
            )
        return self.segments, self.labels

    def with_bags(self, segments: NDArray[np.integer[Any]], labels: Mapping[int, bool]) -> "Scene":
        """Return the same scene with these bags."""
        return replace(self, segments=segments, labels=labels)


def join_bags(scenes: Iterable[Scene]) -> Bags:
    """Join the bags of several scenes, for learning from all of them.

    Scenes without any positive bag may be among them. The whole takes the memory of all their sources.

    Parameters
    ----------
    scenes : iterable of Scene
        Scenes of distinct names, all of the same sources.

    Returns
    -------
    Bags
        Bags whose ids are pairs (name of the scene, segment); `instance` counts through the scenes in order.

    Examples
    --------
    >>> import numpy as np
    >>> left, right = (Scene(np.zeros((2, 2)), name, segments=np.array([0, 1])) for name in ("left", "right"))
    >>> join_bags([left.with_bags(left.segments, {0: True, 1: False}), right.with_bags(right.segments, {1: False})]).ids
    [('left', 0), ('left', 1), ('right', 1)]
    """
    sources: list[NDArray[Any]] = []
    segments: list[NDArray[np.integer[Any]]] = []
    labels: dict[int, bool] = {}
    ids: list[tuple[str, int]] = []
    names: dict[str, tuple[str, ...]] = {}
    for scene in scenes:
        _check_joins(scene, names)
        names[scene.name] = scene.source_names
        numbers, given = scene._parts()
        found, where = np.unique(numbers, return_inverse=True)
        code = {int(segment): len(ids) + k for k, segment in enumerate(found)}
        unknown = sorted(set(given) - set(code))
        if unknown:
            raise InvalidInputError(
                f"labels of scene {scene.name!r} name segment {unknown[0]}, which no instance belongs to."
            )
        labels |= {code[segment]: label for segment, label in given.items()}
        sources.append(scene.sources.reshape(-1, scene.n_sources))
        segments.append(where.ravel() + len(ids))
        ids += [(scene.name, segment) for segment in code]
    if not sources:
        raise InvalidInputError("scenes is empty; give at least one scene.")
    bags = Bags.from_image(np.concatenate(sources), np.concatenate(segments), labels)
    bags.ids = [ids[k] for k in bags.ids]  # type: ignore[call-overload]  # from_image made them whole numbers
    return bags


def _check_joins(scene: Scene, names: Mapping[str, tuple[str, ...]]) -> None:
    if scene.name in names:
        raise InvalidInputError(f"Two scenes are named {scene.name!r}; names tell their bags apart.")
    for other, source_names in names.items():
        if scene.source_names != source_names:
            raise InvalidInputError(
                f"Scene {scene.name!r} has sources {', '.join(scene.source_names)}, but scene {other!r} has "
                f"{', '.join(source_names)}; join scenes of the same sources."
            )
