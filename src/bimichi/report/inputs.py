"""The material of a report, checked before any work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_binary, check_boxes, is_xarray
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.evaluate.comparison import Comparison
from bimichi.explain import DataIndices, Identifiability, Summary, data_indices, identifiability, summary
from bimichi.fuse.detections import Detections, detect
from bimichi.integral.integrals import integrate
from bimichi.integral.labelled import aligned, unlabelled
from bimichi.integral.planes import split_planes
from bimichi.measures.base import check_names
from bimichi.rule import FusionRule, as_rule
from bimichi.scenes.checks import check_segment_labels
from bimichi.scenes.scene import Scene

MAX_PIXELS = 1_000_000


class Sampling:
    """The pixels of an image that are in the page: all, or evenly spaced ones if there are more than a million.

    Pixels are taken as they are. Means of several would have fused values that no pixel has.
    """

    def __init__(self, shape: tuple[int, ...], limit: int = MAX_PIXELS) -> None:
        height, width = self.original = (int(shape[0]), int(shape[1]))
        self.shrunk = height * width > limit
        if self.shrunk:
            height = min(height, max(1, int((limit * height / width) ** 0.5)))
            width = min(width, max(1, limit // height))
            height = min(self.original[0], limit // width)
        self.shape = (height, width)

    def __call__(self, plane: NDArray[Any]) -> NDArray[Any]:
        """Return the plane's pixels that are shown."""
        rows, columns = (
            (2 * np.arange(shown) + 1) * full // (2 * shown)
            for shown, full in zip(self.shape, self.original, strict=True)
        )
        return plane[rows[:, None], columns]


MAX_SOURCES = 12
"""All elements are in the page; 13 sources have 1.6 million. Additive measures have few terms, and no such limit."""

MAX_SEGMENTS = 2**16 - 1
BINARY = "0 and 1, -1 and +1, or bool"


