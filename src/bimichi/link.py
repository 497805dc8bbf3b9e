"""`Link`: from the output of a rule to the probability of a target; base rates, and how reliable probabilities are.

`align` estimates the share of targets in a scene whose outputs also have another gain and offset than in training.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError, warn

BINS = 100
"""Into so many bins of equal width, from -1 to 1, outputs are counted."""

DEPARTURE = 0.15
"""Up to this Kolmogorov-Smirnov distance to those of training, outputs of a scene are like them in any case."""


@dataclass(frozen=True)
class Link:
    """Log-odds of a target as a line over the output of a rule: f = slope * output + offset.

    Parameters
    ----------
    slope : float
        Not negative: a larger output never means a less likely target. With 0, all instances are equally likely.
    offset : float
        The log-odds where the output is 0.
    base_rate : float, optional
        The share of targets among the instances that the two were learned from, between 0 and 1.
    outputs : (sequence of float, sequence of float), optional
        How outputs of the training were distributed over `BINS` bins, of instances that were not targets and of
        those that were; each adds up to 1.
    variety : float, optional
        By how much the outputs of a single scene of the training departed from those of the others at most, as
        `departure` measures it.

    Examples
    --------
    >>> Link(slope=2.0, offset=-1.0).probability(0.5)
    0.5
    """

    slope: float
    offset: float
    base_rate: float | None = None
    outputs: tuple[tuple[float, ...], tuple[float, ...]] | None = field(default=None, repr=False)
    variety: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", check_number(self.slope, "slope", 0.0))
        object.__setattr__(self, "offset", check_number(self.offset, "offset"))
        if self.base_rate is not None:
            rate = check_number(self.base_rate, "base_rate", 0.0, 1.0, exclusive=True)
            object.__setattr__(self, "base_rate", rate)
        if self.outputs is not None:
            object.__setattr__(self, "outputs", _check_outputs(self.outputs))
        if self.variety is not None:
            object.__setattr__(self, "variety", check_number(self.variety, "variety", 0.0, 1.0))

    def log_odds(self, output: Any) -> Any:
        """Return slope * output + offset, in the type of the output."""
        return output * self.slope + self.offset

    def output(self, log_odds: Any) -> Any:
        """Return the output that has such log-odds; the inverse of `log_odds`. With a slope of 0, any: 0."""
        return (log_odds - self.offset) / self.slope if self.slope else log_odds * 0

    def probability(self, output: Any) -> Any:
        """Return the probability of a target, 1 / (1 + exp(-log-odds)); it rounds to 0 or 1 far out."""
        return probability_of(self.log_odds(output))

    def shifted(self, base_rate: float) -> "Link":
        """Return the link for data in which the share of targets is another: all log-odds move by the same amount.

        Raises
        ------
        InvalidInputError
            If the base rate of the training is not known.
        """
        rate = check_number(base_rate, "base_rate", 0.0, 1.0, exclusive=True)
        return replace(self, offset=self.offset + float(logit(rate) - logit(self._known_rate())), base_rate=rate)

    def adapted(self, output: ArrayLike, upward: bool = False) -> "Link":
        """Return the link for the share of targets that the outputs of a scene suggest, or, with a warning, this one.

        The share is that of `estimate_base_rate`. It holds if targets and all else look as they did in training. Where
        they do not, say in images of another gain, it is far off, and most often too high. So

        - a share above that in training is not trusted, and becomes that in training, unless `upward`;
        - where the outputs are not distributed as that share of targets, and others, like those in training would be,
          the share is estimated together with a gain and an offset of the outputs (`bimichi.link.align`), and
          the link becomes that for such outputs, with a warning;
        - where that does not explain them, or only with a share above that in training (more targets and brighter
          images then look the same), nothing is changed, with a warning. With a gain, shares above one half are never
          considered: most of a scene must be something else to show it.

        Outputs are unlike those in training if their `departure` is above `DEPARTURE`, above the `variety` of the
        training scenes themselves, and not by chance, as few outputs may be. This is not checked by a link that does
        not know the outputs of training; nor by one that a gain was removed from, which is for those outputs alone.

        Parameters
        ----------
        output : array-like
            C, or |C|, of the instances of a scene, or of several that are alike; NaN is left out. They should be drawn
            as those of the training were: without the surroundings of an image, if training was without.
        upward : bool, default=False
            Whether the share may be larger than in training.
        """
        outputs = np.asarray(output, dtype=np.float64).ravel()
        outputs = outputs[np.isfinite(outputs)]
        if not outputs.size:
            raise InvalidInputError(
                "output has no finite value to estimate the share of targets from.",
                code="no-complete-instance",
                argument="output",
            )
        if not self.slope:  # all are equally likely, whatever their outputs
            return self
        rate = estimate_base_rate(self.log_odds(outputs), self._known_rate())
        rate = rate if upward else min(rate, self._known_rate())
        chance = 1.36 / np.sqrt(outputs.size)  # the distance that one sample in twenty exceeds
        distance, most = self.departure(outputs, rate), max(DEPARTURE, self.variety or 0.0) + chance
        if self.outputs is None or distance is None or distance <= most:
            return self.shifted(rate)

        others, targets = map(np.asarray, self.outputs)
        shift = align(outputs, others, targets, self._known_rate())
        left = self.departure(outputs * shift.gain + shift.offset, shift.share)
        said = f"Outputs are distributed unlike those in training (distance {distance:.2f}; up to {most:.2f} is usual)"
        remedy = "give the share if you know it: base_rate (--base-rate)."
        if left is None or left > most or (shift.share > self._known_rate() and not upward):
            within = "" if upward else " that is not above that in training (upward=True allows more)"
            warn(
                f"{said}, and no gain, offset and share of targets{within} explain that. The share is left at "
                f"{self.base_rate:.3g}, as in training. Scale the sources alike, leave out (as NaN) what training left "
                f"out, or {remedy}",
                code="shift-unexplained",
                stacklevel=3,
            )
            return self
        share = max(shift.share, 0.5 / outputs.size)
        warn(
            f"{said}. A gain of {shift.gain:.2f} and an offset of {shift.offset:+.3f} explain that, and are removed; "
            f"the share of targets is then {share:.2g}. To be sure, {remedy}",
            code="shift-corrected",
            stacklevel=3,
        )
        line = Link(self.slope * shift.gain, self.offset + self.slope * shift.offset, self.base_rate)
        return line.shifted(share)

    def departure(self, output: Floats, base_rate: float) -> float | None:
        """Return the Kolmogorov-Smirnov distance of outputs to those in training, of such a share of targets.

        The distance is taken at the edges of bins; None if the link does not know the outputs of training.
        """
        if self.outputs is None:
            return None
        return mixture_distance(count_outputs(output), base_rate, *map(np.asarray, self.outputs))

    def _known_rate(self) -> float:
        if self.base_rate is None:
            raise InvalidInputError(
                "The link does not know the share of targets in training, from which to shift. Give it: "
                "rule.linked(slope, offset, base_rate).",
                code="base-rate-unknown",
            )
        return self.base_rate

    def pack(self) -> dict[str, Any]:
        """Return the header field of a model file."""
        outputs = None if self.outputs is None else [list(shares) for shares in self.outputs]
        return vars(self) | {"outputs": outputs}

    @classmethod
    def unpack(cls, header: Any) -> Self:
        """Return the link in a model file; the inverse of `pack`."""
        if not isinstance(header, dict):
            raise InvalidInputError(
                f"its link must have a slope and an offset, got {header!r}.", code="model-link", value=header
            )
        return cls(*(header[name] for name in ("slope", "offset", "base_rate", "outputs", "variety")))


def count_outputs(output: Floats, weights: Floats | None = None) -> Floats:
    """Return how many outputs, or how much of their weights, lie in each of the bins."""
    where = np.clip(((output + 1) * (BINS / 2)).astype(np.int64), 0, BINS - 1)
    return np.bincount(where, weights, BINS).astype(np.float64)


def mixture_distance(counts: Floats, share: float, others: Floats, targets: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance, at the edges of bins, of counts to a mixture of two distributions."""
    sums = [np.cumsum(side) for side in (others, targets, counts)]
    first, second, observed = (side / side[-1] for side in sums)
    return min(1.0, float(np.abs(observed - (1 - share) * first - share * second).max()))  # above 1 by rounding alone


