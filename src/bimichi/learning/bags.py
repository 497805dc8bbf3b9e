"""`Bags`: instances grouped into labelled bags, whichever way users hold them."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.integral.planes import SMALL_CHUNK, Planes, check_n_jobs, run_chunks
from bimichi.learning.reduction import merge_equal, undominated

__all__ = ["Bags", "Relevant", "check_segment_labels", "check_weights", "group"]

Relevant = Literal["all", "maximal", "extreme"]


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
        What each bag's term counts in the objective.
    counts : ndarray of float64, shape (n_instances,)
        How many equal instances each one stands for.
    instance : ndarray of int64, shape (n_instances,)
        Where each one stood in what the user gave.
    ids : list
        What the user called the bags.
    """

    def __init__(
        self,
        X: NDArray[Any],
        offsets: Ints,
        labels: NDArray[Any],
        weights: Floats,
        counts: Floats,
        instance: Ints,
        ids: Sequence[Hashable],
    ) -> None:
        self.X, self.offsets, self.labels, self.weights = X, offsets, labels, weights
        self.counts, self.instance, self.ids = counts, instance, list(ids)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        what = f"{len(self)} with real labels"
        if self.labels.dtype == bool:
            positive = int(self.labels.sum())
            what = f"{positive} positive, {len(self) - positive} negative"
        return f"Bags({what}; {len(self.X):,} instances of {self.n_sources} sources)"

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
            Labels, the same for all instances of a bag: 0/1, -1/+1 or bool.
        bags : array-like of shape (n_instances,), optional
            To which bag each instance belongs; numbers, strings or anything hashable. By default every
            instance is its own bag.
        sample_weight : array-like of shape (n_instances,), optional
            Weights, the same for all instances of a bag. A bag of weight 0 is left out.
        nan : {"raise", "drop"}
            Whether instances with NaN are an error, or left out with a warning.
        real_labels : bool, default=False
            Whether labels are real numbers, for regression.
        one_class : bool, default=False
            Whether all bags may be positive, or all negative: for parts of a larger whole.
        """
        rows = _rows(X)
        n = len(rows)
        ids: list[Any]
        label = (_check_real if real_labels else _check_labels)(_one_per(y, n, "y"))
        weight = check_weights(sample_weight, n)
        if bags is None:
            order, offsets, ids = np.arange(n), np.arange(n + 1), list(range(n))
        else:
            order, offsets, ids = group(bags, n)
        for what, per_instance in (("y", label), ("sample_weight", weight)):
            if bags is not None:
                _check_constant(per_instance[order], offsets, ids, what)
        keep = _finite(rows, nan)[order] & (weight[order] > 0)
        order, offsets = order[keep], np.concatenate([[0], np.cumsum(keep)])[offsets]
        filled = np.diff(offsets) > 0
        starts = order[offsets[:-1][filled]]
        ids = [name for name, some in zip(ids, filled, strict=True) if some]
        offsets = np.concatenate([[0], offsets[1:][filled]])
        made = cls(rows[order], offsets, label[starts], weight[starts], np.ones(len(order)), order, ids)
        return made._checked(one_class)

    @classmethod
    def from_list(
        cls,
        instances: Sequence[ArrayLike],
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        nan: Literal["raise", "drop"] = "raise",
    ) -> "Bags":
        """Take a list of bags, each an array of shape (n_i, n_sources), with one label (and weight) per bag."""
        parts = [_rows(part, f"bag {k}") for k, part in enumerate(instances)]
        if not parts:
            raise InvalidInputError("There are no bags: the list of instances is empty.")
        for k, part in enumerate(parts):
            if len(part) == 0:
                raise InvalidInputError(f"Bag {k} is empty; leave it out, or give it instances.")
            if part.shape[1] != parts[0].shape[1]:
                raise InvalidInputError(
                    f"Bag {k} has {part.shape[1]} sources, bag 0 has {parts[0].shape[1]}; they must agree."
                )
        sizes = [len(part) for part in parts]
        y = np.repeat(_one_per(labels, len(parts), "labels"), sizes)
        weight = None if weights is None else np.repeat(_one_per(weights, len(parts), "weights"), sizes)
        return cls.from_instances(np.concatenate(parts), y, np.repeat(np.arange(len(parts)), sizes), weight, nan)

    @classmethod
    def from_image(
        cls,
        X: ArrayLike | Sequence[ArrayLike],
        segments: ArrayLike,
        labels: Mapping[int, Any] | ArrayLike,
        nan: Literal["raise", "drop"] = "raise",
        one_class: bool = False,
    ) -> "Bags":
        """Take an image whose segments (superpixels) are the bags.

        Parameters
        ----------
        X : array-like of shape (height, width, n_sources), or list of planes
            The sources.
        segments : array-like of int, shape (height, width)
            To which segment each pixel belongs.
        labels : mapping of segment to label, or array-like indexed by segment
            Segments that a mapping does not name are left out.
        nan, one_class
            As in `from_instances`.
        """
        planes = Planes(X)
        numbers = np.asarray(segments)
        if numbers.shape != planes.shape or numbers.dtype.kind not in "iu":
            raise InvalidInputError(
                f"segments must be whole numbers of the image's shape {planes.shape}, "
                f"got {numbers.dtype} of shape {numbers.shape}."
            )
        flat = numbers.ravel()
        found, where = np.unique(flat, return_inverse=True)
        named = check_segment_labels(found, labels)
        kept = np.array([label is not None for label in named])[where]
        values = np.array([0 if label is None else label for label in named])
        X_rows = np.stack([plane.ravel() for plane in planes.contiguous(slice(0, None))], axis=1)
        made = cls.from_instances(X_rows[kept], values[where][kept], flat[kept], nan=nan, one_class=one_class)
        made.instance = np.flatnonzero(kept)[made.instance]
        return made

    def _checked(self, one_class: bool) -> "Bags":
        if not len(self):
            raise InvalidInputError(
                "There are no bags left: sample weights are all zero, all instances have NaN, or X is empty."
            )
        if not one_class and self.labels.dtype == bool and (self.labels.all() or not self.labels.any()):
            side = "positive" if self.labels.all() else "negative"
            raise InvalidInputError(
                f"All {len(self)} bags are {side}: only one class. Learning needs at least one bag of each class."
            )
        return self

    def turned(self, polarity: ArrayLike) -> "Bags":
        """Return `with_signs`, its name from now on."""
        warnings.warn("Bags.turned is now named Bags.with_signs.", DeprecationWarning, stacklevel=2)
        return self.with_signs(polarity)

    def with_signs(self, polarity: ArrayLike) -> "Bags":
        """Return the same bags with each source multiplied by its sign."""
        signs = np.asarray(polarity, dtype=self.X.dtype)
        X = self.X if (signs == 1).all() else self.X * signs
        return Bags(X, self.offsets, self.labels, self.weights, self.counts, self.instance, self.ids)

    def shares(self) -> Floats:
        """Return how much each instance counts in the mean over its bag, times the weight of the bag."""
        number = np.add.reduceat(self.counts, self.offsets[:-1])
        return np.asarray(np.repeat(self.weights / number, np.diff(self.offsets)) * self.counts)

    def merged(self, n_jobs: int | None = None) -> "Bags":
        """Merge equal instances of a bag into one that counts as many; no objective can tell."""

        def run(part: slice) -> tuple[Ints, Floats, Ints]:
            rows, offsets = self._part(part)
            X = np.ascontiguousarray(self.X[rows]) + self.X.dtype.type(0)  # which turns -0 into 0
            first, counts, starts = merge_equal(X, offsets, self.counts[rows])
            return first + rows.start, counts, np.diff(starts)

        firsts, counts, sizes = zip(*run_chunks(run, self._parts(), check_n_jobs(n_jobs)), strict=True)
        offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
        if offsets[-1] == len(self.X):
            return self
        return self._select(np.concatenate(firsts), offsets, np.concatenate(counts))

    def singles_merged(self) -> "Bags":
        """If all bags hold one instance, merge equal bags by adding their weights, and sort them."""
        if len(self.X) != len(self):
            return self
        table = np.column_stack([self.labels, self.X])
        _, first, where = np.unique(table, axis=0, return_index=True, return_inverse=True)
        weights = np.bincount(where.ravel(), self.weights).astype(np.float64)
        offsets = np.arange(len(first) + 1)
        ids = [self.ids[k] for k in first]
        return Bags(self.X[first], offsets, self.labels[first], weights, np.ones(len(first)), self.instance[first], ids)

    def reduced(self, which: Relevant, zero_bound: bool, n_jobs: int | None = None) -> "Bags":
        """Drop instances that cannot decide their bag, whatever the measure.

        Let x <= x' in every source. The integral is the integral over levels t in (0, max|x|] of
        g({x >= t}, {x <= -t}), and at each level the pair of x is below that of x'. So C(x) <= C(x') for every
        monotone g: always with the zero bound; without it, if max|x| = max|x'|, so that no level of one meets
        the pair of empty sets, which is out of the order, while that of the other does not. Hence

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
        return Bags(self.X[first], offsets, self.labels, self.weights, counts, self.instance[first], self.ids)


