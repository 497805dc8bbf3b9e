"""Checks of instances, labels, ids of bags and weights as users give them."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_binary, is_xarray, real_array, refuse_masked
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError

LARGEST_WEIGHT = 1e100


def distinct(numbers: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct values in order, and which of them each entry is, flat; whole numbers need no sorting."""
    flat = numbers.ravel()
    if flat.dtype.kind in "iu" and flat.size:
        low, high = int(flat.min()), int(flat.max())
        if high - low <= 2 * flat.size and high < 2**62:
            shifted = flat.astype(np.int64) - low
            there = np.bincount(shifted, minlength=high - low + 1) > 0
            return (np.flatnonzero(there) + low).astype(flat.dtype), (np.cumsum(there) - 1)[shifted]
    names, where = np.unique(flat, return_inverse=True)
    return names, where.ravel()


def group(bags: ArrayLike, n: int, **constant: NDArray[Any]) -> tuple[Ints, Ints, list[Hashable]]:
    """Return the order of instances that puts bags together, their offsets, and their ids in order of appearance.

    Of `constant`, arrays of n by name, all instances of a bag must have the same value.
    """
    if not isinstance(bags, list | tuple) and np.ndim(bags) == 0:
        raise InvalidInputError(
            f"bags must be ids, one per instance, got {bags!r}.", code="bags-kind", argument="bags", value=bags
        )
    try:
        given = np.asarray(refuse_masked(bags, "bags"))
    except ValueError:  # ids of several kinds and lengths
        given = np.empty(0, dtype=object)
    if given.dtype.kind in "iuUSb" and given.ndim == 1 and not isinstance(bags, list | tuple):
        names, where = distinct(given)
        order, offsets, appearing = by_appearance(where, len(names))
        ids = list(names[appearing].tolist())
    else:
        listed: list[Any] = list(bags)  # type: ignore[arg-type]  # what cannot be iterated was refused above
        number: dict[Hashable, int] = {}
        try:
            where = np.array([number.setdefault(name, len(number)) for name in listed], dtype=np.int64)
        except TypeError as error:
            raise InvalidInputError(
                f"bags must be hashable ids, one per instance: {error}.", code="bags-hashable", argument="bags"
            ) from error
        if any(name != name for name in number):
            raise InvalidInputError(
                "bags has NaN among its ids; every instance needs a bag.", code="bags-nan", argument="bags"
            )
        order, offsets, _ = by_appearance(where, len(number))
        ids = list(number)
    if len(where) != n:
        raise InvalidInputError(
            f"bags has {len(where)} ids for {n} instances; it must have one per instance.",
            code="bags-length",
            argument="bags",
        )
    for what, values in constant.items():
        check_constant(values[order], offsets, ids, what)
    return order, offsets, ids


def by_appearance(where: Ints, n_bags: int) -> tuple[Ints, Ints, Ints]:
    """Return the order of instances that puts bags together, their offsets, and the bags in order of appearance; O(n).

    `where` has the bag of each instance, from 0 to n_bags - 1; all of them have some.
    """
    first = np.empty(n_bags, np.int64)
    first[where[::-1]] = np.arange(len(where))[::-1]  # of several, the last that is written stays
    appearing = np.argsort(first)
    rank = np.empty(n_bags, np.uint16 if n_bags <= 1 << 16 else np.int64)  # small numbers are sorted by radix
    rank[appearing] = np.arange(n_bags)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=n_bags)[appearing])])
    return np.argsort(rank[where], kind="stable"), offsets, appearing


def check_rows(X: ArrayLike, what: str = "X") -> NDArray[Any]:
    """Return instances as an array of float32 or float64."""
    if is_xarray(X):
        raise InvalidInputError(
            f"{what} is an object of xarray, but rows are taken here. Pass Bags.from_image(X, segments, labels), or X "
            "to fit.",
            code="xarray-rows",
            argument=what,
        )
    rows = real_array(refuse_masked(X, what), what, "instances must be real numbers.")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(
            f"{what} must have shape (n_instances, n_sources), got {rows.shape}.",
            code="rows-shape",
            argument=what,
            value=rows.shape,
        )
    return rows if rows.dtype == np.float32 else rows.astype(np.float64, copy=False)


def one_per(values: ArrayLike, n: int, what: str) -> NDArray[Any]:
    """Return an array of n entries."""
    array = np.asarray(refuse_masked(values, what))
    if array.shape != (n,):
        raise InvalidInputError(
            f"{what} has shape {array.shape}; it must have one entry each, ({n},).", code="entries-shape", argument=what
        )
    return array


def check_labels(labels: NDArray[Any], real: bool) -> NDArray[Any]:
    """Return labels as bool, or as float64 if they may be `real`."""
    if not real:
        return check_binary(labels, "Labels")
    if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
        raise InvalidInputError("Labels for regression must be finite real numbers.", code="labels-finite")
    return labels.astype(np.float64)


def check_segment_labels(
    segments: NDArray[np.integer[Any]], labels: Mapping[int, Any] | ArrayLike, where: str = "labels"
) -> list[Any]:
    """Return the label of each segment (in ascending order), None for those that a mapping does not name.

    Raises an `InvalidInputError`, which starts with `where`, if a mapping names a segment that no pixel belongs to, or
    an array does not reach all segments.
    """
    if isinstance(labels, Mapping):
        unknown = sorted(set(labels) - set(segments.tolist()), key=str)
        if unknown:
            raise InvalidInputError(
                f"{where} name segment {unknown[0]!r}, which no pixel belongs to; leave it out of the labels.",
                code="labels-segments",
            )
        return [labels.get(segment) for segment in segments.tolist()]
    given = np.asarray(refuse_masked(labels, "labels"))
    if given.ndim != 1 or segments[0] < 0 or segments[-1] >= len(given):
        raise InvalidInputError(
            f"{where} must be 1-D and reach segment {segments[-1]}, got shape {given.shape}.", code="labels-segments"
        )
    return list(given[segments].tolist())


def check_weights(weights: ArrayLike | None, n: int, what: str = "sample_weight") -> Floats:
    """Return the weights of n instances, checked; all 1 when None."""
    if weights is None:
        return np.ones(n)
    given = np.asarray(refuse_masked(weights, what), dtype=np.float64)
    if given.ndim == 0:
        given = np.full(n, float(given))
    given = one_per(given, n, what)
    if not (np.isfinite(given) & (given >= 0)).all():
        raise InvalidInputError(f"{what} must be finite and not negative.", code="weights-negative", argument=what)
    if given.size and given.max() > LARGEST_WEIGHT:
        raise InvalidInputError(
            f"{what} reaches {given.max():.3g}; it must not exceed {LARGEST_WEIGHT:g}, or sums overflow. Divide all "
            "weights by the largest: only their ratios matter.",
            code="weights-large",
            argument=what,
        )
    return given


def check_constant(values: NDArray[Any], offsets: Ints, ids: Sequence[Hashable], what: str) -> None:
    """Refuse values, sorted by bag, that differ within one."""
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wrong = np.flatnonzero(values != values[offsets[bag]])
    if wrong.size:
        raise InvalidInputError(
            f"{what} must be the same for all instances of a bag, but bag {ids[bag[wrong[0]]]!r} has "
            f"{values[offsets[bag[wrong[0]]]]} and {values[wrong[0]]}.",
            code="bag-constant",
            argument=what,
        )
