"""One sign per source, cross-validated.

With a monotone measure, a source that is low on the target cannot help; inverted, it can. A sign is inverted only if
that makes both the source alone and a quick fusion of all sources rank the targets of left-out scenes better, by more
than the standard error over these scenes: twice as much for the source alone, since a weak source is seldom worth a
sign; if that gains much, the fusion must merely not become worse; and if the source then ranks well alone, not clearly
worse. In case of doubt, a source stays as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.optimize import lsq_linear

from bimichi._types import Floats, Ints
from bimichi.scenes.sample import Sample


class Spread(NamedTuple):
    """A mean, and its standard error; NaN for the error of a single number."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Return whether the mean is above zero by more than its standard error."""
        return bool(self.mean > self.error)  # False with NaN


def spread(values: Sequence[float] | Floats) -> Spread:
    """Return the mean of numbers and its standard error.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, error=0.5773502691896258)
    """
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 2:
        return Spread(float(numbers.mean()) if len(numbers) else np.nan, np.nan)
    return Spread(float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(len(numbers))))


def shown_spread(value: Spread, sign: bool = False) -> str:
    """Write a mean and its standard error.

    Examples
    --------
    >>> shown_spread(Spread(0.5, 0.01), sign=True)
    '+0.500 ± 0.010'
    """
    mean = f"{value.mean:+.3f}" if sign else f"{value.mean:.3f}"
    return mean + ("" if np.isnan(value.error) else f" ± {value.error:.3f}")


class Scorable(Protocol):
    """What may have targets."""

    @property
    def has_targets(self) -> bool:
        """Return whether it can be scored."""


def make_folds(samples: Sequence[Scorable], n_folds: int) -> list[Ints]:
    """Divide the samples with targets into at most `n_folds` blocks of neighbours; the numbers of each block.

    Neighbours, such as frames of one video or slices of one volume, are alike: a model that has learned from one would
    be scored too well on the other. Samples without targets cannot be scored, and are in no block: they are always
    learned from.
    """
    scored = np.flatnonzero([sample.has_targets for sample in samples])
    return [block for block in np.array_split(scored, min(n_folds, len(scored))) if len(block)] if len(scored) else []


LEAST = 3  # scenes (or groups of bags) with targets; with fewer, no standard error can be trusted
ROWS = 20_000  # of each kind that are used of a scene
GAIN = 0.01  # a source alone must rank targets better by more average precision than this
STRONG = 0.05  # beyond this, it is enough that the fusion does not become worse: it may be perfect already
GOOD = 0.75  # with this AUC, inverted, it is enough that the fusion does not become clearly worse
RATIO = 4.0  # how much everything else in a scene counts, relative to its targets


@dataclass(frozen=True, eq=False)
class Signs:
    """The signs that were decided on, and why.

    Attributes
    ----------
    signs : ndarray of shape (n_sources,)
        +1, or -1 for sources that are inverted.
    alone : list of Spread
        By how much the average precision of each source alone rises if it is inverted.
    fused : list of Spread or None
        By how much that of the quick fusion rises; None for sources that are worse alone if inverted.
    auc : ndarray of shape (n_sources,)
        Mean area under the ROC curve of each source alone, with its sign.
    """

    signs: Floats
    alone: list[Spread]
    fused: list[Spread | None]
    auc: Floats

    @property
    def weak(self) -> list[int]:
        """Sources that alone, with the sign they have, rank targets below the rest."""
        return np.flatnonzero(self.auc < 0.5).tolist()