def _check_outputs(outputs: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    try:
        others, targets = (tuple(float(share) for share in shares) for shares in outputs)
    except (TypeError, ValueError):
        others = targets = ()
    for shares in (others, targets):
        if len(shares) != BINS or not all(share >= 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
            raise InvalidInputError(
                f"outputs must be two lists of {BINS} shares, each adding up to 1, got {str(outputs)[:80]}.",
                code="link-outputs",
                argument="outputs",
            )
    return others, targets


def probability_of(log_odds: Any) -> Any:
    """Return 1 / (1 + exp(-log_odds)) without overflow, for numbers, arrays, and those of xarray."""
    probability = expit(log_odds)
    return float(probability) if isinstance(log_odds, float) else probability


def estimate_base_rate(log_odds: ArrayLike, base_rate: float) -> float:
    """Estimate the share of targets among instances whose log-odds were learned where it was another [1]_.

    Suppose that targets and others look as they did in training, and only their shares differ. Then the log-odds f,
    moved by the difference of the log-odds of both shares, are right for the new share, which is the mean of the
    probabilities sigma(f + shift). EM repeats this from the old share; as the likelihood is concave in the share, the
    end of that iteration is found directly. O(n) per step, about 50 steps.

    Parameters
    ----------
    log_odds : array-like
        Of the new instances, without any shift; NaN is left out.
    base_rate : float
        The share of targets in training.

    Returns
    -------
    rate : float
        Between half an instance and all but half of one.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure", Neural Computation 14 (1), 2002.
    """
    odds = np.asarray(log_odds, dtype=np.float64).ravel()
    odds = odds[~np.isnan(odds)]
    if not odds.size:
        raise InvalidInputError(
            "log_odds has no value without NaN to estimate a base rate from.",
            code="no-complete-instance",
            argument="log_odds",
        )
    from scipy.optimize import brentq  # not at the top: a rule is loaded and applied without it

    start = float(logit(check_number(base_rate, "base_rate", 0.0, 1.0, exclusive=True)))
    least = 0.5 / max(odds.size, 2)

    def excess(shift: float) -> float:
        """Return by how much the mean probability exceeds the share that it was computed with."""
        return float(expit(odds + shift).mean() - expit(start + shift))

    low, high = (float(logit(end)) - start for end in (least, 1 - least))
    if excess(low) <= 0:
        return least
    if excess(high) >= 0:
        return 1 - least
    # The excess is 0 at the end of EM, and at shares of 0 and 1, which are outside.
    return float(expit(start + brentq(excess, low, high, xtol=1e-10)))


class Reliability(NamedTuple):
    """Bins of instances: the mean of their probabilities, the share of targets among them, and their number."""

    predicted: Floats
    observed: Floats
    counts: Ints

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of the two, bins counted by their instances."""
        return float(self.counts @ np.abs(self.predicted - self.observed) / self.counts.sum())


def reliability_of(positive: Flags, probability: Floats, bins: int = 15, equal_counts: bool = False) -> Reliability:
    """Put instances into bins of equal width, or of nearly equal counts, by probability; empty ones are left out."""
    check_integer(bins, "bins")
    if equal_counts:
        inner = np.quantile(probability, np.linspace(0, 1, bins + 1)[1:-1])
        where = np.searchsorted(np.unique(inner), probability, side="right")
    else:
        where = np.minimum((probability * bins).astype(np.int64), bins - 1)
    counts = np.bincount(where)
    full = counts > 0
    sums = (np.bincount(where, values, len(counts))[full] for values in (probability, positive))
    predicted, observed = (total / counts[full] for total in sums)
    return Reliability(predicted, observed, counts[full])


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
    from scipy.ndimage import gaussian_filter1d
    from scipy.optimize import minimize

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
