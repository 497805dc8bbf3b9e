"""Regions to label next: those that training leaves open, that contradict their labels, or that are uncertain."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects

from bimichi._checks import check_integer
from bimichi._html import number
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import Explanation, percent, prepare
from bimichi.explain.sentences import words_of
from bimichi.explain.stability import Stability
from bimichi.explain.uncertainty import Uncertainty, uncertainty, used_parts
from bimichi.rule import FusionRule, as_rule
from bimichi.scenes.scene import Scene

BLOCKS = 300
"""About how many blocks an image is divided into."""

SMALLEST = 8
"""The least side of a block, in pixels."""

HANDFUL = 4
"""A region's peak is its fourth highest value, so that no single pixel decides; of fewer than 12 pixels, a higher."""

Box = tuple[int, int, int, int]


def blocks(shape: tuple[int, int]) -> Ints:
    """Divide an image into about `BLOCKS` squares, numbered from 0; fewer of a small image."""
    side = max(SMALLEST, round((shape[0] * shape[1] / BLOCKS) ** 0.5))
    row, column = (np.arange(length) // side for length in shape)
    return np.asarray(row[:, None] * (column[-1] + 1) + column, dtype=np.int64)


def check_regions(regions: Any, shape: tuple[int, ...], name: str) -> Ints:
    """Return numbers of regions, below 0 where there is none, checked."""
    array = np.asarray(regions)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"regions of scene {name!r} must be whole numbers of the scene's shape {shape}, got {array.dtype} of shape "
            f"{array.shape}. bimichi.scenes.superpixels makes them.",
            code="regions-shape",
            argument="regions",
        )
    return array.astype(np.int64, copy=False)


