"""How well values rank targets above all else, where what differs by rounding alone counts as equal.

Many pixels tie: where sources are at the end of their range, a measure gives them one value. Sums in float32, or of the
same terms in another order, differ in their last bits, which would rank such pixels by chance: on real scenes, AUC of
one model differed by .04 between float32 and float64. So values within some steps of float32 of each other are ties.

Only the values of targets matter as thresholds: between two of these, a lower threshold only adds false alarms. So the
others are sorted once, and the number of false alarms at each threshold is looked up in them, as a whole number.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TIE = 2e-6
"""Values that differ by less than this share of them are ties: some sixteen steps of float32."""

SMALL = 1e-3
"""Values below this share of the largest one (of 1, if that is larger) are compared as if they were that large."""


class Ranking(NamedTuple):
    """Average precision, and area under the ROC curve."""

    ap: float
    auc: float


class Tally(NamedTuple):
    """What is found at each threshold that targets set, the highest first.

    Attributes
    ----------
    thresholds : array
        The lowest of the values that tie with some target's.
    counts : array of int
        Targets that tie with it.
    alarms, above : array of int
        Others at or above it, and those of them that do not tie with it.
    n_others : int
        All others.
    """

    thresholds: NDArray[Any]
    counts: NDArray[np.int64]
    alarms: NDArray[np.int64]
    above: NDArray[np.int64]
    n_others: int

    @property
    def hits(self) -> NDArray[np.int64]:
        """Targets at or above each threshold."""
        return np.cumsum(self.counts)

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 at each threshold."""
        hits = self.hits
        return np.asarray(2 * hits / (hits + self.alarms + hits[-1]))

    def ranking(self, share: float = 1.0) -> Ranking:
        """Return how well targets are ranked; a tie counts half in the AUC. See `rank`."""
        hits, n_targets = self.hits, int(self.counts.sum())
        ap = float((self.counts * (hits / (hits + share * self.alarms))).sum() / n_targets)
        pairs_twice = int((self.counts * (2 * self.n_others - self.alarms - self.above)).sum())
        return Ranking(ap, pairs_twice / (2 * n_targets * self.n_others))


def tally(targets: NDArray[Any], others: NDArray[Any]) -> Tally:
    """Count targets and others at each threshold; both must have values, without NaN. Sorts `others` in place."""
    others.sort()
    both = np.concatenate([others, np.sort(targets)])
    both.sort(kind="stable")  # which merges what is sorted already
    lowest = _lowest_of_ties(both)
    place, counts = np.unique(np.searchsorted(lowest, targets, side="right") - 1, return_counts=True)
    place, counts = place[::-1], counts[::-1]
    alarms = others.size - np.searchsorted(others, lowest[place], side="left")
    after = np.minimum(place + 1, len(lowest) - 1)
    above = np.where(after > place, others.size - np.searchsorted(others, lowest[after], side="left"), 0)
    return Tally(lowest[place], counts, alarms, above, others.size)


def rank(targets: NDArray[Any], others: NDArray[Any], share: float = 1.0) -> Ranking:
    """Rank targets among others, each of which stands for `share` times as many instances as a target.

    Ties count half in the AUC; NaN if either is missing. Sorts `others` in place.

    Examples
    --------
    >>> rank(np.array([0.2, 0.8]), np.array([-0.9, 0.5]))
    Ranking(ap=0.8333333333333333, auc=0.75)
    >>> rank(np.array([0.1 + 0.2, 0.8]), np.array([-0.9, 0.3]))
    Ranking(ap=0.8333333333333333, auc=0.875)
    """
    if not targets.size or not others.size:
        return Ranking(np.nan, np.nan)
    return tally(targets, others).ranking(share)


def _lowest_of_ties(values: NDArray[Any]) -> NDArray[Any]:
    """Return the lowest of each group of ties among sorted values.

    A group begins after a gap, so that rounding does not divide it; where there are no gaps, after each `TIE`.
    """
    values = values[np.append(True, values[1:] != values[:-1])]
    if values.dtype.kind != "f" or len(values) == 1:
        return values
    exact = values.astype(np.float64)
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    width = TIE * np.maximum(size, SMALL * min(1.0, size.max()) or 1.0)
    begins = np.append(True, np.diff(exact) > width[1:])
    origin = np.maximum.accumulate(np.where(begins, np.arange(len(exact)), 0))
    within = np.subtract(exact, exact[origin], out=np.zeros_like(exact), where=np.isfinite(exact))
    lowest: NDArray[Any] = values[begins | np.append(False, np.diff(np.floor(within / width[origin])) > 0)]
    return lowest
