"""The share of targets in a scene whose outputs also have another gain and offset than those of training."""

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize
from scipy.special import expit, logit

from bimichi._types import Floats

FLOOR = 1e-5
"""The density of outputs, on [-1, 1], that did not occur in training; that of even ones would be 0.5."""
MOST = 0.5
"""The largest share of targets that is considered: most of a scene must be something else to show its gain."""
PRIOR = 1.5
"""The standard deviation of the log-odds of the share around those in training, before any output is seen."""
ALIKE = 5
"""So many neighbouring pixels say no more than one; the prior counts the more for it."""


class Aligned(NamedTuple):
    """A scene's share of targets, and what takes its outputs to the scale of training: gain * output + offset."""

    share: float
    gain: float
    offset: float


def align(output: Floats, others: Floats, targets: Floats, base_rate: float) -> Aligned:
    """Estimate the share of targets in a scene together with a gain and an offset of its outputs.

    Another gain of a sensor, another patient or another hour moves all outputs of a scene, and those of what is no
    target show by how much, as they are most of them. So the outputs, times a gain, plus an offset, are taken for a
    mixture of those of targets and of others in training, and the three numbers are the most likely ones. Outputs often
    say little about shares of a few per cent or less, down to none at all; so the share has a wide prior around that in
    training. Under a second for any scene: outputs are counted first.

    Parameters
    ----------
    output : ndarray
        Of the scene, without NaN.
    others, targets : ndarray
        How outputs of training were distributed over bins of equal width from -1 to 1.
    base_rate : float
        The share of targets in training.
    """
    counts, edges = np.histogram(output, 400)
    x, counts = ((edges[1:] + edges[:-1]) / 2)[counts > 0], counts[counts > 0] / len(output)
    middles = np.linspace(-1, 1, 2 * len(others) + 1)[1::2]
    densities = [gaussian_filter1d(np.asarray(side) * len(others) / 2, 1.0) + FLOOR for side in (others, targets)]

    def loss(at: Floats) -> float:
        share = expit(at[2])
        if share > MOST:
            return float(1e6 * share)
        moved = np.exp(at[0]) * x + at[1]
        first, second = (np.interp(moved, middles, density, FLOOR, FLOOR) for density in densities)
        unlikely = (at[2] - expected) ** 2 * ALIKE / (2 * PRIOR**2 * len(output))
        return float(-(counts @ np.log((1 - share) * first + share * second)) - at[0] + unlikely)

    expected = logit(base_rate)
    usual = middles[np.searchsorted(np.cumsum(others), 0.5)]
    starts = [(0.0, 0.0, logit(0.3)), (0.0, 0.0, logit(0.03)), (0.0, usual - np.median(output), logit(0.003))]
    steps = np.diag([0.2, 0.1, -0.7])
    simplices = [np.vstack([start, start + steps]) for start in np.asarray(starts)]
    options = {"xatol": 1e-3, "fatol": 1e-6, "maxiter": 500}
    found = [minimize(loss, s[0], method="Nelder-Mead", options=options | {"initial_simplex": s}) for s in simplices]
    best = min(found, key=lambda one: float(one.fun)).x
    return Aligned(float(expit(best[2])), float(np.exp(best[0])), float(best[1]))
