"""How well values rank targets above all else, where rows stand for different numbers of instances."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ranking(NamedTuple):
    """Average precision, and area under the ROC curve."""

    ap: float
    auc: float


class Thresholds:
    """How many are found at each threshold that matters: the values of targets, the highest first.

    Between two of these, a lower threshold only adds false alarms. So the others are sorted once, in place, and the
    number of false alarms at each threshold is looked up in them. Counts are whole numbers, so that ties are exact.

    Attributes
    ----------
    values : ndarray
        The thresholds.
    hits, alarms : ndarray of int
        Targets, and others, at or above each.
    n_targets : int
        Number of targets.
    """

    def __init__(self, targets: NDArray[Any], others: NDArray[Any]) -> None:
        others.sort()
        self.n_targets, self._others = targets.size, others
        self.values, self._counts = (found[::-1] for found in np.unique(targets, return_counts=True))
        self.hits = np.cumsum(self._counts)
        self.alarms = others.size - np.searchsorted(others, self.values, side="left")

    @property
    def f1(self) -> NDArray[Any]:
        """F1 at each threshold."""
        return np.asarray(2 * self.hits / (self.hits + self.alarms + self.n_targets))

    @property
    def auc(self) -> float:
        """Area under the ROC curve; a tie counts half."""
        n = self._others.size
        above = n - np.searchsorted(self._others, self.values, side="right")
        return int((self._counts * (2 * n - self.alarms - above)).sum()) / (2 * self.n_targets * n)

    def average_precision(self, share: float = 1.0) -> float:
        """Precision, weighted by what each threshold adds to recall; others stand for `share` instances each."""
        return float((self._counts * (self.hits / (self.hits + share * self.alarms))).sum() / self.n_targets)


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
    found = Thresholds(targets, others)
    return Ranking(found.average_precision(share), found.auc)
