"""Platt's calibration: log-odds as a line over the output, fitted to outputs for data that were not learned from."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.link import Link, count_outputs, mixture_distance, probability_of

ROUNDS = 100


def platt(
    scenes: Sequence[tuple[NDArray[Any], NDArray[Any], tuple[float, float]]], keep_outputs: bool = False
) -> Link | None:
    """Fit the link by maximum likelihood [1]_.

    Parameters
    ----------
    scenes : sequence of (ndarray, ndarray, (float, float))
        Outputs for targets, and for the rest, of each scene, by models that have not learned from it, and how many
        instances each output of the two stands for.
    keep_outputs : bool, default=False
        Whether the link is to know how outputs are distributed, and how scenes vary; if they are those of instances,
        not of bags.

    Returns
    -------
    Link or None
        None if the outputs do not rise from the rest to the targets, so that no rising line fits.

    References
    ----------
    .. [1] J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
       methods", 1999. As there, labels are pulled towards each other by one instance of each class, so that the slope
       is finite where the two do not overlap.
    """
    sides = [(scene[side], scene[2][side], side == 0) for side in (0, 1) for scene in scenes]
    weight, positive = (
        np.concatenate([np.full(len(side_outputs[0]), side_outputs[k]) for side_outputs in sides]) for k in (1, 2)
    )
    link = fit_link(np.concatenate([side_outputs[0] for side_outputs in sides]).astype(np.float64), positive, weight)
    if link is None or not keep_outputs:
        return link
    counts = np.array([[count_outputs(o) * n_o, count_outputs(t) * n_t] for t, o, (n_t, n_o) in scenes])
    others, targets = ((side / side.sum()).tolist() for side in counts.sum(axis=0))
    return replace(link, outputs=(others, targets), variety=_variety(counts))


def _variety(counts: Floats) -> float | None:
    """Return the largest departure of a scene from all others; counts by scene, class (targets last) and bin."""
    distances = []
    for k, (others, targets) in enumerate(counts):
        rest, total = np.delete(counts, k, axis=0).sum(axis=0), others + targets
        if rest.sum(axis=1).all() and total.any():
            distances.append(mixture_distance(total, float(targets.sum() / total.sum()), *rest))
    return max(distances, default=None)


def fit_link(x: Floats, positive: Flags, weight: Floats) -> Link | None:
    """Fit the link of outputs, each of which is positive or not and counts by its weight; as `platt`."""
    hits, rest = float(weight[positive].sum()), float(weight[~positive].sum())
    if not hits or not rest:
        return None
    return fit_soft_link(x, np.where(positive, (hits + 1) / (hits + 2), 1 / (rest + 2)), weight, hits / (hits + rest))


def fit_soft_link(x: Floats, y: Floats, weight: Floats, rate: float | None = None) -> Link | None:
    """Fit the link of outputs, each of which is a target with probability `y` and counts by its weight.

    `rate` is the share of targets, if it is not the mean of `y`. None if no rising line fits.
    """
    rate = float(np.average(y, weights=weight)) if rate is None else rate
    if not 0 < rate < 1:
        return None
    middle, reach = float(np.average(x, weights=weight)), float(x.std()) or 1.0
    slope, offset = _newton((x - middle) / reach, y, weight / weight.sum(), np.log(rate / (1 - rate)))
    if not slope > 0:
        return None
    return Link(slope / reach, offset - slope * middle / reach, rate)


def _newton(x: Floats, y: Floats, weight: Floats, offset: float) -> tuple[float, float]:
    """Minimise the logistic loss by Newton steps, halved while it rises."""
    at, lines = np.array([0.0, offset]), np.stack([x, np.ones_like(x)])

    def loss(point: Floats) -> float:
        f = point @ lines
        return float(weight @ (np.logaddexp(0, f) - y * f))

    value = loss(at)
    for _ in range(ROUNDS):
        p = probability_of(at @ lines)
        slope = lines @ (weight * (p - y))
        curve = (lines * (weight * p * (1 - p))) @ lines.T + 1e-12 * np.eye(2)
        step = np.linalg.solve(curve, slope)
        while loss(at - step) > value and np.abs(step).max() > 1e-12:
            step = step / 2
        at = at - step
        before, value = value, loss(at)
        if before - value < 1e-12:
            break
    return float(at[0]), float(at[1])
