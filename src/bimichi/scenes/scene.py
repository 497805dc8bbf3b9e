"""`Scene`: co-registered sources with what is known about them, as data sets give and comparisons take them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi import _html
from bimichi._checks import is_xarray, refuse_masked
from bimichi._colours import data_uri, thumbnail
from bimichi._files import atomic_write
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.integral.labelled import aligned, as_image, unlabelled
from bimichi.measures.base import check_names
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_segment_labels, distinct

ARRAYS = ("sources", "segments", "truth", "ignore", "boxes", "rgb", "thermal", "pixels")
PICTURE = 200  # pixels of the longer side in a notebook
TEXTS = ("name", "source_names", "truth_from", "licence", "citation")
PLACE = ("crs", "transform")


@dataclass(frozen=True, eq=False, repr=False)  # arrays do not compare to one bool, and do not fit on a line
class Scene:
    """Sources of one image (or of any set of instances), and what is known about them.

    Parameters
    ----------
    sources : ndarray of shape (..., n_sources)
        The sources, usually (height, width, n_sources), in [-1, 1]. An array or a dataset of xarray is loaded, and
        lends the names of its sources; `segments`, `truth` and `ignore` may then be arrays of xarray, too.
    name : str
        Its name.
    source_names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    segments : ndarray of int, shape (...), optional
        The bag of each instance.
    labels : mapping of int to bool, optional
        Whether a bag is positive; bags that are not named are left out of learning.
    weights : mapping of int to float, optional
        How much a bag counts in learning; 1 for those that are not named.
    truth : ndarray of bool, shape (...), optional
        Whether each instance is a target.
    ignore : ndarray of bool, shape (...), optional
        Instances that are excluded from scoring.
    boxes : ndarray of shape (n_boxes, 4)
        Boxes (x, y, width, height) around targets, in pixels.
    rgb : ndarray of uint8, shape (height, width, 3), optional
        For display, and for detectors.
    thermal : ndarray of shape (height, width), optional
        For display.
    pixels : ndarray of int8, shape (...), optional
        Labels of single instances: 1 for targets, -1 for others, 0 for unknown, and 2 for the part of targets that
        scores count, if not all; as from `bimichi.scenes.pixel_labels`. By default they follow from boxes, if any.
    truth_from : str, default="pixels"
        What `truth` was made from: "pixels", or "boxes" where nothing better exists.
    licence, citation : str
        Of the data.
    crs : str, optional
        The reference system of a georeferenced scene, such as "EPSG:32630" or WKT.
    transform : sequence of six floats, optional
        Where the pixels of a georeferenced scene are: x = a column + b row + c, y = d column + e row + f.
    """

    sources: NDArray[Any]
    name: str = "scene"
    source_names: tuple[str, ...] = ()
    segments: NDArray[np.integer[Any]] | None = None
    labels: Mapping[int, bool] | None = None
    truth: Flags | None = None
    ignore: Flags | None = None
    boxes: Floats = field(default_factory=lambda: np.empty((0, 4)))
    rgb: NDArray[np.uint8] | None = None
    thermal: NDArray[Any] | None = None
    truth_from: str = "pixels"
    licence: str = ""
    citation: str = ""
    weights: Mapping[int, float] | None = None
    pixels: NDArray[np.int8] | None = None
    crs: str | None = None
    transform: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self._load_xarray()
        if not isinstance(self.sources, np.ndarray) or self.sources.ndim < 2:
            raise InvalidInputError(
                f"sources of scene {self.name!r} must be an array of shape (..., n_sources), "
                f"got {np.shape(self.sources)}.",
                code="sources-shape",
                argument="sources",
            )
        for what in ARRAYS:
            refuse_masked(getattr(self, what), what)
        object.__setattr__(self, "source_names", check_names(self.source_names or None, self.n_sources))
        self._check_place()
        for what in ("segments", "truth", "ignore", "pixels"):
            given = getattr(self, what)
            if given is not None and np.shape(given) != self.shape:
                raise InvalidInputError(
                    f"{what} of scene {self.name!r} has shape {np.shape(given)}; "
                    f"it must be that of a source, {self.shape}.",
                    code="scene-plane-shape",
                )

    def _check_place(self) -> None:
        """Raise an error unless the transform is six finite numbers, which it is then kept as."""
        if self.transform is None:
            return
        numbers = np.asarray(tuple(self.transform)[:6], dtype=np.float64)
        if numbers.shape != (6,) or not np.isfinite(numbers).all():
            raise InvalidInputError(
                f"transform of scene {self.name!r} must be six numbers (a, b, c, d, e, f), got {self.transform!r}.",
                code="transform",
                argument="transform",
                value=self.transform,
            )
        object.__setattr__(self, "transform", tuple(numbers.tolist()))

    def _load_xarray(self) -> None:
        """Replace arrays of xarray by plain ones, with sources along the last axis."""
        arrays = {name: getattr(self, name) for name in ("sources", "segments", "truth", "ignore", "rgb", "thermal")}
        if not any(map(is_xarray, arrays.values())):
            return
        sources, like = arrays.pop("sources"), None
        if is_xarray(sources):
            planes, names, like = unlabelled(sources)
            object.__setattr__(self, "sources", np.stack(planes, axis=-1))
            object.__setattr__(self, "source_names", self.source_names or names or ())
        for name, array in arrays.items():
            if is_xarray(array):
                plain = as_image(array)[0] if name == "rgb" else aligned(array, like, name)
                object.__setattr__(self, name, plain)

    def __repr__(self) -> str:
        bags = "" if self.labels is None else f"; {len(self.labels)} bags, {sum(self.labels.values())} positive"
        return f"Scene({self.name!r}, {' x '.join(map(str, self.shape))}; {', '.join(self.source_names)}{bags})"

    def _repr_html_(self) -> str:
        bags = None if self.labels is None else f"{len(self.labels)}, {sum(self.labels.values())} of them positive"
        targets = None if self.truth is None else f"{np.mean(self.truth):.2%} of the pixels, from {self.truth_from}"
        facts = {"size": " x ".join(map(str, self.shape)), "bags": bags, "boxes": len(self.boxes) or None}
        facts |= {"targets": targets, "licence": self.licence, "citation": self.citation}
        return _html.view(f"Scene {self.name}", _html.facts(facts), _html.pictures(self._pictures()))

    def _pictures(self) -> Iterator[tuple[str, str]]:
        """Yield captions and small pictures: the photograph, the sources in the colours of values, the truth."""
        if len(self.shape) != 2 or 0 in self.shape:
            return
        step = -(-max(self.shape) // PICTURE)
        if self.rgb is not None:
            yield "colour", data_uri(np.ascontiguousarray(self.rgb[::step, ::step, :3], np.uint8))
        for name, plane in zip(self.source_names, np.moveaxis(self.sources, -1, 0), strict=True):
            yield name, thumbnail(plane, PICTURE)
        if self.truth is not None:
            yield "truth", thumbnail(np.where(self.truth, 1.0, 0.0), PICTURE)

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return int(self.sources.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one source."""
        return self.sources.shape[:-1]

    def bags(self, nan: Literal["raise", "drop"] = "raise") -> Bags:
        """Return the labelled bags, for learning; pixels with NaN are an error unless `nan` is "drop"."""
        segments, labels = self._parts()
        return Bags.from_image(self.sources, segments, labels, nan=nan, weights=self.weights)

    def _parts(self) -> tuple[NDArray[np.integer[Any]], Mapping[int, bool]]:
        if self.segments is None or self.labels is None:
            raise InvalidInputError(
                f"Scene {self.name!r} has no bags; add them with .with_bags(segments, labels).", code="bags-missing"
            )
        return self.segments, self.labels

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a compressed NumPy file (.npz) that `load` reads, replacing it only when complete."""
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        texts = json.dumps({name: getattr(self, name) for name in (*TEXTS, *PLACE)})
        if self.labels is not None:
            arrays["labels"] = np.array([*self.labels.items()], dtype=np.int64).reshape(-1, 2)
        if self.weights is not None:
            arrays["weights"] = np.array([*self.weights.items()], dtype=np.float64).reshape(-1, 2)
        atomic_write(path, lambda file: np.savez_compressed(file, texts=np.array(texts), **arrays))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Scene":
        """Read what `save` wrote. Nothing in the file is executed."""
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                fields: dict[str, Any] = {name: file[name] for name in ARRAYS if name in file}
                texts = json.loads(str(file["texts"]))
                fields |= {name: texts[name] for name in TEXTS}
                fields |= {name: texts[name] for name in PLACE if name in texts}  # since version 1.0
                if "labels" in file:
                    fields["labels"] = {int(segment): bool(label) for segment, label in file["labels"]}
                if "weights" in file:
                    fields["weights"] = {int(segment): float(weight) for segment, weight in file["weights"]}
            return cls(**fields)
        except Exception as error:  # a damaged file makes zlib, zipfile, json and NumPy raise all kinds of errors
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InvalidInputError(
                f"{path} is not a scene file, as Scene.save writes them: {reason}.", code="scene-file"
            ) from error

    def with_bags(
        self,
        segments: NDArray[np.integer[Any]],
        labels: Mapping[int, bool],
        weights: Mapping[int, float] | None = None,
    ) -> "Scene":
        """Return the same scene with these bags."""
        return replace(self, segments=segments, labels=labels, weights=weights)


def join_bags(scenes: Iterable[Scene], one_class: bool = False, nan: Literal["raise", "drop"] = "raise") -> Bags:
    """Join the bags of several scenes, for learning from all of them.

    Scenes without any positive bag may be among them. The whole takes the memory of all their sources.

    Parameters
    ----------
    scenes : iterable of Scene
        Scenes of distinct names, all of the same sources.
    one_class, nan
        As in `Bags.from_instances`.

    Returns
    -------
    Bags
        Bags whose ids are pairs (name of the scene, segment); `instance` is numbered consecutively through all scenes.

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
    weights: dict[int, float] = {}
    ids: list[tuple[str, int]] = []
    names: dict[str, tuple[str, ...]] = {}
    for scene in scenes:
        check_joins(scene, names)
        numbers, own_labels = scene._parts()
        own_segments, where = distinct(numbers)
        code = {int(segment): len(ids) + k for k, segment in enumerate(own_segments)}
        check_segment_labels(own_segments, own_labels, f"labels of scene {scene.name!r}")
        labels |= {code[segment]: label for segment, label in own_labels.items()}
        weights |= {code[segment]: weight for segment, weight in (scene.weights or {}).items() if segment in code}
        sources.append(scene.sources.reshape(-1, scene.n_sources))
        segments.append(where + len(ids))
        ids += [(scene.name, segment) for segment in code]
    if not sources:
        raise InvalidInputError("scenes is empty; give at least one scene.", code="scenes-empty", argument="scenes")
    X, bag = np.concatenate(sources), np.concatenate(segments)
    bags = Bags.from_image(X, bag, labels, nan=nan, one_class=one_class, weights=weights or None)
    bags.ids = [ids[k] for k in bags.ids]  # which from_image numbered
    return bags


def check_joins(scene: Any, known: dict[str, tuple[str, ...]]) -> None:
    """Add the name of a scene (or part) and its source names to the known ones, which must go together."""
    if scene.name in known:
        raise InvalidInputError(
            f"Two scenes are named {scene.name!r}; give them names that distinguish their bags.", code="scenes-names"
        )
    other, source_names = next(iter(known.items()), (scene.name, scene.source_names))
    if scene.source_names != source_names:
        raise InvalidInputError(
            f"Scene {scene.name!r} has sources {', '.join(scene.source_names)}, but scene {other!r} has "
            f"{', '.join(source_names)}; join scenes of the same sources.",
            code="sources-differ",
        )
    known[scene.name] = scene.source_names
