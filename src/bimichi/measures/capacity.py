"""`Capacity`: the normalised monotone measure on subsets, with values in [0, 1]."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from bimichi._html import Cell, Table, number
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.base import SetOfSources
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.files import Arrays, unpack_values
from bimichi.measures.lattice import Seed, random_generator, sample, set_label, subset_lattice
from bimichi.measures.on_lattice import LatticeMeasure, additive_values

ENUMERATION_LIMIT = 5
"""Sources up to which binary measures are listed: 7,828,352 of six would be too many."""


class Capacity(LatticeMeasure):
    """A capacity (fuzzy measure) g: g(A) is the worth of the sources in A together.

    Parameters
    ----------
    values : array-like of shape (2^m,)
        One value per subset in bitmask order: bit k stands for source k. g(empty) = 0, g(all) = 1.
    source_names : sequence of str, optional
        Names of the m sources; "1", "2", ... by default.

    Examples
    --------
    >>> g = Capacity.additive([0.5, 0.3, 0.2])
    >>> g[{0, 2}]
    0.7
    """

    kind: ClassVar[str] = "capacity"
    low: ClassVar[float] = 0.0
    table_limit: ClassVar[int] = 6
    text_limit: ClassVar[int] = 6

    def __init__(self, values: ArrayLike, source_names: Sequence[str] | None = None) -> None:
        self._set_values(subset_lattice, 2, values, source_names)

    def code(self, subset: SetOfSources) -> int:
        return self.lattice.code(self._sources(subset))

    @classmethod
    def from_elements(
        cls,
        elements: Mapping[Any, float],
        source_names: Sequence[str] | int | None = None,
        completion: str = "middle",
    ) -> Self:
        """Make a capacity from some of its elements, e.g. ``{(0, 1): 0.4}``; the rest follow.

        Parameters as in `BiCapacity.from_elements`, but a set of sources, a tuple or frozenset, names an element.
        """
        return cls._completed(subset_lattice, elements, source_names, completion)

    @classmethod
    def additive(cls, weights: ArrayLike, source_names: Sequence[str] | None = None) -> Self:
        """Make g(A) = sum of the weights in A; weights are non-negative and add up to 1."""
        return cls(additive_values(weights), source_names)

    @classmethod
    def random(cls, n_sources: int, random_state: Seed = None, source_names: Sequence[str] | None = None) -> Self:
        """Draw a capacity at random, subsets of middle size first, outward to the largest and smallest."""
        return cls(sample(subset_lattice(n_sources), random_generator(random_state)), source_names)

    @classmethod
    def binary(cls, winning: Iterable[SetOfSources], source_names: Sequence[str] | int) -> Self:
        """Make the measure that is 1 on the `winning` sets and all that contain one of them, 0 elsewhere."""
        elements = {frozenset([part] if isinstance(part, str | int | np.integer) else part): 1.0 for part in winning}
        return cls.from_elements(elements, source_names, completion="lowest")

    @property
    def is_binary(self) -> bool:
        """Return whether every value is 0 or 1."""
        return bool(np.isin(self.values, (0.0, 1.0)).all())

    @classmethod
    def all_binary(cls, n_sources: int) -> Iterator[Self]:
        """Yield every binary measure: 1, 4, 18, 166 and 7,579 of them for 1 to 5 sources."""
        for values in binary_values(n_sources):
            yield cls(values)

    def listing(self) -> list[tuple[tuple[int, ...], float]]:
        """Pairs (subset, value) by size, then lexicographically, without the empty set: 1, 2, 3, 12, 13, 23, 123."""
        subsets = (s for size in range(1, self.n_sources + 1) for s in combinations(range(self.n_sources), size))
        return [(subset, self[subset]) for subset in subsets]

    def to_bicapacity(self) -> BiCapacity:
        """Return the bi-capacity g(A) - g(B), whose integral of non-negative sources is that of this measure."""
        return BiCapacity.from_capacities(self, self)

    def to_table(self, bold: Iterable[SetOfSources] | Flags | None = None) -> Table:
        """Return the elements by size, then lexicographically; `bold` as in `BiCapacity.to_table`."""
        if self.n_sources > self.table_limit:
            raise InvalidInputError(
                f"The listing of {self.n_sources} sources has {self.lattice.size:,} entries; listings are offered "
                f"up to {self.table_limit} sources. Use listing().",
                code="sources-many",
            )
        marked = self.flags(bold, "bold")
        rows = [
            [Cell(set_label(subset, self.source_names)), Cell(number(value), bool(marked[self.code(subset)]))]
            for subset, value in self.listing()
        ]
        return Table(["A", "g(A)"], rows)

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: Arrays) -> Self:
        return cls(unpack_values(subset_lattice, header, arrays), header["source_names"])


def binary_values(n_sources: int) -> Floats:
    """All binary measures as rows of 2^m values.

    A monotone 0/1 function of m sources is two of m - 1 sources, without and with the last one, the first below the
    second; as truth tables in bits, that is ``low & ~high == 0``.
    """
    subset_lattice(n_sources)
    if n_sources > ENUMERATION_LIMIT:
        raise InvalidInputError(
            f"The binary measures of {n_sources} sources are too many to list "
            f"(7,828,352 at six); they are listed up to {ENUMERATION_LIMIT} sources.",
            code="sources-many",
        )
    tables = np.array([0, 1], dtype=np.uint32)
    for k in range(n_sources):
        high, low = np.meshgrid(tables, tables, indexing="ij")
        tables = (high << np.uint32(2**k) | low)[low & ~high == 0]
    tables = np.sort(tables)[1:-1]  # without the two constants
    return (tables[:, None] >> np.arange(2**n_sources, dtype=np.uint32) & 1).astype(np.float64)
