"""`Sample`: rows of a scene with targets and without, by which learned fusions are compared on data they have not seen.

Which pixels are targets, and which of them scores count, `bimichi.scenes.labels` says. Where bags alone are labelled,
the largest value of each bag counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi._types import Flags, Floats, Ints
from bimichi.rule import SCALES, scaled_planes
from bimichi.scenes.bags import Bags
from bimichi.scenes.dataset import Part
from bimichi.scenes.labels import PixelLabels, scene_labels
from bimichi.scenes.scene import Scene

TIE = 2e-6
"""Values that differ by less than this share of them are ties: some sixteen steps of float32."""

SMALL = 1e-3
"""Values below this share of the largest one (of 1, if that is larger) are compared as if they were that large."""


class Ranking(NamedTuple):
    """Average precision, and area under the ROC curve."""

    ap: float
    auc: float


class Tally(NamedTuple):
    """Counts at each threshold that targets set, the highest first.

    Attributes
    ----------
    thresholds : array
        The lowest of the values that tie with some target's.
    counts : array of int
        Targets that tie with it.
    alarms, above : array of int
        Others at or above it, and those of them that do not tie with it.
    n_others : int
        All others.
    """

    thresholds: NDArray[Any]
    counts: NDArray[np.int64]
    alarms: NDArray[np.int64]
    above: NDArray[np.int64]
    n_others: int

    @property
    def hits(self) -> NDArray[np.int64]:
        """Targets at or above each threshold."""
        return np.cumsum(self.counts)

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 at each threshold."""
        hits = self.hits
        return np.asarray(2 * hits / (hits + self.alarms + hits[-1]))

    def ranking(self, share: float = 1.0) -> Ranking:
        """Return how well targets are ranked; a tie counts half in the AUC. See `rank`."""
        hits, n_targets = self.hits, int(self.counts.sum())
        ap = float((self.counts * (hits / (hits + share * self.alarms))).sum() / n_targets)
        pairs_twice = int((self.counts * (2 * self.n_others - self.alarms - self.above)).sum())
        return Ranking(ap, pairs_twice / (2 * n_targets * self.n_others))


def tally(targets: NDArray[Any], others: NDArray[Any]) -> Tally:
    """Count targets and others at each threshold; both must have values, without NaN. Sorts `others` in place."""
    others.sort()
    both = np.concatenate([others, np.sort(targets)])
    both.sort(kind="stable")  # which merges what is sorted already
    lowest = _lowest_of_ties(both)
    place, counts = np.unique(np.searchsorted(lowest, targets, side="right") - 1, return_counts=True)
    place, counts = place[::-1], counts[::-1]
    alarms = others.size - np.searchsorted(others, lowest[place], side="left")
    after = np.minimum(place + 1, len(lowest) - 1)
    above = np.where(after > place, others.size - np.searchsorted(others, lowest[after], side="left"), 0)
    return Tally(lowest[place], counts, alarms, above, others.size)


def rank(targets: NDArray[Any], others: NDArray[Any], share: float = 1.0) -> Ranking:
    """Rank targets among others, each of which stands for `share` times as many instances as a target.

    Ties count half in the AUC; NaN if either is missing. Sorts `others` in place.

    Examples
    --------
    >>> rank(np.array([0.2, 0.8]), np.array([-0.9, 0.5]))
    Ranking(ap=0.8333333333333333, auc=0.75)
    >>> rank(np.array([0.1 + 0.2, 0.8]), np.array([-0.9, 0.3]))
    Ranking(ap=0.8333333333333333, auc=0.875)
    """
    if not targets.size or not others.size:
        return Ranking(np.nan, np.nan)
    return tally(targets, others).ranking(share)


def _lowest_of_ties(values: NDArray[Any]) -> NDArray[Any]:
    """Return the lowest of each group of ties among sorted values.

    A group begins after a gap, so that rounding does not divide it; where there are no gaps, after each `TIE`.
    """
    values = values[np.append(True, values[1:] != values[:-1])]
    if values.dtype.kind != "f" or len(values) == 1:
        return values
    exact = values.astype(np.float64)
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    width = TIE * np.maximum(size, SMALL * min(1.0, size.max()) or 1.0)
    begins = np.append(True, np.diff(exact) > width[1:])
    origin = np.maximum.accumulate(np.where(begins, np.arange(len(exact)), 0))
    within = np.subtract(exact, exact[origin], out=np.zeros_like(exact), where=np.isfinite(exact))
    lowest: NDArray[Any] = values[begins | np.append(False, np.diff(np.floor(within / width[origin])) > 0)]
    return lowest


