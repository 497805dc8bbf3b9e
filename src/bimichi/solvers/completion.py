"""From the values that a solver found to a whole, monotone measure."""

import numpy as np
from numpy.typing import NDArray

from bimichi.lattice import Lattice

__all__ = ["completed"]

Floats = NDArray[np.float64]


def completed(lattice: Lattice, partial: Floats, completion: str) -> Floats:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds."""
    lower, _ = lattice.bounds(np.clip(partial, -1, 1))
    if completion == "lowest":
        return lattice.with_boundary(np.minimum(lower, 1.0))
    known = np.where(np.isnan(partial), np.nan, np.minimum(lower, 1.0))
    lower, upper = lattice.bounds(known)
    return lattice.with_boundary(np.clip(0.0, lower, np.maximum(lower, upper)))
