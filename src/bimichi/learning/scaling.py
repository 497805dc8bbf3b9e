"""Maps of sources to [-1, 1], learned in `fit` and kept in the model."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.learning.bags import Bags

SCALES = ("minmax", "maxabs")


class Scale(NamedTuple):
    """``clip((x - centre) * factor, -1, 1)``, per source."""

    centre: Floats
    factor: Floats

    def bags(self, bags: Bags) -> Bags:
        """Return the same bags with sources mapped."""
        return replace(bags, X=np.stack(self.apply(list(bags.X.T), np.ones(bags.n_sources)), axis=1))

    def apply(self, planes: list[NDArray[Any]], polarity: Floats) -> list[NDArray[Any]]:
        """Return scaled planes with these signs; those that stay as they are are not copied."""
        done = []
        for plane, centre, factor, sign in zip(planes, self.centre, self.factor, polarity, strict=True):
            if centre == 0 and factor == 1:
                done.append(plane if sign > 0 else -plane.astype(np.result_type(plane, np.float32), copy=False))
                continue
            kind = plane.dtype if plane.dtype.kind == "f" else np.dtype(np.float64)
            scaled = (plane - kind.type(centre)) * kind.type(factor * sign)
            done.append(np.clip(scaled, -1, 1, out=scaled))
        return done


def learn_scale(low: Floats, high: Floats, scale: str | None) -> Scale:
    """Learn the map of this kind from the least and the greatest value of each source; None means none."""
    m = len(low)
    if scale is None:
        return Scale(np.zeros(m), np.ones(m))
    if scale not in SCALES:
        raise InvalidInputError(f"scale must be None, 'minmax' or 'maxabs', got {scale!r}.")
    if scale == "minmax":
        centre, reach = low / 2 + high / 2, high / 2 - low / 2
    else:
        centre, reach = np.zeros(m), np.maximum(-low, high)
    return Scale(centre, np.divide(1.0, reach, out=np.zeros(m), where=reach > np.finfo(np.float64).tiny))
