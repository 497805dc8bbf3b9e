"""Values that mean that there is no data."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILLS = ("_FillValue", "missing_value")
"""Attributes that name a nodata value."""


def fills_of(attributes: Mapping[str, Any]) -> list[float]:
    """Return the values that mean nodata, by these attributes."""
    found = [np.ravel(attributes[name]) for name in FILLS if name in attributes]
    return [value for values in found if values.dtype.kind in "iuf" for value in values.tolist()]


def to_nan(plane: NDArray[Any], fills: Iterable[float], kind: Any = np.float64) -> NDArray[Any]:
    """Return the plane with NaN where it has one of the `fills`: a copy, if it has any; integers become `kind`."""
    for fill in fills:
        with np.errstate(over="ignore"):
            missing = plane == (plane.dtype.type(fill) if plane.dtype.kind == "f" else fill)
        if missing.any():
            plane = np.where(missing, np.nan, plane if plane.dtype.kind == "f" else plane.astype(kind))
    return plane