class Scale(NamedTuple):
    """``clip((x - centre) * factor, -1, 1)``, per source."""

    centre: Floats
    factor: Floats

    def bags(self, bags: Bags) -> Bags:
        """Return the same bags with sources mapped."""
        return replace(bags, X=self.rows(bags.X))

    def rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return instances with sources mapped."""
        return np.stack(scaled_planes(X.T, self.centre, self.factor, -1.0), axis=1)


def learn_scale(low: Floats, high: Floats, scale: str | None) -> Scale:
    """Learn the map of this kind from the least and the greatest value of each source; None means none."""
    m = len(low)
    if check_choice(scale, "scale", (None, *SCALES)) is None:
        return Scale(np.zeros(m), np.ones(m))
    if scale == "minmax":
        centre, reach = low / 2 + high / 2, high / 2 - low / 2
    else:
        centre, reach = np.zeros(m), np.maximum(-low, high)
    return Scale(centre, np.divide(1.0, reach, out=np.zeros(m), where=reach > np.finfo(np.float64).tiny))


PlaneScale = Callable[[NDArray[Any]], NDArray[Any]]
"""Makes a source of a plane by comparing the values of the scene, such as `bimichi.sources.rarity`."""

ROOM = 2_000_000
"""Rows that are kept of all scenes together."""

FEW = 100_000
"""Of these, how many are learned from where each row counts for itself."""

PER_BAG = 512  # rows of a bag; those with the extremes of each source are among them


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one scene, or of one group of bags.

    Attributes
    ----------
    name : str
        Of the scene or the group.
    targets, others : ndarray of shape (n, n_sources)
        Instances inside and outside; in random order, or bag by bag.
    shares : tuple of float
        How many instances each row of the two stands for.
    sure : ndarray of bool, shape (n_targets,), optional
        Which targets are scored, as in `bimichi.scenes.labels.scored_pixels`; all if there are none.
    offsets : tuple of ndarray, optional
        Where bags start, and the number of rows: only bags are labelled, and their largest value counts.
    """

    name: str
    targets: NDArray[Any]
    others: NDArray[Any]
    shares: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[Ints, Ints] | None = None
    sure: Flags | None = None

    @property
    def has_targets(self) -> bool:
        """Return whether it can be scored."""
        return len(self.targets) > 0 and len(self.others) > 0

    def with_signs(self, signs: Floats) -> "Sample":
        """Return the same rows with each source multiplied by its sign."""
        kind = self.targets.dtype.type
        flip = np.asarray(signs, dtype=kind)
        return self if (signs == 1).all() else replace(self, targets=self.targets * flip, others=self.others * flip)

    def score(self, targets: NDArray[Any], others: NDArray[Any]) -> Ranking:
        """Return how well these values of the rows rank targets above the rest."""
        if self.sure is not None and self.sure.any():
            targets = targets[self.sure]
        return rank(*self.decisive(targets, others), self.shares[1] / self.shares[0])

    def decisive(self, targets: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return copies of the values that count: all of them, or the largest of each bag."""
        if self.offsets is None:
            return targets.copy(), others.copy()
        ends = zip((targets, others), self.offsets, strict=True)
        first, second = (np.maximum.reduceat(values, at[:-1]) if len(values) else values for values, at in ends)
        return first, second

    def few(self, limit: int) -> "Sample":
        """Return at most so many rows of each kind; bags stay whole."""
        if self.offsets is not None or max(len(self.targets), len(self.others)) <= limit:
            return self
        kept = [rows[:limit] for rows in (self.targets, self.others)]
        number = (len(self.targets), len(self.others))
        first, second = (share * n / max(1, len(k)) for share, n, k in zip(self.shares, number, kept, strict=True))
        sure = None if self.sure is None else self.sure[:limit]
        return replace(self, targets=kept[0], others=kept[1], shares=(first, second), sure=sure)

    def as_bags(self) -> Bags:
        """Return targets as one positive bag and the rest as a negative one; each row counts as often as its share."""
        sizes = np.array([len(self.targets), len(self.others)])
        X, there = np.concatenate([self.targets, self.others]), sizes > 0
        labels, offsets = np.array([True, False])[there], np.concatenate([[0], np.cumsum(sizes[there])])
        ids = [(self.name, label) for label in labels.tolist()]
        return Bags(X, offsets, labels, np.ones(len(ids)), np.repeat(self.shares, sizes), np.arange(len(X)), ids)


def sample_pixels(name: str, rows: NDArray[Any], labels: PixelLabels, room: int = ROOM) -> Sample:
    """Draw at most `room` rows of targets, and of what is none; always the same ones."""
    rng, flat = np.random.default_rng(0), labels.ravel()
    drawn, shares = [], []
    sure: Flags | None = None
    for wanted in (flat > 0, flat < 0):
        which = rng.permutation(np.flatnonzero(wanted))
        kept = which[: max(1, room)]
        sure = flat[kept] == 2 if sure is None else sure
        drawn.append(rows.reshape(-1, rows.shape[-1])[kept])
        shares.append(len(which) / max(1, len(kept)))
    return Sample(name, drawn[0], drawn[1], (shares[0] or 1.0, shares[1] or 1.0), sure=sure)


def sample_bags(name: str, bags: Bags) -> Sample:
    """Keep up to 512 rows of every bag, among them those with the extremes of each source."""
    if len(bags) == len(bags.X):
        return sample_pixels(name, bags.X, np.where(bags.labels, np.int8(1), np.int8(-1)))
    kept, sizes = [], np.empty(len(bags), np.int64)
    for b, (start, stop) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        which = np.arange(start, stop)
        if len(which) > PER_BAG:
            part = bags.X[start:stop]
            ends = np.concatenate([part.argmin(axis=0), part.argmax(axis=0)])
            spread = np.linspace(0, len(which) - 1, PER_BAG - len(ends)).astype(np.int64)
            which = start + np.unique(np.concatenate([ends, spread]))
        kept.append(which)
        sizes[b] = len(which)
    sides, offsets = [], []
    for label in (True, False):
        chosen = np.flatnonzero(bags.labels == label)
        rows = np.concatenate([kept[b] for b in chosen]) if len(chosen) else np.empty(0, np.int64)
        sides.append(bags.X[rows])
        offsets.append(np.concatenate([[0], np.cumsum(sizes[chosen])]))
    return Sample(name, sides[0], sides[1], offsets=(offsets[0], offsets[1]))


def bag_groups(bags: Bags, groups: Sequence[Any] | None, n: int) -> Ints:
    """Return the group of each bag: as given, the scene if ids name one, or else n groups of neighbouring bags."""
    if groups is None and all(isinstance(name, tuple) and len(name) == 2 for name in bags.ids):
        scenes = [name[0] for name in bags.ids]
        groups = scenes if len(set(scenes)) > 1 else None
    if groups is not None:
        number: dict[Any, int] = {}
        return np.array([number.setdefault(group, len(number)) for group in groups], dtype=np.int64)
    numbers = np.empty(len(bags), np.int64)
    for label in (True, False):
        which = np.flatnonzero(bags.labels == label)
        numbers[which] = np.arange(len(which)) * n // max(1, len(which))
    return numbers


def select_bags(bags: Bags, which: Flags | Ints) -> Bags:
    """Return some of the bags."""
    chosen = np.flatnonzero(which) if np.asarray(which).dtype == bool else np.asarray(which)
    sizes = np.diff(bags.offsets)[chosen]
    rows = np.concatenate([np.arange(bags.offsets[b], bags.offsets[b + 1]) for b in chosen] or [np.empty(0, np.int64)])
    ids = [bags.ids[b] for b in chosen]
    picked = (bags.labels[chosen], bags.weights[chosen], bags.counts[rows], bags.instance[rows], ids)
    return Bags(bags.X[rows], np.concatenate([[0], np.cumsum(sizes)]), *picked)


def strips(scene: Scene, n: int) -> Ints:
    """Divide an image along its longer side so that each part has about as many targets; the part of every pixel.

    There are no more parts than targets, but two if there is one: it is divided in its middle.
    """
    axis = int(scene.shape[1] >= scene.shape[0])
    if len(scene.boxes):
        starts, sizes = scene.boxes[:, 1 - axis], scene.boxes[:, 3 - axis]
        middles = starts + sizes / 2 if len(starts) > 1 else starts + sizes * np.array([0.25, 0.75])
    elif scene.labels and scene.segments is not None:
        named = [segment for segment, label in scene.labels.items() if label]
        places = [np.nonzero(scene.segments == segment)[axis] for segment in named]
        middles = np.array([place.mean() for place in places])
        if len(places) == 1:
            middles = np.quantile(places[0], [0.25, 0.75])
    else:
        middles = np.empty(0)
    groups = np.array_split(np.sort(middles), n)
    cuts = [(a[-1] + b[0]) / 2 for a, b in pairwise(groups) if len(a) and len(b)]
    along = np.searchsorted(np.unique(cuts), np.arange(scene.shape[axis]) + 0.5)
    return np.broadcast_to(along if axis else along[:, None], scene.shape)


def grouped_pixels(
    scene: Scene, rows: NDArray[Any], labels: PixelLabels, region: Ints | None, room: int = ROOM
) -> list[Sample]:
    """Return a sample of each region of an image, or of all of it; `rows` are its sources, as they are or scaled."""
    if region is None:
        return [sample_pixels(scene.name, rows, labels, room)]
    parts = [np.where(region == g, labels, np.int8(0)) for g in np.unique(region)]
    return [sample_pixels(f"{scene.name}, part {g}", rows, part, room) for g, part in enumerate(parts, 1)]


def grouped_bags(name: str, bags: Bags, group: Ints | None) -> list[Sample]:
    """Return a sample of each group of bags, or of all of them."""
    if group is None:
        return [sample_bags(name, bags)]
    return [
        sample_bags(f"{name}, part {k}".lstrip(", "), select_bags(bags, group == g))
        for k, g in enumerate(np.unique(group), 1)
    ]


def scaled_sample(sample: Sample, scale: Scale) -> Sample:
    """Return the same rows with sources mapped by a learned scale."""
    return replace(sample, targets=scale.rows(sample.targets), others=scale.rows(sample.others))


class Division(NamedTuple):
    """The division of parts into units: bags as their `groups` say, single scenes into `n` strips or groups of bags."""

    n: int
    groups: Any = None

    def regions(self, part: Part) -> tuple[Ints | None, Ints | None]:
        """Return the group of every pixel, and that of every bag, of a part; None where all are in one."""
        if part.scene is None:
            assert part.bags is not None
            return None, bag_groups(part.bags, self.groups, self.n)
        if self.n < 2 or len(part.scene.shape) != 2:
            return None, None
        region = strips(part.scene, self.n)
        if part.bags is None:
            return region, None
        middles = (part.bags.offsets[:-1] + part.bags.offsets[1:]) // 2
        return region, region.ravel()[part.bags.instance[middles]]

    def samples(self, part: Part, room: int, scale: Scale | None = None, signs: Floats | None = None) -> list[Sample]:
        """Return a sample of each unit of a part, its sources scaled and inverted."""
        region, group = self.regions(part)
        labels = None if part.scene is None else scene_labels(part.scene)
        if part.scene is None or labels is None:
            if part.bags is None:
                none = np.empty((0, part.n_sources))
                return [Sample(part.name, none, none)]
            return grouped_bags(part.name, entered(part.bags, scale, signs), group)
        samples = grouped_pixels(part.scene, part.scene.sources, labels, region, room)
        samples = samples if scale is None else [scaled_sample(sample, scale) for sample in samples]
        return samples if signs is None else [sample.with_signs(signs) for sample in samples]

    def ranked(self, part: Part, room: int, scale: Scale | None, signs: Floats, rare: PlaneScale) -> list[Sample]:
        """Return the same with each value by how rare it is in the scene, if more than bags are labelled."""
        labels = None if part.scene is None else scene_labels(part.scene)
        if part.scene is None or labels is None:
            return self.samples(part, room, scale, signs)
        planes = zip(np.moveaxis(part.scene.sources, -1, 0), signs, strict=True)
        rows = np.stack([rare(plane if sign > 0 else -plane) for plane, sign in planes], axis=-1)
        return grouped_pixels(part.scene, rows, labels, self.regions(part)[0], room)

    def bags(self, part: Part, n_units: int, scale: Scale | None, signs: Floats) -> list[Bags | None]:
        """Return the bags of each unit; None where there are none."""
        if part.bags is None:
            return [None] * n_units
        bags, group = entered(part.bags, scale, signs), self.regions(part)[1]
        if group is None:
            return [bags, *[None] * (n_units - 1)]
        numbers = np.unique(group) if part.scene is None else range(n_units)
        chosen = [select_bags(bags, group == g) for g in numbers]
        return [some if len(some) else None for some in chosen]


def entered(bags: Bags, scale: Scale | None, signs: Floats | None) -> Bags:
    """Return bags as they enter the integral: scaled, and inverted."""
    scaled = bags if scale is None else scale.bags(bags)
    return scaled if signs is None else scaled.with_signs(signs)
