"""Which scenes (or groups of bags) are left out together, and how sure a mean over those left out is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bimichi._types import Floats, Ints
from bimichi.learning.samples import Sample


class Spread(NamedTuple):
    """A mean, and its standard error; NaN for the error of a single number."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether the mean is above zero by more than its standard error."""
        return bool(self.mean > self.error)  # False with NaN


def spread(values: Sequence[float] | Floats) -> Spread:
    """Return the mean of numbers and its standard error.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, error=0.5773502691896258)
    """
    given = np.asarray(values, dtype=np.float64)
    if len(given) < 2:
        return Spread(float(given.mean()) if len(given) else np.nan, np.nan)
    return Spread(float(given.mean()), float(given.std(ddof=1) / np.sqrt(len(given))))


def shown_spread(value: Spread, sign: bool = False) -> str:
    """Write a mean and its standard error.

    Examples
    --------
    >>> shown_spread(Spread(0.5, 0.01), sign=True)
    '+0.500 ± 0.010'
    """
    mean = f"{value.mean:+.3f}" if sign else f"{value.mean:.3f}"
    return mean + ("" if np.isnan(value.error) else f" ± {value.error:.3f}")


def make_folds(samples: Sequence[Sample], n_folds: int) -> list[Ints]:
    """Divide the samples with targets into at most `n_folds` blocks of neighbours; the numbers of each block.

    Neighbours, such as frames of one video or slices of one volume, are alike: a model that has learned from one would
    be scored too well on the other. Samples without targets cannot be scored, and are in no block: they are always
    learned from.
    """
    scored = np.flatnonzero([sample.has_targets for sample in samples])
    return [block for block in np.array_split(scored, min(n_folds, len(scored))) if len(block)] if len(scored) else []
