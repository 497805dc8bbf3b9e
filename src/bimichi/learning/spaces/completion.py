"""From the values that a program found to a whole, monotone measure."""

import numpy as np
from numpy.typing import NDArray

from bimichi.learning.spaces.base import Completion
from bimichi.learning.spaces.order import highest_below, limits, lowest_above
from bimichi.measures.base import COMPLETIONS
from bimichi.measures.lattice import Lattice

__all__ = ["completion_of"]


def completion_of(lattice: Lattice, partial: NDArray[np.float64], completion: str) -> Completion:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds.

    O(m base^m). Unlike `bimichi.measures.compact.filled`, known values may contradict each other a little, and what
    bounds each value is returned with it.
    """
    given = np.flatnonzero(~np.isnan(partial))
    known = np.full(lattice.size, np.nan)
    known[given] = np.clip(partial[given], *limits(lattice, given))
    low, lower = highest_below(lattice, lattice.with_boundary(known))
    if completion == "lowest":
        return Completion(lattice.with_boundary(low), lower, lower)
    known[given] = low[given]
    known = lattice.with_boundary(known)
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    values = lattice.with_boundary(COMPLETIONS[completion](low, np.maximum(low, high)))
    return Completion(values, lower, upper)
