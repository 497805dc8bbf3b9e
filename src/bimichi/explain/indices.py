"""Importance of sources and interaction of pairs, as averages over the whole measure [1]_.

References
----------
.. [1] M. Grabisch and C. Labreuche, "Bi-capacities - I: definition, Moebius transform and interaction", Fuzzy Sets and
   Systems 151, 2005.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bimichi import _html
from bimichi._tables import Cell, Table, number
from bimichi._types import Floats
from bimichi.explain.base import Parts
from bimichi.explain.parts import parts_of
from bimichi.explain.results import TABLE_LIMIT, SourceIndices
from bimichi.rule import as_rule


@dataclass(frozen=True, eq=False, repr=False)
class Indices(SourceIndices):
    """Indices of a measure of m sources.

    Attributes
    ----------
    up, down : ndarray of shape (m,)
        What a source adds, on the average, when it rises from silent to for, and from against to silent. Of a
        capacity: its Shapley value, and 0.
    shapley : ndarray of shape (m,)
        Their sum. Over all sources it adds up to 2; of a capacity, to 1.
    interaction_up, interaction_down : ndarray of shape (m, m)
        Of sources i and j, both rising from silent to for, or both from against to silent. Above 0 they add more
        together than separately (complements), below 0 less (substitutes). Symmetric; the diagonal is NaN.
    interaction_mixed : ndarray of shape (m, m)
        The same, i rising from silent to for, j from against to silent; not symmetric. Above 0, i for adds less
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
