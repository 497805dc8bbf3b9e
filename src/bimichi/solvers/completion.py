"""From the values that a solver found to a whole, monotone measure."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.lattice import Lattice
from bimichi.measure import COMPLETIONS
from bimichi.solvers.order import highest_below, lowest_above

__all__ = ["Traced", "completed", "traced"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Traced(NamedTuple):
    """A whole measure, and what of it was known: for each element, where the largest value below it is known.

    In every monotone measure the element `lower` is worth no more, and `upper` no less.
    """

    values: Floats
    lower: Ints
    upper: Ints


def completed(lattice: Lattice, partial: Floats, completion: str) -> Floats:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds.

    O(m base^m).
    """
    return traced(lattice, partial, completion).values


def traced(lattice: Lattice, partial: Floats, completion: str) -> Traced:
    """Fill NaN as `completed` does, and tell from where."""
    within = np.clip(partial, *lattice.bounds(np.full(lattice.size, np.nan)))  # what the boundary leaves
    low, lower = highest_below(lattice, lattice.with_boundary(within))
    if completion == "lowest":
        return Traced(lattice.with_boundary(low), lower, lower)
    known = lattice.with_boundary(np.where(np.isnan(partial), np.nan, low))
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    values = lattice.with_boundary(COMPLETIONS[completion](low, np.maximum(low, high)))
    return Traced(values, lower, upper)
