"""One sign per source, learned from the bags alone.

With a monotone measure, a source that is low on the target cannot help; inverted, it can. A positive bag holds a
target somewhere, so a source that is low on it has a lower minimum there than in negative bags. Which sources may be
inverted is decided by how their extremes rank the bags; which of those are, by the objective itself.
"""

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from bimichi._types import Floats
from bimichi.learning.problem import Solution
from bimichi.learning.training import BagRanges

_value: Callable[[Solution], float] = attrgetter("objective_value")

CLEAR = 2.0  # how many standard errors make a difference


def guess_polarity(bags: BagRanges) -> Floats:
    """Invert the sources whose minimum over a bag clearly ranks positive bags better than their maximum does.

    "Better" is by the area under the ROC curve over bags, "clearly" by two standard errors of the difference [1]_. As
    the label of a bag says that one instance shows the target, extremes are compared, not means over bags, which depend
    on what surrounds targets as well. O(m b log b) for b bags.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two or more correlated
       receiver operating characteristic curves", Biometrics 44 (3), 1988.
    """
    pairs = zip(bags.high.T, -bags.low.T, strict=True)
    gains = [_placements(inverted, bags) - _placements(given, bags) for given, inverted in pairs]
    return np.array([-1.0 if _clear(gain, bags) else 1.0 for gain in gains])


def _placements(values: Floats, bags: BagRanges) -> Floats:
    """For each bag, the share of the other class on its right side, ties half; the mean over a class is the AUC."""
    _, place = np.unique(values, return_inverse=True)
    positive = np.bincount(place, bags.weights * bags.labels)
    negative = np.bincount(place, bags.weights * ~bags.labels)
    under = (np.cumsum(negative) - negative / 2) / negative.sum()
    over = 1 - (np.cumsum(positive) - positive / 2) / positive.sum()
    return np.asarray(np.where(bags.labels, under[place], over[place]))


def _clear(gain: Floats, bags: BagRanges) -> bool:
    """Whether the mean gain of a class, which is that of the other, too, exceeds its standard error enough."""
    mean = float(np.average(gain[bags.labels], weights=bags.weights[bags.labels]))
    shares = bags.weights / np.where(bags.labels, bags.weights[bags.labels].sum(), bags.weights[~bags.labels].sum())
    error = float(np.sqrt((shares**2 * (gain - mean) ** 2).sum()))
    return mean > CLEAR * error


def learn_polarity(
    guess: Floats, solve: Callable[[Floats], Solution], compare: Callable[[Floats], Solution] | None = None
) -> tuple[Floats, Solution]:
    """Start from the better of "as given" and the guess; flip a source that was guessed to be inverted while J falls.

    A fall of J alone inverts no other source: what surrounds targets lies in positive bags, too, so that J also falls
    where an inverted source is high on what is *around* them.

    `guess` has -1 for the sources that may be inverted. `solve` takes signs and returns the solution for bags with
    these; `compare` is a quicker one to compare signs by, called once for each set of them. `solve` is then called for
    the best signs and for "as given" alone, and its J decides.
    """
    known: dict[tuple[float, ...], Solution] = {}

    def at(signs: Floats) -> Solution:
        key = tuple(signs.tolist())
        if key not in known:
            known[key] = (compare or solve)(signs)
        return known[key]

    given, doubtful = np.ones(len(guess)), np.flatnonzero(guess < 0)
    if not len(doubtful):
        return given, solve(given)
    signs = min((given, guess), key=lambda s: _value(at(s)))
    flipped = True
    while flipped:
        flipped = False
        for k in doubtful:
            other = signs.copy()
            other[k] *= -1
            if _value(at(other)) < _value(at(signs)) * (1 - 1e-9):
                signs, flipped = other, True
    if compare is None:
        return signs, at(signs)
    kinds = [given] if (signs == given).all() else [given, signs]
    ends = [(kind, min(solve(kind), at(kind), key=_value)) for kind in kinds]
    return min(ends, key=lambda end: _value(end[1]))