def peaks(values: NDArray[Any], regions: Ints, n_regions: int) -> tuple[Floats, Ints]:
    """Return for each region the value that a handful of its pixels reach, and one that has it.

    Pixels of value NaN, and those of no region (below 0), are left out; the peak of a region without any is NaN, and
    its pixel -1.
    """
    flat, number = np.ravel(values), regions.ravel()
    at = np.flatnonzero((number >= 0) & ~np.isnan(flat))
    at = at[np.lexsort((flat[at], number[at]))]
    counts = np.bincount(number[at], minlength=n_regions)
    place = np.cumsum(counts) - np.minimum(HANDFUL, 1 + counts // 4)
    pixel = np.full(n_regions, -1)
    some = counts > 0
    pixel[some] = at[place[some]]
    heights = np.full(n_regions, np.nan)
    heights[some] = flat[pixel[some]]
    return heights, pixel


def boxes_of(regions: Ints) -> list[Box | None]:
    """Return the box (x, y, width, height) around each region, None for numbers without pixels."""
    return [
        place and (place[1].start, place[0].start, place[1].stop - place[1].start, place[0].stop - place[0].start)
        for place in find_objects(regions + 1)
    ]


def touch(first: Box, second: Box) -> bool:
    """Return whether two boxes overlap or lie side by side."""
    return all(
        first[axis] <= second[axis] + second[axis + 2] and second[axis] <= first[axis] + first[axis + 2]
        for axis in (0, 1)
    )


def cover_same_place(first: Box, second: Box) -> bool:
    """Return whether two boxes have more than half of the smaller one in common."""
    common = 1
    for axis in (0, 1):
        end = min(first[axis] + first[axis + 2], second[axis] + second[axis + 2])
        common *= max(0, end - max(first[axis], second[axis]))
    return 2 * common > min(first[2] * first[3], second[2] * second[3])


Kind = Literal["open", "conflict", "uncertain"]

MANY = 101
"""Of more positive bags than this, quantiles stand for all of them."""

LEAST = 0.05
"""What scores less is not worth a label."""

NEARNESS = 0.5
"""What a region at the threshold scores, if nothing is known about refits."""


class Suggestion(NamedTuple):
    """A region that is worth a label, or a second look.

    Attributes
    ----------
    scene : int
        Which of the scenes, from 0.
    name : str
        The name of that scene.
    box : (int, int, int, int)
        The box (x, y, width, height) around the region, in pixels.
    kind : {"open", "conflict", "uncertain"}
        Why: see `suggest`.
    score : float
        Between 0 and 1: how much there is to gain, as `reason` says.
    reason : str
        A sentence with the numbers.
    """

    scene: int
    name: str
    box: Box
    kind: Kind
    score: float
    reason: str


@dataclass(frozen=True, eq=False)
class View:
    """A scene, its regions, and the peaks of what is ranked."""

    index: int
    scene: Scene
    intervals: Uncertainty
    regions: Ints
    boxes: list[Box | None]
    unlabelled: Ints  # regions, without the pixels that someone has labelled
    positive: tuple[Ints, Floats, list[Box | None]]  # numbers of bags, their peaks, and boxes by number
    negative: Floats  # peaks of the negative pixels of each region
    assumed: Flags  # of each region, whether all of those are assumed to be


def view_of(index: int, scene: Scene, intervals: Uncertainty, drawn: Any, assumed: Any) -> View:
    """Return a scene with the peaks of its regions and bags, after checking them."""
    if len(scene.shape) != 2:
        raise InvalidInputError(
            f"Scene {scene.name!r} has sources of shape {scene.shape}; suggest takes images, (height, width).",
            code="sources-not-image",
        )
    shape = scene.shape[0], scene.shape[1]
    regions = blocks(shape) if drawn is None else check_regions(drawn, shape, scene.name)
    if assumed is not None and (np.shape(assumed) != shape or np.asarray(assumed).dtype != bool):
        raise InvalidInputError(
            f"assumed of scene {scene.name!r} must be an array of bool of its shape {shape}.",
            code="assumed-shape",
            argument="assumed",
        )
    if scene.ignore is not None:
        regions = np.where(scene.ignore, -1, regions)
    n = int(regions.max(initial=-1)) + 1
    bags, label = _labels(scene)
    guessed = (label < 0) & (False if assumed is None else np.asarray(assumed))
    positive = np.where(label > 0, bags, -1)
    heights = peaks(intervals.fused, positive, int(positive.max(initial=-1)) + 1)[0]
    numbers = np.flatnonzero(~np.isnan(heights))
    said = np.bincount(regions[(regions >= 0) & (label < 0) & ~guessed], minlength=n)
    return View(
        index,
        scene,
        intervals,
        regions,
        boxes_of(regions),
        np.where((label == 0) | guessed, regions, -1),
        (numbers, heights[numbers], boxes_of(positive)),
        peaks(intervals.fused, np.where(label < 0, regions, -1), n)[0],
        said == 0,
    )


def _labels(scene: Scene) -> tuple[Ints, NDArray[np.int8]]:
    """Return the bag of each pixel, renumbered from 0, and +1, -1 or 0 for positive, negative and unlabelled ones."""
    if scene.segments is None or scene.labels is None:
        return np.full(scene.shape, -1), np.zeros(scene.shape, np.int8)
    names, where = np.unique(scene.segments, return_inverse=True)
    by_bag = np.array([0 if name not in scene.labels else (1 if scene.labels[name] else -1) for name in names.tolist()])
    where = where.reshape(scene.shape)
    return where.astype(np.int64), by_bag[where].astype(np.int8)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The peaks of all positive bags and of all negative regions, sorted."""

    positive: Floats
    negative: Floats

    @classmethod
    def of(cls, views: Sequence[View]) -> "Ranks":
        """Return those of all scenes."""
        negative = np.concatenate([view.negative for view in views])
        return cls(
            np.sort(np.concatenate([view.positive[1] for view in views])), np.sort(negative[~np.isnan(negative)])
        )

    def rise(self, value: Floats) -> Floats:
        """Return how far values rise from the median of negative regions to positive bags, averaged over these."""
        if not len(self.positive) or not len(self.negative):
            return np.zeros_like(value)
        rest = np.median(self.negative)
        some = np.quantile(self.positive, np.linspace(0, 1, MANY)) if len(self.positive) > MANY else self.positive
        above = (value - rest)[:, None]
        step = np.broadcast_to(some - rest, (len(value), len(some)))
        # A bag that is no higher than the rest is reached by whatever is above the rest.
        share = np.divide(above, step, out=(above > 0) + np.zeros(step.shape), where=step > 0)
        return np.asarray(np.clip(share, 0.0, 1.0).mean(axis=1))

    def negative_above(self, value: Any) -> Any:
        """Return the share of negative regions at or above a value; 0 if there are none."""
        return 1 - np.searchsorted(self.negative, value) / max(1, len(self.negative))

    def near(self, value: Floats, threshold: float) -> Floats:
        """Return 1 at a threshold, falling to 0 at the median of positive bags above it, and of negative regions below.

        0 everywhere if there are none, or if a median is on the wrong side.
        """
        if not len(self.positive) or not len(self.negative):
            return np.zeros_like(value)
        reach = np.where(value > threshold, np.median(self.positive) - threshold, threshold - np.median(self.negative))
        distance = np.divide(np.abs(value - threshold), reach, out=np.ones_like(value), where=reach > 0)
        return np.asarray(np.clip(1 - distance, 0.0, 1.0))

    @property
    def threshold(self) -> float:
        """The value that the largest share of positive bags reaches that negative regions do not."""
        if not len(self.positive) or not len(self.negative):
            return float("nan")
        gain = 1 - np.arange(len(self.positive)) / len(self.positive) - self.negative_above(self.positive)
        return float(self.positive[np.argmax(gain)])


Candidate = tuple[Suggestion, str]
"""A suggestion, and the open element that it asks about; empty if none."""


def candidates_of(view: View, ranks: Ranks, rule: FusionRule, open_parts: Flags, limit: int) -> Iterator[Candidate]:
    """Yield every suggestion that a scene gives reason for."""
    for bag, height in zip(*view.positive[:2], strict=True):
        missed = float(ranks.negative_above(height)) if len(ranks.negative) else 0.0
        reason = (
            f"Labelled as a target, but fused at {number(float(height))} only: {percent(missed)} of the regions that "
            "are not targets are as high. Is the label right, and does any source show it?"
        )
        yield _candidate(view, view.positive[2][bag], "conflict", missed, reason)
    score = np.nan_to_num(ranks.rise(view.negative))
    usual = [number(float(np.median(side))) for side in (ranks.positive, ranks.negative) if len(side)]
    for region in np.flatnonzero(score >= LEAST).tolist():
        label = "Nothing is drawn here, so it counts as no target" if view.assumed[region] else "Labelled as no target"
        reason = (
            f"{label}, but fused at {number(float(view.negative[region]))}, where labelled targets have {usual[0]} and "
            f"the rest {usual[1]} as a rule. A target without a label, or a false alarm?"
        )
        yield _candidate(view, view.boxes[region], "conflict", score[region], reason)
    yield from _uncertain(view, ranks, rule)
    yield from _open(view, rule, open_parts, 4 * limit)


def _candidate(view: View, box: Box | None, kind: Kind, score: float, reason: str, topic: str = "") -> Candidate:
    assert box is not None  # what has a peak has pixels
    return Suggestion(view.index, view.scene.name, box, kind, round(float(score), 6), reason), topic


def _uncertain(view: View, ranks: Ranks, rule: FusionRule) -> Iterator[Candidate]:
    if view.intervals.spread is None:
        height, pixel = peaks(view.intervals.fused, view.unlabelled, len(view.boxes))
        threshold = None if rule.decision is None else rule.decision.threshold
        threshold = ranks.threshold if threshold is None else threshold
        score = NEARNESS * np.where(np.isnan(height), 0.0, ranks.near(height, threshold))
        says = f"Fused at {{0}}, near {number(threshold)}, which separates the labelled targets from the rest best."
    else:
        height, pixel = peaks(view.intervals.spread, view.unlabelled, len(view.boxes))
        score = np.nan_to_num(height)
        ends_of: list[Any] = [view.intervals.spread_lower, view.intervals.spread_upper]
        low, high = (np.ravel(end)[pixel] for end in ends_of)
        says = "Had other regions been labelled, the fused value here could have been anything from {1} to {2}."
    for region in np.flatnonzero(score >= LEAST).tolist():
        ends = ["", ""] if view.intervals.spread is None else [number(float(end[region])) for end in (low, high)]
        reason = says.format(number(float(height[region])), *ends)
        yield _candidate(view, view.boxes[region], "uncertain", score[region], reason)


def _open(view: View, rule: FusionRule, open_parts: Flags, most: int) -> Iterator[Candidate]:
    """Yield the regions of the widest intervals, each with the open element that its pixel needs most."""
    width, pixel = peaks(view.intervals.width, view.regions, len(view.boxes))
    score = np.nan_to_num(width)
    best = [k for k in np.argsort(-score, kind="stable")[:most].tolist() if score[k] >= LEAST]
    if not best:
        return
    _, parts, planes = prepare(rule, view.scene.sources.reshape(-1, rule.n_sources)[pixel[best]])
    rows = planes.stacked(slice(0, len(best))).T
    words = words_of(rule)
    for region, x in zip(best, rows, strict=True):
        codes, weights = parts.steps(x)
        needed = weights * open_parts[codes]
        element = int(codes[np.argmax(needed)]) if len(codes) else 0
        up, down = ([rule.source_names.index(name) for name in side] for side in rule.measure.sets(element))
        together = [words.at(k, True) for k in up] + [words.at(k, False) for k in down]
        low, high = (
            number(float(np.ravel(end)[pixel[region]])) for end in (view.intervals.lower, view.intervals.upper)
        )
        reason = (
            f"No training pixel shows {' and '.join(together)} as this one does ({parts.label(element)} is open): with "
            f"the same fit, the fused value could be anything from {low} to {high}."
        )
        yield _candidate(view, view.boxes[region], "open", score[region], reason, parts.label(element))


AGAIN = 0.5
"""A region that asks about the same element as an earlier one counts by so much less, each time."""


@dataclass(frozen=True, repr=False)
class Suggestions(Explanation, Sequence[Suggestion]):
    """Suggestions, the best first; a sequence that prints as a table."""

    items: tuple[Suggestion, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, which: Any) -> Any:
        return self.items[which]

    def _head(self) -> str:
        return f"{len(self)} suggestions"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        rows = [(item.name, " ".join(map(str, item.box)), item.kind, item.score, item.reason) for item in self.items]
        return {name: [row[k] for row in rows] for k, name in enumerate(("scene", "box", "kind", "score", "reason"))}


def suggest(
    model: Any,
    scenes: Scene | Sequence[Scene],
    *,
    regions: Any = None,
    assumed: Any = None,
    limit: int = 20,
    training: Any = None,
    stability: Stability | None = None,
    n_jobs: int | None = None,
) -> Suggestions:
    """Return the regions of images that are most worth labelling, the best first.

    Parameters
    ----------
    model, n_jobs
        As in `contributions`.
    scenes : Scene or sequence of Scene
        Images; labelled bags, where there are any, are those of `Scene.segments` and `Scene.labels`. Pixels of
        `Scene.ignore` are left out.
    regions : array of int, shape (height, width), or one for each scene, optional
        What may be suggested besides positive bags: superpixels, for instance; below 0 for none. By default, about 300
        square blocks of each image.
    assumed : array of bool, shape (height, width), or one for each scene, optional
        Pixels that are negative because nothing is drawn there, not because anyone has said so. They may be suggested
        as uncertain, as unlabelled ones are.
    limit : int, default=20
        How many suggestions at most.
    training, stability
        As in `uncertainty`.

    Returns
    -------
    Suggestions
        Of these kinds:

        - "open": pixels that need elements which no training instance used. The score is the width of the interval of
          the fused value over all measures that fit alike, as a share of the range.
        - "conflict": a positive bag that ranks below negative regions, whose share is the score; or a negative region
          that is nearly as high as positive bags: the score is how far it rises from the median of all negative regions
          to a positive bag, averaged over these. Either the label is wrong, or the sources do not show what
          distinguishes it.
        - "uncertain": with `stability`, the score is the spread of the fused value over refits, as a share of the
          range; without, how near the region is to the threshold (that of the rule's decision, or else the one that
          separates positive bags from negative regions best), 0.5 at most, since that says less.

        The value that counts of a region or bag is its fourth highest, so that no single pixel decides. Of regions of
        one kind that touch, and of all that cover the same place, the best is listed. Of those that ask about the same
        open element, each counts half as much as the one before. No kind takes more than half of the places while there
        are others. What scores below 0.05 is left out.
    """
    rule = as_rule(model)
    check_integer(limit, "limit")
    images = [scenes] if isinstance(scenes, Scene) else list(scenes)
    views = []
    divided, guessed = _per_scene(regions, images, "regions"), _per_scene(assumed, images, "assumed")
    open_parts = ~used_parts(rule, training, n_jobs)
    for k, scene in enumerate(images):
        intervals = uncertainty(rule, scene.sources, training=training, stability=stability, n_jobs=n_jobs)
        views.append(view_of(k, scene, intervals, divided[k], guessed[k]))
    ranks = Ranks.of(views)
    candidates = [candidate for view in views for candidate in candidates_of(view, ranks, rule, open_parts, limit)]
    return Suggestions(tuple(_best(candidates, limit)))


def _per_scene(values: Any, scenes: Sequence[Scene], argument: str) -> list[Any]:
    """Return one array for each scene, or None; a lone array belongs to the only scene."""
    if not scenes:
        raise InvalidInputError("scenes is empty; give at least one scene.", code="scenes-empty", argument="scenes")
    if values is None:
        return [None] * len(scenes)
    arrays = list(values) if isinstance(values, list | tuple) else [values]
    if len(arrays) != len(scenes):
        raise InvalidInputError(
            f"{argument} must have one array for each of {len(scenes)} scenes, got {len(arrays)}.",
            code="arrays-per-scene",
            argument=argument,
        )
    return arrays


def _best(candidates: Sequence[Candidate], limit: int) -> list[Suggestion]:
    """Return the best, without those that touch one of the same kind, or cover the same place as one of another.

    Open elements that repeat count less. No kind takes more than half of the places while others can fill them.
    """
    left = sorted(candidates, key=lambda candidate: (-candidate[0].score, candidate[0].scene, candidate[0].box))
    chosen: list[Suggestion] = []
    spare: list[Suggestion] = []
    topics: Counter[str] = Counter()
    while left and len(chosen) < limit:
        scores = [suggestion.score * AGAIN ** topics[topic] for suggestion, topic in left]
        first = int(np.argmax(scores))
        if scores[first] < LEAST:
            break
        taken, topic = left.pop(first)
        alike = [other for other in [*chosen, *spare] if other.kind == taken.kind]
        near = [other for other in [*chosen, *spare] if other.scene == taken.scene]
        if any((touch if other.kind == taken.kind else cover_same_place)(other.box, taken.box) for other in near):
            continue
        topics[topic] += bool(topic)
        (chosen if len(alike) < (limit + 1) // 2 else spare).append(taken._replace(score=scores[first]))
    return sorted([*chosen, *spare[: limit - len(chosen)]], key=lambda suggestion: -suggestion.score)
