"""`Bags`: instances grouped into labelled bags, however users hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi import _html
from bimichi._checks import check_choice, is_xarray, refuse_masked
from bimichi._html import Cell, Table, number
from bimichi._jit import jit
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError, warn
from bimichi.integral.labelled import aligned, unlabelled
from bimichi.integral.planes import SMALL_CHUNK, Planes, check_n_jobs, run_chunks
from bimichi.scenes.checks import (
    by_appearance,
    check_labels,
    check_rows,
    check_segment_labels,
    check_weights,
    distinct,
    group,
    one_per,
)

FRONT_LIMIT = 256  # how many kept instances a further one is compared with; more would take time and drop little
RUN = 16  # rows that are sorted by insertion
PROBE = 16  # then each 16th further one is tried first; if few of these are dropped, all the others stay


@jit
def merge_equal(X, bits, offsets, counts):
    """Indices of the first of equal rows within each bag, what they count together, and new offsets.

    `bits` is X as unsigned integers of the same size. X must have no -0, which equals 0 in other bits.
    """
    n, m = X.shape
    first = np.empty(n, np.int64)
    merged = np.empty(n, np.float64)
    starts = np.zeros(offsets.size, np.int64)
    longest = 1
    for b in range(offsets.size - 1):
        longest = max(longest, offsets[b + 1] - offsets[b])
    size = 1
    while size < 2 * longest:
        size *= 2
    table = np.full(size, -1, np.int64)  # row numbers of the current bag, by hash, in `first`
    kept = 0
    for b in range(offsets.size - 1):
        for i in range(offsets[b], offsets[b + 1]):
            h = np.uint64(1469598103934665603)
            for k in range(m):
                h = (h ^ np.uint64(bits[i, k])) * np.uint64(1099511628211)
                h ^= h >> np.uint64(32)
            h = (h ^ (h >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # low bits of round numbers are all alike
            slot = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(size - 1))
            while table[slot] >= starts[b]:
                same = True
                for k in range(m):
                    same &= X[first[table[slot]], k] == X[i, k]
                if same:
                    break
                slot = (slot + 1) & (size - 1)
            if table[slot] >= starts[b]:
                merged[table[slot]] += counts[i]
            else:
                table[slot] = kept
                first[kept] = i
                merged[kept] = counts[i]
                kept += 1
        starts[b + 1] = kept
    return first[:kept].copy(), merged[:kept].copy(), starts


@jit
def undominated(X, offsets, zero_bound):
    """Mark rows that no other row of their bag is above of; without the zero bound only equal peaks compare."""
    n, m = X.shape
    keep = np.ones(n, np.bool_)
    peak = np.zeros(n, X.dtype)
    total = np.zeros(n, X.dtype)
    for i in range(n):
        for k in range(m):
            peak[i] = max(peak[i], abs(X[i, k]))
            total[i] -= X[i, k]
    front = np.empty((FRONT_LIMIT, m + 1), X.dtype)  # the row, and its peak
    rows, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    for b in range(offsets.size - 1):
        order = rows[offsets[b] : offsets[b + 1]]
        for k in range(order.size):
            order[k] = offsets[b] + k
        _sort(order, total, spare)
        n_front, at = 0, 0
        while at < order.size and n_front < FRONT_LIMIT:
            i = order[at]
            at += 1
            keep[i] = not _below(X[i], peak[i], front[:n_front], zero_bound)
            if keep[i]:
                for k in range(m):
                    front[n_front, k] = X[i, k]
                front[n_front, m] = peak[i]
                n_front += 1
        rest = order[at:]
        probed, gone = 0, 0
        for i in rest[::PROBE]:
            probed += 1
            gone += _below(X[i], peak[i], front, zero_bound)
        if 10 * gone >= probed:
            for i in rest:
                keep[i] = not _below(X[i], peak[i], front, zero_bound)
    return keep


@jit
def _sort(order, key, spare):
    """Sort row numbers by their keys: short runs by insertion, which are then merged, two by two; stable."""
    n = order.size
    for start in range(0, n, RUN):
        for i in range(start + 1, min(start + RUN, n)):
            row, j = order[i], i
            while j > start and key[order[j - 1]] > key[row]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = row
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if j >= stop or (i < middle and key[order[i]] <= key[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2


@jit
def _below(x, peak, front, zero_bound):
    """Return whether x is below a row of the front; that row then moves ahead, as it will be above others, too."""
    m = x.size
    for f in range(front.shape[0]):
        below = zero_bound or peak == front[f, m]
        k = 0
        while below and k < m:
            below = x[k] <= front[f, k]
            k += 1
        if below:
            ahead = f // 2
            for k in range(m + 1):
                front[f, k], front[ahead, k] = front[ahead, k], front[f, k]
            return True
    return False


Relevant = Literal["all", "maximal", "extreme"]


@dataclass(eq=False, repr=False)  # arrays do not compare to one bool, and do not fit on a line
class Bags:
    """Instances sorted by bag, with one label and one weight per bag.

    Make one with `from_instances`, `from_list` or `from_image`.

    Attributes
    ----------
    X : ndarray of shape (n_instances, n_sources)
        Instances, those of a bag together.
    offsets : ndarray of int64, shape (n_bags + 1,)
        Bag b holds ``X[offsets[b]:offsets[b + 1]]``.
    labels : ndarray of bool, shape (n_bags,)
        Whether a bag is positive: at least one of its instances is a target. Real numbers for regression.
    weights : ndarray of float64, shape (n_bags,)
        How much each bag counts in the objective.
    counts : ndarray of float64, shape (n_instances,)
        How many equal instances each one stands for.
    instance : ndarray of int64, shape (n_instances,)
        The position of each one in what the user gave.
    ids : list
        The user's names of the bags.
    """

    X: NDArray[Any]
    offsets: Ints
    labels: NDArray[Any]
    weights: Floats
    counts: Floats
    instance: Ints
    ids: list[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        contents = f"{len(self)} with real labels"
        if self.labels.dtype == bool:
            positive = int(self.labels.sum())
            contents = f"{positive} positive, {len(self) - positive} negative"
        return f"Bags({contents}; {len(self.X):,} instances of {self.n_sources} sources)"

    def _repr_html_(self) -> str:
        sizes = np.diff(self.offsets)
        facts = {"instances in a bag": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,.0f}"}
        positive = np.repeat(self.labels > 0, sizes)
        kinds = {"positive bags": positive, "negative bags": ~positive}
        rows = []
        for k in range(self.n_sources):
            column = self.X[:, k]
            means = [float(column[kind].mean()) if kind.any() else np.nan for kind in kinds.values()]
            shown = [float(column.min()), *means, float(column.max())]
            rows.append([Cell(f"source {k + 1}"), *(Cell("" if np.isnan(value) else number(value)) for value in shown)])
        table = Table(["", "least", *(f"mean in {kind}" for kind in kinds), "most"], rows)
        return _html.view(repr(self), _html.facts(facts), _html.table(table))

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return int(self.X.shape[1])

    @classmethod
    def from_instances(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        bags: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        nan: Literal["raise", "drop"] = "raise",
        real_labels: bool = False,
        one_class: bool = False,
    ) -> "Bags":
        """Group instances by bag.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources)
            Instances.
        y : array-like of shape (n_instances,)
            Labels, the same within a bag: 0/1, -1/+1 or bool.
        bags : array-like of shape (n_instances,), optional
            The bag of each instance: numbers, strings or anything hashable. By default, each is its own bag.
        sample_weight : array-like of shape (n_instances,), optional
            Weights, the same within a bag. A bag of weight 0 is left out.
        nan : {"raise", "drop"}
            Whether instances with NaN are an error, or left out with a warning.
        real_labels : bool, default=False
            Whether labels are real numbers, for regression.
        one_class : bool, default=False
            Whether all bags may be positive, or all negative: for parts of a larger whole.
        """
        rows = check_rows(X)
        n = len(rows)
        label, weight = check_labels(one_per(y, n, "y"), real_labels), check_weights(sample_weight, n)
        if bags is None:
            order, offsets, ids = np.arange(n), np.arange(n + 1), [*range(n)]
        else:
            order, offsets, ids = group(bags, n, y=label, sample_weight=weight)
        starts = order[offsets[:-1]]
        return cls._grouped(rows, order, offsets, label[starts], weight[starts], ids, nan, one_class)

    @classmethod
    def _grouped(
        cls,
        rows: NDArray[Any],
        order: Ints,
        offsets: Ints,
        labels: NDArray[Any],
        weights: Floats,
        ids: list[Any],
        nan: str,
        one_class: bool,
    ) -> "Bags":
        """Take bags of rows in an order, with one label and weight each; leave out what has NaN or no weight."""
        usable = _usable(rows, order, nan)
        if usable is not None or (weights == 0).any():
            keep = np.repeat(weights > 0, np.diff(offsets)) & (True if usable is None else usable)
            order, offsets = order[keep], np.concatenate([[0], np.cumsum(keep)])[offsets]
            filled = np.diff(offsets) > 0
            ids = [name for name, some in zip(ids, filled, strict=True) if some]
            labels, weights, offsets = labels[filled], weights[filled], np.concatenate([[0], offsets[1:][filled]])
        made = cls(rows[order], offsets, labels, weights, np.ones(len(order)), order, ids)
        if not len(made):
            raise InvalidInputError(
                "There are no bags left: weights are all zero, instances have NaN, or X is empty.", code="bags-missing"
            )
        if not one_class and made.labels.dtype == bool and (made.labels.all() or not made.labels.any()):
            side = "positive" if made.labels.all() else "negative"
            raise InvalidInputError(
                f"All {len(made)} bags are {side}: only one class. Learning needs at least one bag of each class.",
                code="one-class",
            )
        return made

    @classmethod
    def from_list(
        cls,
        instances: Sequence[ArrayLike],
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        nan: Literal["raise", "drop"] = "raise",
    ) -> "Bags":
        """Take a list of bags, each an array of shape (n_i, n_sources), with one label (and weight) per bag."""
        parts = [check_rows(part, f"bag {k}") for k, part in enumerate(instances)]
        if not parts:
            raise InvalidInputError("There are no bags: the list of instances is empty.", code="bags-missing")
        for k, part in enumerate(parts):
            if len(part) == 0:
                raise InvalidInputError(f"Bag {k} is empty; leave it out, or give it instances.", code="bag-empty")
            if part.shape[1] != parts[0].shape[1]:
                raise InvalidInputError(
                    f"Bag {k} has {part.shape[1]} sources, bag 0 has {parts[0].shape[1]}; they must agree.",
                    code="bag-sources",
                )
        sizes = [len(part) for part in parts]
        y = np.repeat(one_per(labels, len(parts), "labels"), sizes)
        weight = None if weights is None else np.repeat(one_per(weights, len(parts), "weights"), sizes)
        return cls.from_instances(np.concatenate(parts), y, np.repeat(np.arange(len(parts)), sizes), weight, nan)

    @classmethod
    def from_image(
        cls,
        X: ArrayLike | Sequence[ArrayLike],
        segments: ArrayLike,
        labels: Mapping[int, Any] | ArrayLike,
        nan: Literal["raise", "drop"] = "raise",
        one_class: bool = False,
        weights: Mapping[int, float] | None = None,
    ) -> "Bags":
        """Take an image whose segments (superpixels) are the bags.

        Parameters
        ----------
        X : array-like of shape (height, width, n_sources), or list of planes
            The sources; also an array or a dataset of xarray, and then `segments` may be an array of xarray, too.
        segments : array-like of int, shape (height, width)
            To which segment each pixel belongs.
        labels : mapping of segment to label, or array-like indexed by segment
            Segments that a mapping does not name are left out.
        nan, one_class
            As in `from_instances`.
        weights : mapping of segment to float, optional
            How much a bag counts; 1 for those that it does not name.
        """
        if is_xarray(X):
            X, _, like = unlabelled(X)
            segments = aligned(segments, like, "segments")
        planes = Planes(X)
        numbers = np.asarray(refuse_masked(segments, "segments"))
        if numbers.shape != planes.shape or numbers.dtype.kind not in "iu":
            raise InvalidInputError(
                f"segments must be whole numbers of the image's shape {planes.shape}, "
                f"got {numbers.dtype} of shape {numbers.shape}.",
                code="segments-shape",
                argument="segments",
            )
        segments_in_use, where = distinct(numbers)
        named = check_segment_labels(segments_in_use, labels)
        order, offsets, appearing = by_appearance(where, len(segments_in_use))
        kept = np.array([named[k] is not None for k in appearing], dtype=bool)  # others are left out
        order, offsets = order[np.repeat(kept, np.diff(offsets))], np.append(0, np.cumsum(np.diff(offsets)[kept]))
        ids = segments_in_use[appearing][kept].tolist()
        label = check_labels(np.array([named[k] for k in appearing[kept]]), real=False)
        weight = check_weights(None if weights is None else [weights.get(segment, 1.0) for segment in ids], len(ids))
        return cls._grouped(check_rows(planes.rows()), order, offsets, label, weight, ids, nan, one_class)

    def with_signs(self, polarity: ArrayLike) -> "Bags":
        """Return the same bags with each source multiplied by its sign."""
        signs = np.asarray(polarity, dtype=self.X.dtype)
        return replace(self, X=self.X if (signs == 1).all() else self.X * signs)

    def shares(self) -> Floats:
        """Return how much each instance counts in the mean over its bag, times the weight of the bag."""
        number = np.add.reduceat(self.counts, self.offsets[:-1])
        return np.asarray(np.repeat(self.weights / number, np.diff(self.offsets)) * self.counts)

    def merged(self, n_jobs: int | None = None) -> "Bags":
        """Merge equal instances of a bag into one that counts for all of them, which changes no objective."""

        def run(part: slice) -> tuple[Ints, Floats, Ints]:
            rows, offsets = self._part(part)
            X = np.ascontiguousarray(self.X[rows]) + self.X.dtype.type(0)  # which turns -0 into 0
            first, counts, starts = merge_equal(X, _bits(X), offsets, self.counts[rows])
            return first + rows.start, counts, np.diff(starts)

        firsts, counts, sizes = zip(*run_chunks(run, self._parts(), check_n_jobs(n_jobs)), strict=True)
        offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
        if offsets[-1] == len(self.X):
            return self
        return self._select(np.concatenate(firsts), offsets, np.concatenate(counts))

    def singles_merged(self) -> "Bags":
        """If all bags hold one instance, merge equal bags by adding their weights; O(n m)."""
        if len(self.X) != len(self):
            return self
        table = np.column_stack([self.labels, self.X])
        table += table.dtype.type(0)  # which turns -0 into 0
        first, weights, _ = merge_equal(table, _bits(table), np.array([0, len(table)]), self.weights)
        offsets = np.arange(len(first) + 1)
        ids = [self.ids[k] for k in first]
        return Bags(self.X[first], offsets, self.labels[first], weights, np.ones(len(first)), self.instance[first], ids)

    def reduced(self, which: Relevant, zero_bound: bool, n_jobs: int | None = None) -> "Bags":
        """Drop instances that cannot decide their bag, whatever the measure.

        Let x <= x' in every source. The integral is that of g({x >= t}, {x <= -t}) over levels t in (0, max|x|], and at
        each level the pair of x is below that of x'. So C(x) <= C(x') for every monotone g: always with the zero bound;
        without it, if max|x| = max|x'|, since the pair of empty sets, met above the maximum, is out of the order. Hence

        - an objective that asks only for the largest C of a bag needs no instance below another ("maximal");
        - one that asks for the largest |C| needs none that lies between two others ("extreme").

        Merging equal instances is exact for every objective ("all").
        """
        return self.merged(n_jobs).relevant(which, zero_bound, n_jobs)

    def relevant(self, which: Relevant, zero_bound: bool, n_jobs: int | None = None) -> "Bags":
        """Drop instances below (or between) others, as `reduced` does; after `merged`, or equal ones are dropped."""
        if which == "all":
            return self
        X = np.ascontiguousarray(self.X)

        def run(part: slice) -> Flags:
            rows, offsets = self._part(part)
            keep: Flags = undominated(X[rows], offsets, zero_bound)
            return keep | undominated(-X[rows], offsets, zero_bound) if which == "extreme" else keep

        keep = np.concatenate(run_chunks(run, self._parts(), check_n_jobs(n_jobs)))
        first = np.flatnonzero(keep)
        offsets = np.concatenate([[0], np.cumsum(keep)])[self.offsets]
        return self._select(first, offsets, self.counts[first])

    def _parts(self) -> list[slice]:
        """Cut the bags into slices of some 65,536 instances, for threads."""
        cuts = np.searchsorted(self.offsets, np.arange(0, len(self.X), SMALL_CHUNK))
        cuts = np.unique(np.append(cuts, len(self)))
        return [slice(int(a), int(b)) for a, b in pairwise(cuts)]

    def _part(self, part: slice) -> tuple[slice, Ints]:
        """Rows of some bags, and the offsets among them."""
        offsets = self.offsets[part.start : part.stop + 1]
        return slice(int(offsets[0]), int(offsets[-1])), offsets - offsets[0]

    def _select(self, first: Ints, offsets: Ints, counts: Floats) -> "Bags":
        return replace(self, X=self.X[first], offsets=offsets, counts=counts, instance=self.instance[first])


def _bits(rows: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as unsigned integers, not copied."""
    return rows.view(f"u{rows.itemsize}")


def _usable(rows: NDArray[Any], order: Ints, nan: str) -> Flags | None:
    """Mark, of some rows in their order, those without NaN, None if all are; NaN is an error unless `nan` is "drop"."""
    check_choice(nan, "nan", ("raise", "drop"))
    if np.isfinite(rows).all():
        return None
    rows = rows[order]
    if np.isinf(rows).any():
        raise InvalidInputError("X has infinite values; instances must be finite.", code="infinite", argument="X")
    missing = np.isnan(rows).any(axis=1)
    if missing.any():
        if nan == "raise":
            raise InvalidInputError(
                f"{int(missing.sum()):,} of {len(rows):,} instances have NaN. Drop them with nan='drop', or fill them.",
                code="nan",
            )
        warn(
            f"{int(missing.sum()):,} of {len(rows):,} instances have NaN and are left out.",
            code="instances-left-out",
            stacklevel=4,
        )
    return np.asarray(~missing)