@dataclass(frozen=True, eq=False)
class Material:
    """All that a report shows, checked; results that sections share are computed once, when first asked for.

    Arrays have the shape of the image, (height, width), except for boxes: (x, y, width, height) each.
    """

    rule: FusionRule
    planes: list[NDArray[Any]]  # the sources as given
    entered: list[NDArray[Any]]  # the same, scaled and inverted
    integral: NDArray[Any]  # NaN where a source is
    truth: Flags | None
    ignore: Flags | None
    boxes: Floats
    segments: Ints | None  # bags, numbered from 0
    labels: list[bool | None]  # whether each bag is positive, None if it has no label
    comparison: Comparison | None
    title: str
    notes: Mapping[str, str]
    n_jobs: int | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sources."""
        return self.rule.source_names

    @property
    def fused(self) -> NDArray[Any]:
        """The map: C, or its magnitude; or the probability of a rule with a link."""
        return self.rule.output_of(self.integral)

    @property
    def absolute(self) -> bool:
        """True if the fused value is the magnitude of C."""
        return self.rule.output == "magnitude"

    @cached_property
    def detections(self) -> Detections | None:
        """Targets in the map, if the rule says how to find them."""
        decision = self.rule.decision
        return None if decision is None or decision.threshold is None else detect(self.fused, decision)

    @cached_property
    def sampling(self) -> Sampling:
        """The pixels that are in the page."""
        return Sampling(self.integral.shape)

    @cached_property
    def training_use(self) -> Identifiability | None:
        """The use of the measure in training; None if that was not counted."""
        return identifiability(self.rule) if self.rule.usage else None

    @cached_property
    def image_use(self) -> Identifiability:
        """The use of the measure by the pixels of this image."""
        return identifiability(self.rule, self.planes, exact=False, n_jobs=self.n_jobs)

    @cached_property
    def averages(self) -> DataIndices:
        """Importance and interaction on this image."""
        return data_indices(self.rule, self.planes, n_jobs=self.n_jobs)

    @cached_property
    def summary(self) -> Summary:
        """The model in words."""
        return summary(self.rule, self.planes, n_jobs=self.n_jobs)


def gather(model: Any, sources: Any, **options: Any) -> Material:
    """Check what `write_report` was given, `options` by its names; what is not given, or None, a scene may lend."""
    rule = as_rule(model)
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(sources, Scene):
        given, sources = _with_scene(given, sources), sources.sources
    if is_xarray(sources):
        sources, found, like = unlabelled(sources, rule)
        given.setdefault("names", found)
        given |= {what: aligned(given.get(what), like, what) for what in ("truth", "ignore", "segments")}
    truth, ignore, comparison, n_jobs = map(given.get, ("truth", "ignore", "comparison", "n_jobs"))
    if comparison is not None and not isinstance(comparison, Comparison):
        raise InvalidInputError(
            f"comparison must be what compare() returns, got {type(comparison).__name__}.",
            code="comparison-kind",
            argument="comparison",
            value=comparison,
        )
    named = _named(rule, sources, given.get("names"))
    planes = _image(sources, named)
    shape, entered = planes[0].shape, named.enter(planes)
    integral = integrate(entered, named.measure, n_jobs=n_jobs)
    if np.isnan(integral).all():
        raise InvalidInputError(
            "sources have no pixel without NaN, so there is nothing to show.",
            code="no-complete-instance",
            argument="sources",
        )
    numbered, signs = _bags(given.get("segments"), given.get("labels"), shape)
    return Material(
        rule=named,
        planes=planes,
        entered=entered,
        integral=integral,
        truth=None if truth is None else check_binary(_like_source(truth, "truth", "biuf", BINARY, shape), "truth"),
        ignore=None if ignore is None else _like_source(ignore, "ignore", "b", "a bool mask", shape),
        boxes=check_boxes(given.get("boxes", []), "boxes"),
        segments=numbered,
        labels=signs,
        comparison=comparison,
        title=str(given.get("title", "Fusion report")),
        notes={str(name): str(text) for name, text in given.get("notes", {}).items() if text},
        n_jobs=n_jobs,
    )


def _with_scene(options: dict[str, Any], scene: Scene) -> dict[str, Any]:
    """Return the options with what a scene lends: its bags only if neither segments nor labels are there."""
    lent: dict[str, Any] = {"names": scene.source_names, "truth": scene.truth, "ignore": scene.ignore}
    lent |= {"boxes": scene.boxes, "title": scene.name}
    if scene.labels is not None and not {"segments", "labels"} & set(options):
        lent |= {"segments": scene.segments, "labels": scene.labels}
    notes = {"Data": scene.citation, "Licence of the data": scene.licence} | dict(options.get("notes", {}))
    return lent | options | {"notes": notes}


def _named(rule: FusionRule, sources: Any, names: Sequence[str] | None) -> FusionRule:
    """Return the rule, its sources named as given if it has no names of its own."""
    own = rule.source_names
    m = len(own)
    if m > MAX_SOURCES and rule.measure.parts == "elements":
        raise InvalidInputError(
            f"The model has {m} sources, so {3**m:,} elements; reports are offered up to {MAX_SOURCES} sources, and "
            "beyond for additive measures. Use bimichi.explain and bimichi.plot instead.",
            code="sources-many",
        )
    listed = isinstance(sources, list | tuple)
    found = len(sources) if listed else np.shape(sources)[-1] if np.ndim(sources) else 0
    if found != m or (names is not None and len(names) != m):
        given = f"{found} sources" if names is None else f"{len(names)} sources ({', '.join(map(str, names))})"
        raise InvalidInputError(
            f"The model was fitted to {m} sources ({', '.join(own)}), but {given} are given. "
            "Give the same sources, in the same order.",
            code="sources-number",
        )
    if names is None:
        return rule
    given_names, unnamed = check_names(names, m), check_names(None, m)
    if given_names in (own, unnamed):
        return rule
    if own != unnamed:
        order = "in the model's order" if set(own) == set(given_names) else "with names=None if they are the same"
        raise InvalidInputError(
            f"The model was fitted to the sources {', '.join(own)}, but {', '.join(given_names)} are given. "
            f"Give them {order}.",
            code="sources-differ",
        )
    return rule.renamed(given_names)


def _image(sources: Any, rule: FusionRule) -> list[NDArray[Any]]:
    planes = split_planes(sources, rule.n_sources)[1]
    if planes[0].ndim != 2 or planes[0].size == 0:
        raise InvalidInputError(
            f"sources must be an image, (height, width, {len(planes)}), or {len(planes)} planes of shape "
            f"(height, width), got planes of shape {planes[0].shape}.",
            code="sources-not-image",
            argument="sources",
        )
    for name, plane in zip(rule.source_names, planes, strict=True):
        if plane.dtype.kind == "f" and np.isinf(plane).any():
            raise InvalidInputError(
                f"Source {name!r} has infinite values; clip them, or set them to NaN.", code="infinite"
            )
    return planes


def _like_source(values: Any, name: str, kinds: str, rule: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in kinds or array.shape != shape:
        raise InvalidInputError(
            f"{name} must be {rule} in the shape of a source, {shape}, got {array.dtype} of shape {array.shape}.",
            code="plane-shape",
            argument=name,
        )
    return array


def _bags(
    segments: Any, labels: Mapping[int, bool] | None, shape: tuple[int, ...]
) -> tuple[Ints | None, list[bool | None]]:
    """Number the bags from 0, and list their labels."""
    if (segments is None) != (labels is None):
        raise InvalidInputError(
            "segments and labels go together: the bag of each pixel, and the label of each bag.",
            code="segments-with-labels",
        )
    if segments is None or labels is None:
        return None, []
    given = _like_source(segments, "segments", "iu", "whole numbers", shape)
    found, numbered = np.unique(given, return_inverse=True)
    if len(found) > MAX_SEGMENTS:
        raise InvalidInputError(
            f"segments has {len(found):,} bags; up to {MAX_SEGMENTS:,} can be drawn. Leave it out.",
            code="bags-many",
            argument="segments",
        )
    signs = [None if label is None else bool(label) for label in check_segment_labels(found, labels)]
    return numbered.reshape(shape), signs