def trusted_signs(samples: Sequence[Sample], n_folds: int = 5) -> Signs:
    """Decide which sources to invert; the cost is that of some sorts per scene, source and fold.

    Parameters
    ----------
    samples : sequence of Sample
        Of all scenes, or of groups of bags.
    n_folds : int, default=5
        In how many blocks scenes are left out; at most as many as there are scenes with targets.
    """
    m = samples[0].targets.shape[1]
    few = [sample.few(ROWS) for sample in samples]
    scored = [sample for sample in few if sample.has_targets]
    if not scored:
        return Signs(np.ones(m), [Spread(np.nan, np.nan)] * m, [None] * m, np.full(m, np.nan))
    both = np.array([[_alone(sample, k) for k in range(m)] for sample in scored])  # scenes, sources, signs, scores
    gains = both[:, :, 1] - both[:, :, 0]
    alone = [spread(gains[:, k, 0]) for k in range(m)]
    signs, fused = np.ones(m), list[Spread | None]([None] * m)
    worth = [gain.mean > max(GAIN, 2 * gain.error) for gain in alone]
    doubtful = [k for k in range(m) if worth[k] and gains[:, k, 1].mean() > 0 and len(scored) >= LEAST]
    if doubtful:
        quick = _Quick(few, n_folds)
        best = quick.scores(signs)
        for k in sorted(doubtful, key=lambda k: -alone[k].mean):
            other = signs.copy()
            other[k] = -1
            reached = quick.scores(other)
            rise = fused[k] = spread(reached - best)
            slack = max(GAIN, 2 * rise.error) if both[:, k, 1, 1].mean() > GOOD else rise.error
            if rise.clear or (alone[k].mean > STRONG and rise.mean >= -slack):
                signs, best = other, reached
    chosen = np.where(signs < 0, 1, 0)
    auc = both.mean(axis=0)[np.arange(m), chosen, 1]
    return Signs(signs, alone, fused, auc)


def _alone(sample: Sample, k: int) -> list[tuple[float, float]]:
    targets, others = sample.targets[:, k], sample.others[:, k]
    return [sample.score(targets * sign, others * sign) for sign in (targets.dtype.type(1), targets.dtype.type(-1))]


class _Quick:
    """Cross-validated additive fusions: weights above and below zero for each source, by least squares."""

    def __init__(self, samples: Sequence[Sample], n_folds: int) -> None:
        self._samples, self._folds = samples, make_folds(samples, n_folds)
        self._forms = [_form(sample) for sample in samples]

    def scores(self, signs: Floats) -> Floats:
        """Return the average precision in each scene with targets, fused by what was learned without it."""
        square, pull = (np.sum([form[part] for form in self._forms], axis=0) for part in (0, 1))
        scores = np.empty(len(self._samples))
        for block in self._folds:
            left = [np.sum([self._forms[k][part] for k in block], axis=0) for part in (0, 1)]
            weights = _weights(square - left[0], pull - left[1], signs)
            for k in block:
                sample = self._samples[k].with_signs(signs)
                scores[k] = sample.score(_features(sample.targets) @ weights, _features(sample.others) @ weights).ap
        return scores[np.sort(np.concatenate(self._folds))]


def _features(X: Floats) -> Floats:
    return np.hstack([np.maximum(X, 0), np.minimum(X, 0), np.ones((len(X), 1), X.dtype)])


def _form(sample: Sample) -> tuple[Floats, Floats]:
    """Return the quadratic form of squared distances to 1 for targets and 0 for the rest."""
    m = sample.targets.shape[1]
    square, pull = np.zeros((2 * m + 1, 2 * m + 1)), np.zeros(2 * m + 1)
    sides = [(sample.targets, 1.0, 1.0), (sample.others, 0.0, RATIO)]
    for side, (rows, target, weight) in enumerate(sides):
        if not len(rows):
            continue
        features = _features(rows.astype(np.float64))
        share = np.full(len(rows), 1 / len(rows))
        if sample.offsets is not None:  # the mean over every bag
            sizes = np.diff(sample.offsets[side])
            share, weight = np.repeat(1 / sizes, sizes), 1.0
        square += weight * features.T @ (features * share[:, None])
        pull += weight * target * share @ features
    return square, pull


def _weights(square: Floats, pull: Floats, signs: Floats) -> Floats:
    """Minimise with weights that are not negative, sources multiplied by signs; the last one, the offset, is free."""
    m = len(signs)
    place, factor = np.arange(2 * m + 1), np.ones(2 * m + 1)
    for k in np.flatnonzero(signs < 0):  # max(-x, 0) is -min(x, 0), and the other way round
        place[[k, m + k]], factor[[k, m + k]] = [m + k, k], -1
    square, pull = square[place][:, place] * np.outer(factor, factor), pull[place] * factor
    root = np.linalg.cholesky(square + 1e-9 * (1 + np.trace(square)) * np.eye(2 * m + 1))
    low = np.append(np.zeros(2 * m), -np.inf)
    weights: Floats = lsq_linear(root.T, np.linalg.solve(root, pull), bounds=(low, np.inf)).x
    return weights
