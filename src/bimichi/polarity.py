"""One sign per source, learned from the bags alone.

With a monotone measure, a source that is low on the target cannot help; turned over, it can. Which sources to turn is
decided by the objective itself: the solver's J is compared with and without.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bimichi.problem import Solution
from bimichi.training import BagMeans

__all__ = ["guess_polarity", "learn_polarity"]

Signs = NDArray[np.float64]


def guess_polarity(bags: BagMeans) -> Signs:
    """Turn over the sources that are lower, on the average over bags, in positive bags than in negative ones."""
    share = bags.weights[:, None]
    positive = (bags.means * share)[bags.labels].sum(axis=0) / share[bags.labels].sum()
    negative = (bags.means * share)[~bags.labels].sum(axis=0) / share[~bags.labels].sum()
    return np.where(positive >= negative, 1.0, -1.0)


def learn_polarity(
    guess: Signs, solve: Callable[[Signs], Solution], compare: Callable[[Signs], Solution] | None = None
) -> tuple[Signs, Solution]:
    """Start from the better of "as given" and the guess; flip one source at a time while J falls.

    Parameters
    ----------
    guess : ndarray of shape (n_sources,)
        Where to start besides "as given"; see `guess_polarity`.
    solve : callable
        Takes the signs, returns the solution for the bags so turned.
    compare : callable, optional
        A quicker `solve` whose J decides which signs are better; `solve` then is called for the best alone, and the
        better of the two solutions is returned. It is called once for each set of signs, between m + 1 and, rarely,
        a few times m.
    """
    known: dict[tuple[float, ...], Solution] = {}

    def at(signs: Signs) -> Solution:
        key = tuple(signs.tolist())
        if key not in known:
            known[key] = (compare or solve)(signs)
        return known[key]

    signs = min((np.ones(len(guess)), guess), key=lambda s: at(s).objective_value)
    flipped = True
    while flipped:
        flipped = False
        for k in range(len(guess)):
            other = signs.copy()
            other[k] *= -1
            best = at(signs).objective_value
            if at(other).objective_value < best * (1 - 1e-9):
                signs, flipped = other, True
    if compare is None:
        return signs, at(signs)
    return signs, min(solve(signs), at(signs), key=lambda solution: solution.objective_value)
