"""Importance of sources and interaction of pairs, as averages over the whole measure [1]_, or over data.

References
----------
.. [1] M. Grabisch and C. Labreuche, "Bi-capacities - I: definition, Moebius transform and interaction", Fuzzy Sets and
   Systems 151, 2005.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi import _html
from bimichi._html import Cell, Table, number
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import TABLE_LIMIT, Explanation, Parts, parts_of, percent, prepare
from bimichi.integral.planes import Planes
from bimichi.rule import as_rule


@dataclass(frozen=True, eq=False, repr=False)
class SourceIndices(Explanation):
    """Interactions of pairs of named sources; subclasses add the importance of each source."""

    interaction_up: Floats
    interaction_down: Floats
    interaction_mixed: Floats
    source_names: tuple[str, ...]

    def interactions(self, one_sided: bool, up: str = "up", down: str = "down") -> dict[str, Floats]:
        """Return matrices (first, second) by heading, in the words for the two sides; one if none is ever down."""
        if one_sided:
            return {"interaction": self.interaction_up}
        return {
            f"both {up}": self.interaction_up,
            f"both {down}": self.interaction_down,
            f"first {up}, second {down}": self.interaction_mixed,
            f"second {up}, first {down}": self.interaction_mixed.T,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Indices(SourceIndices):
    """Indices of a measure of m sources.

    Attributes
    ----------
    up, down : ndarray of shape (m,)
        The mean gain when a source rises from neutral (0) to for (+1), and from against (-1) to neutral. Of a capacity:
        its Shapley value, and 0.
    shapley : ndarray of shape (m,)
        Their sum. Over all sources it adds up to 2; of a capacity, to 1.
    interaction_up, interaction_down : ndarray of shape (m, m)
        Of sources i and j, both rising from neutral to for, or both from against to neutral. Above 0 they add more
        together than separately (complements), below 0 less (substitutes). Symmetric; the diagonal is NaN.
    interaction_mixed : ndarray of shape (m, m)
        The same, i rising from neutral to for, j from against to neutral; not symmetric. Above 0, i for adds less
        while j is against.
    source_names : tuple of str
        Names of the sources.
    kind : str
        "bicapacity" or "capacity".
    """

    up: Floats
    down: Floats
    shapley: Floats
    kind: str

    def interaction_table(self) -> Table:
        """Return the interactions of each pair of sources (first, second) as a table."""
        columns, names = self.interactions(self.kind == "capacity"), self.source_names
        rows = [
            [Cell(f"{names[i]}, {names[j]}"), *(Cell(number(float(column[i, j]))) for column in columns.values())]
            for i, j in combinations(range(len(names)), 2)
        ]
        return Table(["pair", *columns], rows)

    def _head(self) -> str:
        return f"Indices of a {self.kind}"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        sides = {} if self.kind == "capacity" else {"up": self.up.tolist(), "down": self.down.tolist()}
        return {"source": self.source_names} | sides | {"Shapley": self.shapley.tolist()}

    def __repr__(self) -> str:
        pairs = self.interaction_table()
        return super().__repr__() + (f"\n\n{pairs.to_text()}" if 0 < len(pairs.rows) <= TABLE_LIMIT else "")

    def _repr_html_(self) -> str:
        return _html.view(self._head(), _html.table(self.to_table()), _html.table(self.interaction_table()))


def indices(model: Any) -> Indices:
    """Compute the importance of every source and the interaction of every pair.

    Parameters
    ----------
    model : FusionRule, Measure, or fitted estimator that has a measure
        What to explain; on a lattice, of at most 12 sources. Sources are meant as they enter the integral: an inverted
        one is "up" where its given values are low.

    Notes
    -----
    Elements that no data ever uses count like all others here; `data_indices` is about data instead. Every
    index is one average of differences over the sets K of other sources, those in K for, the rest against:
    O(m^2 2^m) in all. For an additive measure these averages have a closed form, O(m^2) in all.

    Without the zero bound, g(empty, empty) is read as 0, which is the integral where all sources are 0.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> indices(BiCapacity.additive([0.7, 0.3], ["thermal", "rgb"]))
    Indices of a bicapacity
    source     up  down  Shapley
    thermal  0.70  0.70     1.40
    rgb      0.30  0.30     0.60
    <BLANKLINE>
    pair          both up  both down  first up, second down  second up, first down
    thermal, rgb     0.00       0.00                   0.00                   0.00
    """
    measure = as_rule(model).measure
    return indices_of(parts_of(measure), "capacity" if measure.low == 0 else "bicapacity")


def indices_of(parts: Parts, kind: str) -> Indices:
    """Return the indices of the parts of a measure."""
    up, down, both_up, both_down, mixed = parts.indices()
    return Indices(both_up, both_down, mixed, parts.names, up, down, up + down, kind)


@dataclass(frozen=True, eq=False, repr=False)
class DataIndices(SourceIndices):
    """Averages of `contributions` over instances, of m sources.

    An instance is on the up side of a source if the source is at least 0 there (as it enters the integral, so
    scaled and inverted), else on its down side.

    Attributes
    ----------
    share, share_up, share_down : ndarray of shape (m,)
        The mean of |contribution| of each source as a share of `magnitude`, so that they add up to 1 (0 if nothing
        contributes); and the parts of it from instances on the up side, and on the down side.
    signed, signed_up, signed_down : ndarray of shape (m,)
        The mean contribution, which adds up to the mean of C; and the parts of it from either side.
    magnitude : float
        The mean over instances of the sum of |contribution|.
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
    n_instances: int

    def _head(self) -> str:
        return f"DataIndices of {self.n_instances:,} instances"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        shares = {"share": self.share, "up": self.share_up, "down": self.share_down}
        columns = shares | {"mean contribution": self.signed}
        return {"source": self.source_names} | {name: column.tolist() for name, column in columns.items()}

    def _text(self, column: str, value: Any) -> str:
        return percent(value) if column in ("share", "up", "down") else super()._text(column, value)