def group(bags: ArrayLike, n: int) -> tuple[Ints, Ints, list[Hashable]]:
    """Order of instances that puts bags together, their offsets, and their ids in order of appearance."""
    if not isinstance(bags, list | tuple) and np.ndim(bags) == 0:
        raise InvalidInputError(f"bags must be ids, one per instance, got {bags!r}.")
    try:
        given = np.asarray(bags)
    except ValueError:  # ids of several kinds and lengths
        given = np.empty(0, dtype=object)
    if given.dtype.kind in "iuUSb" and given.ndim == 1 and not isinstance(bags, list | tuple):
        names, first, where = np.unique(given, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        where, ids = rank[where], list(names[np.argsort(first)].tolist())
    else:
        listed: list[Any] = list(bags)  # type: ignore[arg-type]  # what cannot be iterated was refused above
        number: dict[Hashable, int] = {}
        try:
            where = np.array([number.setdefault(name, len(number)) for name in listed], dtype=np.int64)
        except TypeError as error:
            raise InvalidInputError(f"bags must be hashable ids, one per instance: {error}.") from error
        if any(name != name for name in number):
            raise InvalidInputError("bags has NaN among its ids; every instance needs a bag.")
        ids = list(number)
    if len(where) != n:
        raise InvalidInputError(f"bags has {len(where)} ids for {n} instances; it must have one per instance.")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=len(ids)))])
    return np.argsort(where, kind="stable"), offsets, ids


