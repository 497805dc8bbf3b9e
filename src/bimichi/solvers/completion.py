"""From the values that a solver found to a whole, monotone measure."""

import numpy as np
from numpy.typing import NDArray

from bimichi.lattice import Lattice
from bimichi.measure import COMPLETIONS

__all__ = ["completed"]

Floats = NDArray[np.float64]


def completed(lattice: Lattice, partial: Floats, completion: str) -> Floats:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds."""
    within = np.clip(partial, *lattice.bounds(np.full(lattice.size, np.nan)))  # what the boundary leaves
    lower, _ = lattice.bounds(within)
    if completion == "lowest":
        return lattice.with_boundary(np.minimum(lower, 1.0))
    known = np.where(np.isnan(partial), np.nan, np.minimum(lower, 1.0))
    lower, upper = lattice.bounds(known)
    return lattice.with_boundary(COMPLETIONS[completion](lower, np.maximum(lower, upper)))
