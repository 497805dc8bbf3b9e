"""Importance and interaction as averages over data, so that elements far from all data do not count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.explain.attribution import Contributing
from bimichi.explain.identifiability import use_of
from bimichi.explain.inputs import Explained, ready
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.base import LatticeMeasure

__all__ = ["DataIndices", "data_indices"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class DataIndices:
    """Averages over instances of what `contributions` gives, of m sources.

    An instance is on the up side of a source if the source is at least 0 there (as it enters the integral, so
    scaled and turned), else on its down side.

    Attributes
    ----------
    share : ndarray of shape (m,)
        The mean of |contribution| of each source, as a share of `magnitude`: they add up to 1 (are all 0 if nothing
        contributes).
    share_up, share_down : ndarray of shape (m,)
        The part of `share` from instances on the up side, and on the down side.
    signed : ndarray of shape (m,)
        The mean contribution; these add up to the mean of C.
    signed_up, signed_down : ndarray of shape (m,)
        The part of `signed` from either side: sums over its instances, divided by the number of all.
    magnitude : float
        The mean over instances of the sum of |contribution|: what shares are shares of.
    interaction_up, interaction_down, interaction_mixed : ndarray of shape (m, m)
        The mean of the Shapley interaction index of each pair in the game of `contributions`, from instances that
        have both sources up, both down, and i up with j down. Signs as in `Indices`; the diagonal is NaN.
    source_names : tuple of str
        Names of the sources.
    n_instances : int
        How many instances were averaged; those with NaN are left out.
    """

    share: Floats
    share_up: Floats
    share_down: Floats
    signed: Floats
    signed_up: Floats
    signed_down: Floats
    magnitude: float
    interaction_up: Floats
    interaction_down: Floats
    interaction_mixed: Floats
    source_names: tuple[str, ...]
    n_instances: int

    def to_table(self) -> Table:
        """Return the shares (in per cent) and the mean contributions as a table."""
        shares = {"share": self.share, "up": self.share_up, "down": self.share_down}
        rows = [
            [
                Cell(name),
                *(Cell(f"{100 * column[k]:.0f} %") for column in shares.values()),
                Cell(number(float(self.signed[k]))),
            ]
            for k, name in enumerate(self.source_names)
        ]
        return Table(["source", *shares, "mean contribution"], rows)

    def __repr__(self) -> str:
        return f"DataIndices of {self.n_instances:,} instances\n{self.to_table().to_text()}"

    def _repr_html_(self) -> str:
        return self.to_table().to_html()


def data_indices(
    measure_or_model: Explained, X: ArrayLike | Sequence[ArrayLike], *, n_jobs: int | None = None
) -> DataIndices:
    """Average the contributions of the sources, and the interaction of every pair, over a data set.

    Parameters
    ----------
    measure_or_model : BiCapacity, Capacity or fitted BiMIChI
        What to explain.
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        The data, as in `contributions`. Instances with NaN are left out.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Notes
    -----
    O(n m^2 + m^2 3^m), and no array as large as the contributions. Interactions need no pass over pairs of sources
    at each instance: the index is linear in the measure, so the mean weight of every element is enough.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> data_indices(BiCapacity.additive([0.75, 0.25], ["thermal", "rgb"]), [[1.0, -1.0], [-0.5, 0.5]])
    DataIndices of 2 instances
    source   share    up  down  mean contribution
    thermal   75 %  50 %  25 %               0.19
    rgb       25 %   8 %  17 %              -0.06
    """
    measure, sources = ready(measure_or_model, X)
    planes = Planes(sources, measure.n_sources, measure.source_names)
    use = use_of(measure, planes, n_jobs)
    if not use.n_instances:
        raise InvalidInputError(f"X has no instance without NaN to average over, out of {planes.size:,}.")
    (size_up, size_down), (signed_up, signed_down) = _sums(measure, planes, n_jobs) / use.n_instances
    magnitude = float((size_up + size_down).sum())
    share_up, share_down = (size / (magnitude or 1.0) for size in (size_up, size_down))
    up, down, mixed = _interactions(measure, use.weight / use.n_instances)
    return DataIndices(
        share=share_up + share_down,
        share_up=share_up,
        share_down=share_down,
        signed=signed_up + signed_down,
        signed_up=signed_up,
        signed_down=signed_down,
        magnitude=magnitude,
        interaction_up=up,
        interaction_down=down,
        interaction_mixed=mixed,
        source_names=measure.source_names,
        n_instances=use.n_instances,
    )


def _sums(measure: LatticeMeasure, planes: Planes, n_jobs: int | None) -> Floats:
    """Sums over instances of |contribution| and of contribution, each up and down: shape (2, 2, m)."""
    contributing = Contributing(measure, planes)

    def run(chunk: slice) -> Floats:
        given = planes.stacked(chunk)
        parts = np.empty((given.shape[1], planes.n_sources))
        contributing(given, parts)
        kept = ~np.isnan(parts[:, 0])
        parts, high = parts[kept], given.T[kept] >= 0
        sides = np.stack([np.where(high, parts, 0.0), np.where(high, 0.0, parts)])
        return np.stack([np.abs(sides).sum(axis=1), sides.sum(axis=1)])

    found = run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    return np.asarray(sum(found, np.zeros((2, 2, planes.n_sources))))


def _interactions(measure: LatticeMeasure, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean interactions, given the mean weight of every element.

    The index of a pair in the game of one element is the sum of Moebius(T) / (|T| - 1) over the sub-elements T that
    hold both. So T counts with the weight of all elements that it is part of.
    """
    m, base = measure.n_sources, measure.lattice.base
    moebius, within, size = measure.values.copy(), weight.copy(), np.zeros(1)
    for k in range(m):
        part = moebius.reshape(-1, base, base**k)
        part[:, 1:] -= part[:, :1]
        part = within.reshape(-1, base, base**k)
        part[:, 0] = part.sum(axis=1)
        size = np.concatenate([size, size + 1, size + 1][:base])
    terms = np.where(size > 1, moebius * within / np.maximum(size - 1, 1), 0.0)
    up, down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
    for i in range(m):
        for j in range(i + 1, m):
            by_digits = terms.reshape(base ** (m - 1 - j), base, base ** (j - i - 1), base, base**i).sum((0, 2, 4))
            up[i, j] = up[j, i] = by_digits[1, 1]
            if base == 3:  # rows: the digit of j; down is one step below silent, hence the sign of mixed terms
                down[i, j] = down[j, i] = by_digits[2, 2]
                mixed[i, j], mixed[j, i] = -by_digits[2, 1], -by_digits[1, 2]
    return up, down, mixed
