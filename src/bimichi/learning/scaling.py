"""Maps of sources to [-1, 1], learned in `fit` and kept in the model."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi._types import Floats
from bimichi.learning.bags import Bags
from bimichi.rule import SCALES, scaled_planes


class Scale(NamedTuple):
    """``clip((x - centre) * factor, -1, 1)``, per source."""

    centre: Floats
    factor: Floats

    def bags(self, bags: Bags) -> Bags:
        """Return the same bags with sources mapped."""
        return replace(bags, X=self.rows(bags.X))

    def rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return instances with sources mapped."""
        return np.stack(scaled_planes(X.T, self.centre, self.factor, -1.0), axis=1)


def learn_scale(low: Floats, high: Floats, scale: str | None) -> Scale:
    """Learn the map of this kind from the least and the greatest value of each source; None means none."""
    m = len(low)
    if check_choice(scale, "scale", (None, *SCALES)) is None:
        return Scale(np.zeros(m), np.ones(m))
    if scale == "minmax":
        centre, reach = low / 2 + high / 2, high / 2 - low / 2
    else:
        centre, reach = np.zeros(m), np.maximum(-low, high)
    return Scale(centre, np.divide(1.0, reach, out=np.zeros(m), where=reach > np.finfo(np.float64).tiny))
