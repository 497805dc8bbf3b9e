"""Importance of sources and interaction of pairs, as averages over the whole measure [1]_.

References
----------
.. [1] M. Grabisch and C. Labreuche, "Bi-capacities - I: definition, Moebius transform and interaction", Fuzzy Sets and
   Systems 151, 2005.
"""

from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np
from numpy.typing import NDArray

from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.explain.inputs import Explained, measure_of
from bimichi.measures.base import LatticeMeasure
from bimichi.measures.capacity import Capacity

__all__ = ["MAX_SOURCES", "Indices", "indices"]

Floats = NDArray[np.float64]

MAX_SOURCES = 12
"""Beyond, hardly any of the pairs that the averages run over is met by data."""


@dataclass(frozen=True, eq=False, repr=False)
class Indices:
    """Indices of a measure of m sources.

    Attributes
    ----------
    up : ndarray of shape (m,)
        What a source adds, on the average, when it rises from silent to for. Of a capacity: its Shapley value.
    down : ndarray of shape (m,)
        What a source adds, on the average, when it rises from against to silent. Of a capacity: 0.
    shapley : ndarray of shape (m,)
        Their sum. Over all sources it adds up to 2; of a capacity, to 1.
    interaction_up : ndarray of shape (m, m)
        Of sources i and j, both rising from silent to for. Above 0 they add more together than one by one
        (complements), below 0 less (substitutes). Symmetric; the diagonal is NaN.
    interaction_down : ndarray of shape (m, m)
        The same, both rising from against to silent: below 0, both against take away more than one by one.
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
    interaction_up: Floats
    interaction_down: Floats
    interaction_mixed: Floats
    source_names: tuple[str, ...]
    kind: str

    def to_table(self) -> Table:
        """Return the importance of each source as a table."""
        columns = {"up": self.up, "down": self.down, "Shapley": self.shapley}
        if self.kind == "capacity":
            del columns["up"], columns["down"]
        rows = [
            [Cell(name), *(Cell(number(float(column[k]))) for column in columns.values())]
            for k, name in enumerate(self.source_names)
        ]
        return Table(["source", *columns], rows)

    def interaction_table(self) -> Table:
        """Return the interactions of each pair of sources (first, second) as a table."""
        up, down, mixed = self.interaction_up, self.interaction_down, self.interaction_mixed
        columns = {"both up": up, "both down": down, "first up, second down": mixed, "second up, first down": mixed.T}
        if self.kind == "capacity":
            columns = {"interaction": up}
        m = len(self.source_names)
        rows = [
            [
                Cell(f"{self.source_names[i]}, {self.source_names[j]}"),
                *(Cell(number(float(column[i, j]))) for column in columns.values()),
            ]
            for i in range(m)
            for j in range(i + 1, m)
        ]
        return Table(["pair", *columns], rows)

    def __repr__(self) -> str:
        tables = [self.to_table(), self.interaction_table()]
        return f"Indices of a {self.kind}\n" + "\n\n".join(table.to_text() for table in tables if table.rows)

    def _repr_html_(self) -> str:
        return self.to_table().to_html() + self.interaction_table().to_html()


def indices(measure_or_model: Explained) -> Indices:
    """Compute the importance of every source and the interaction of every pair.

    Parameters
    ----------
    measure_or_model : BiCapacity, Capacity or fitted BiMIChI
        What to explain, of at most 12 sources. The sources of a model are meant as they enter the integral, so a
        source that is turned over is "up" where its given values are low.

    Notes
    -----
    Elements that no data ever uses count like all others here; `data_indices` is about data instead. Every
    index is one average of differences over the sets K of other sources, those in K for, the rest against:
    O(m^2 2^m) in all.

    Without the zero bound, g(empty, empty) is read as 0, which is the integral of silence. Only the up and down
    side of a single source and the interactions of two sources in all read it.

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
    measure = measure_of(measure_or_model)
    m = measure.n_sources
    if m > MAX_SOURCES:
        raise InvalidInputError(
            f"The measure has {m} sources; indices are offered up to {MAX_SOURCES}, because beyond them data meets "
            "hardly any of the elements averaged over. Use data_indices(measure, X), the average over data."
        )
    one_sided = isinstance(measure, Capacity)
    up = np.array([_difference(measure, (k,), ()) for k in range(m)])
    down = np.zeros(m) if one_sided else np.array([_difference(measure, (), (k,)) for k in range(m)])
    both_up, both_down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
    for i in range(m):
        for j in range(m):
            if i < j:
                both_up[i, j] = both_up[j, i] = _difference(measure, (i, j), ())
            if i < j and not one_sided:
                both_down[i, j] = both_down[j, i] = _difference(measure, (), (i, j))
            if i != j and not one_sided:
                mixed[i, j] = _difference(measure, (i,), (j,))
    return Indices(up, down, up + down, both_up, both_down, mixed, measure.source_names, measure.kind)


def _difference(measure: LatticeMeasure, up: tuple[int, ...], down: tuple[int, ...]) -> float:
    """Average the mixed difference of `up` rising from silent to for, and `down` from against to silent.

    Over the sets K of the n other sources, those of size k weigh (n - k)! k! / (n + 1)! each. In a capacity, what
    is not in K is absent.
    """
    base, absent = measure.lattice.base, measure.lattice.chain[0]
    others = [k for k in range(measure.n_sources) if k not in up + down]
    subsets = np.arange(1 << len(others))
    codes = sum(
        (base**k * np.where(subsets >> bit & 1, 1, absent) for bit, k in enumerate(others)), np.zeros_like(subsets)
    )
    n = len(others)
    weights = np.array([1 / ((n + 1) * comb(n, k)) for k in range(n + 1)])[np.bitwise_count(subsets)]
    total = np.zeros(len(subsets))
    for raised in product((True, False), repeat=len(up) + len(down)):
        digits = [1 if high else 0 for high in raised[: len(up)]] + [0 if high else 2 for high in raised[len(up) :]]
        moved = sum(digit * base**k for digit, k in zip(digits, up + down, strict=True))
        total += (-1) ** raised.count(False) * measure.values[codes + moved]
    return float(weights @ total)