def _rows(X: ArrayLike, what: str = "X") -> NDArray[Any]:
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(f"{what} must have shape (n_instances, n_sources), got {rows.shape}.")
    if rows.dtype.kind not in "biuf":
        raise InvalidInputError(f"{what} has type {rows.dtype}; instances must be real numbers.")
    return rows if rows.dtype == np.float32 else rows.astype(np.float64, copy=False)


def _one_per(values: ArrayLike, n: int, what: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (n,):
        raise InvalidInputError(f"{what} has shape {array.shape}; it must have one entry each, ({n},).")
    return array


def _check_labels(labels: NDArray[Any]) -> Flags:
    found = set(np.unique(labels).tolist()) if labels.dtype.kind in "biuf" else {object}
    if not (found <= {0, 1} or found <= {-1, 1}):
        shown = ", ".join(map(str, np.unique(labels.astype(str))[:5]))
        raise InvalidInputError(f"Labels must be 0 and 1, -1 and +1, or bool; found {shown}.")
    return np.asarray(labels > 0)


def _check_real(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
        raise InvalidInputError("Labels for regression must be finite real numbers.")
    return labels.astype(np.float64)


def check_segment_labels(
    segments: NDArray[np.integer[Any]], labels: Mapping[int, Any] | ArrayLike, where: str = "labels"
) -> list[Any]:
    """Return the label of each segment, None for those that a mapping does not name.

    Parameters
    ----------
    segments : ndarray of int, shape (n_segments,)
        The segments that there are, in ascending order.
    labels : mapping of segment to label, or array-like indexed by segment
        Their labels.
    where : str, default="labels"
        Whose labels they are, for the error.

    Raises
    ------
    InvalidInputError
        If a mapping names a segment that no pixel belongs to, or an array does not reach all segments.
    """
    if isinstance(labels, Mapping):
        unknown = sorted(set(labels) - set(segments.tolist()), key=str)
        if unknown:
            raise InvalidInputError(
                f"{where} name segment {unknown[0]!r}, which no pixel belongs to; leave it out of the labels."
            )
        return [labels.get(segment) for segment in segments.tolist()]
    given = np.asarray(labels)
    if given.ndim != 1 or segments[0] < 0 or segments[-1] >= len(given):
        raise InvalidInputError(
            f"{where} must be 1-D and reach segment {segments[-1]} (from 0), got shape {given.shape}."
        )
    return list(given[segments].tolist())


def check_weights(weights: ArrayLike | None, n: int) -> Floats:
    """Weights of n instances, checked; all 1 when None."""
    if weights is None:
        return np.ones(n)
    given = np.asarray(weights, dtype=np.float64)
    if given.ndim == 0:
        given = np.full(n, float(given))
    given = _one_per(given, n, "sample_weight")
    if not (np.isfinite(given) & (given >= 0)).all():
        raise InvalidInputError("sample_weight must be finite and not negative.")
    return given


def _check_constant(values: NDArray[Any], offsets: Ints, ids: Sequence[Hashable], what: str) -> None:
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wrong = np.flatnonzero(values != values[offsets[bag]])
    if wrong.size:
        raise InvalidInputError(
            f"{what} must be the same for all instances of a bag, but bag {ids[bag[wrong[0]]]!r} has "
            f"{values[offsets[bag[wrong[0]]]]} and {values[wrong[0]]}."
        )


def _finite(rows: NDArray[Any], nan: str) -> Flags:
    if nan not in ("raise", "drop"):
        raise InvalidInputError(f"nan must be 'raise' or 'drop', got {nan!r}.")
    if np.isinf(rows).any():
        raise InvalidInputError("X has infinite values; instances must be finite.")
    missing = np.isnan(rows).any(axis=1)
    if missing.any():
        if nan == "raise":
            raise InvalidInputError(
                f"{int(missing.sum()):,} of {len(rows):,} instances have NaN. Drop them with nan='drop', or fill them."
            )
        warnings.warn(f"{int(missing.sum()):,} of {len(rows):,} instances have NaN and are left out.", stacklevel=4)
    return np.asarray(~missing)
