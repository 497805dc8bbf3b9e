"""From the values that a solver found to a whole, monotone measure."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.learning.solvers.order import highest_below, limits, lowest_above
from bimichi.measures.base import COMPLETIONS
from bimichi.measures.lattice import Lattice

__all__ = ["Traced", "completed", "traced"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


class Traced(NamedTuple):
    """A whole measure, and what of it was known: for each element, where the largest value below it is known.

    In every monotone measure the element `lower` is worth no more, and `upper` no less.
    """

    values: Floats
    lower: Codes
    upper: Codes


def completed(lattice: Lattice, partial: Floats, completion: str) -> Floats:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds.

    O(m base^m).
    """
    return traced(lattice, partial, completion).values


def traced(lattice: Lattice, partial: Floats, completion: str) -> Traced:
    """Fill NaN as `completed` does, and tell from where."""
    given = np.flatnonzero(~np.isnan(partial))
    known = np.full(lattice.size, np.nan)
    known[given] = np.clip(partial[given], *limits(lattice, given))
    low, lower = highest_below(lattice, lattice.with_boundary(known))
    if completion == "lowest":
        return Traced(lattice.with_boundary(low), lower, lower)
    known[given] = low[given]
    known = lattice.with_boundary(known)
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    values = lattice.with_boundary(COMPLETIONS[completion](low, np.maximum(low, high)))
    return Traced(values, lower, upper)