def data_indices(model: Any, X: ArrayLike | Sequence[ArrayLike], *, n_jobs: int | None = None) -> DataIndices:
    """Average the contributions of the sources, and the interaction of every pair, over data.

    Parameters
    ----------
    model, X, n_jobs
        As in `contributions`; instances with NaN are left out. With a link, all but shares are in log-odds.

    Notes
    -----
    O(n m^2), and O(m^2 3^m) once for a measure on a lattice. The interaction index is linear in the measure, so the
    mean weight of every element or term is enough; no array is as large as the contributions.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> data_indices(BiCapacity.additive([0.75, 0.25], ["thermal", "rgb"]), [[1.0, -1.0], [-0.5, 0.5]])
    DataIndices of 2 instances
    source   share    up  down  mean contribution
    thermal   75 %  50 %  25 %               0.19
    rgb       25 %   8 %  17 %              -0.06
    """
    rule, parts, planes = prepare(model, X)
    return averages(parts, planes, n_jobs, 1.0 if rule.link is None else rule.link.slope)


def averages(parts: Parts, planes: Planes, n_jobs: int | None, slope: float = 1.0) -> DataIndices:
    """Return the averages over sources that are checked, as they enter the integral, times a slope."""
    use = parts.count_use(planes, n_jobs)
    if not use.n_instances:
        raise InvalidInputError(
            f"X has no instance without NaN to average over, out of {planes.size:,}.",
            code="no-complete-instance",
            argument="X",
        )

    def by_side(rows: NDArray[Any], contributed: Floats) -> Floats:
        """Sum |contribution| and contribution, each up and down: shape (2, 2, m)."""
        sides = np.stack([np.where(rows >= 0, contributed, 0.0), np.where(rows >= 0, 0.0, contributed)])
        return np.stack([np.abs(sides).sum(axis=1), sides.sum(axis=1)])

    sums = np.sum(parts.summarise(planes, n_jobs, by_side), axis=0)
    (size_up, size_down), (signed_up, signed_down) = slope * sums / use.n_instances
    magnitude = float((size_up + size_down).sum())
    share_up, share_down = (size / (magnitude or 1.0) for size in (size_up, size_down))
    up, down, mixed = parts.interactions(slope * use.weight / use.n_instances)
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
        source_names=parts.names,
        n_instances=use.n_instances,
    )
