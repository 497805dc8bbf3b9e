"""How well values rank targets above all else, where rows stand for different numbers of instances."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ranking(NamedTuple):
    """Average precision, and area under the ROC curve."""

    ap: float
    auc: float


def rank(targets: NDArray[Any], others: NDArray[Any], share: float = 1.0) -> Ranking:
    """Rank targets among others, each of which stands for `share` times as many instances as a target.

    Ties count half in the AUC; NaN if either is missing. Sorts `others` in place.

    Examples
    --------
    >>> rank(np.array([0.2, 0.8]), np.array([-0.9, 0.5]))
    Ranking(ap=0.8333333333333333, auc=0.75)
    """
    if not targets.size or not others.size:
        return Ranking(np.nan, np.nan)
    others.sort()
    values, counts = (found[::-1] for found in np.unique(targets, return_counts=True))  # highest first
    hits = np.cumsum(counts)
    alarms = others.size - np.searchsorted(others, values, side="left")
    above = others.size - np.searchsorted(others, values, side="right")
    ap = float((counts * (hits / (hits + share * alarms))).sum() / targets.size)
    pairs_twice = float((counts * (2 * others.size - alarms - above)).sum())
    return Ranking(ap, pairs_twice / (2 * targets.size * others.size))
