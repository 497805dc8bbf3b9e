"""Large measures in few numbers: the elements from which the others follow, and the rule by which they do.

With "lowest", an element whose value is the largest just below it follows from what is below, step by step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.files import Arrays
from bimichi.measures.lattice import Lattice

COMPACT_FROM = 2**11
"""Smaller measures are stored whole, so that people can read them."""

COMPLETIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "middle": lambda lower, upper: (lower + upper) / 2,
    "lowest": lambda lower, upper: lower,
    "highest": lambda lower, upper: upper,
    "nearest-zero": lambda lower, upper: np.clip(0.0, lower, upper),
}
"""Ways to choose unknown values between their bounds; each is monotone because both bounds are."""

FOLLOWING = {rule: COMPLETIONS[rule] for rule in ("lowest", "highest", "nearest-zero")}
"""Rules by which an element need not be stored: they compute it from the values just below and just above it."""


def filled(lattice: Lattice, values: Floats, completion: str) -> Floats:
    """Fill the NaN of values that do not contradict each other; the boundary counts as known. O(m base^m)."""
    known = lattice.with_boundary(values)
    return np.where(np.isnan(known), COMPLETIONS[completion](*lattice.bounds(values)), known)


def pack_values(lattice: Lattice, values: Floats) -> tuple[dict[str, Any], Arrays]:
    """Return header fields and arrays: `values`, or, if smaller, `completion`, `codes` and `known`; O(m base^m)."""
    whole = {"values": values}
    if lattice.size < COMPACT_FROM:
        return {}, whole
    below, above = lattice.beside(values)
    kept = {rule: np.flatnonzero(values != follow(below, above)) for rule, follow in FOLLOWING.items()}
    for rule, codes in sorted(kept.items(), key=lambda item: len(item[1])):
        codes = np.setdiff1d(codes, list(lattice.fixed))
        if 2 * len(codes) >= lattice.size:
            break
        if np.array_equal(_completed(lattice, codes, values[codes], rule), values):  # else rounding broke the order
            return {"completion": rule}, {"codes": codes.astype(np.float64), "known": values[codes]}
    return {}, whole


def unpack_values(lattice_of: Callable[[int], Lattice], header: dict[str, Any], arrays: Arrays) -> Floats:
    """Return the values of the measure in a model file; `lattice_of` makes the lattice of that many sources."""
    if "completion" not in header:
        return arrays["values"]
    rule, known = check_choice(header["completion"], "its completion", FOLLOWING), arrays["known"]
    if not isinstance(header["source_names"], list):
        raise InvalidInputError("its source_names must be a list.")
    lattice = lattice_of(len(header["source_names"]))
    codes = _checked(arrays["codes"], known, lattice.size)
    if np.isin(codes, list(lattice.fixed)).any() or np.isnan(known).any():
        raise InvalidInputError("its known elements must be numbers, and none of them on the boundary.")
    return _completed(lattice, codes, known, rule)


def pack_counts(name: str, counts: Ints) -> Arrays:
    """Return counts as arrays of a model file: whole, or, if smaller, those above zero and their codes."""
    used = np.flatnonzero(counts)
    if len(counts) < COMPACT_FROM or 2 * len(used) >= len(counts):
        return {name: counts.astype(np.float64)}
    return {f"{name}_codes": used.astype(np.float64), name: counts[used].astype(np.float64)}


def unpack_counts(name: str, arrays: Arrays, size: int) -> Ints:
    """Return the counts of `size` elements; the inverse of `pack_counts`."""
    counts = arrays[name]
    if not ((counts >= 0) & (counts < 2**53) & (counts == np.floor(counts))).all():  # which NaN is not either
        raise InvalidInputError(f"its array {name} must hold counts: whole numbers that are not negative.")
    if f"{name}_codes" not in arrays:
        if counts.shape != (size,):
            raise InvalidInputError(f"its array {name} does not fit the number of elements.")
        return counts.astype(np.int64)
    whole = np.zeros(size, np.int64)
    whole[_checked(arrays[f"{name}_codes"], counts, size)] = counts
    return whole


def _completed(lattice: Lattice, codes: Ints, known: Floats, rule: str) -> Floats:
    values = np.full(lattice.size, np.nan)
    values[codes] = known
    return filled(lattice, values, rule)


def _checked(codes: Floats, values: Floats, size: int) -> Ints:
    """Return codes as whole numbers: each once, within range, and as many as values."""
    if codes.shape != values.shape:
        raise InvalidInputError(f"it has {len(codes)} codes for {len(values)} values.")
    if not np.isfinite(codes).all() or not ((codes >= 0) & (codes < size) & (codes == np.floor(codes))).all():
        raise InvalidInputError(f"its codes must be whole numbers in 0..{size - 1}.")
    if len(np.unique(codes)) < len(codes):
        raise InvalidInputError("some of its codes occur twice.")
    return codes.astype(np.int64)
