"""`BiCapacity`: a monotone measure on pairs of disjoint subsets, with values in [-1, 1]."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from bimichi._html import Cell, Table, number
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.base import SetOfSources, number_array
from bimichi.measures.files import Arrays, unpack_values
from bimichi.measures.lattice import Seed, pair_lattice, random_generator, sample, set_label
from bimichi.measures.on_lattice import LatticeMaker, LatticeMeasure, additive_values, sources_from_length

Pair = tuple[SetOfSources, SetOfSources]

MATRIX_LIMIT = 12
"""Sources up to which the matrix of 4^m values is offered."""


class BiCapacity(LatticeMeasure):
    """A bi-capacity g: g(A, B) is the weight of the sources in A against those in B.

    It rises when a source joins A or leaves B; g(C, empty) = 1 and g(empty, C) = -1.

    Parameters
    ----------
    values : array-like of shape (3^m,)
        One value per pair, in the order of ternary codes: source k adds 3^k when in A, 2 * 3^k when in B.
    source_names : sequence of str, optional
        Names of the m sources; "1", "2", ... by default.
    zero_bound : bool, default=True
        Whether g(empty, empty) = 0 is part of the order (Objective Function 2 of [1]_). Without it
        (Objective Function 1) that element means nothing, is never read, and is stored as 0.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.

    Examples
    --------
    >>> g = BiCapacity.additive([0.5, 0.3, 0.2], source_names=["thermal", "rgb", "lidar"])
    >>> g[["thermal"], ["rgb"]]
    0.2
    >>> round(g[{0, 1}, {2}], 3)
    0.6
    """

    kind: ClassVar[str] = "bicapacity"
    table_limit: ClassVar[int] = 5
    text_limit: ClassVar[int] = 3

    def __init__(self, values: ArrayLike, source_names: Sequence[str] | None = None, zero_bound: bool = True) -> None:
        self._set_values(_lattice_of(zero_bound), 3, values, source_names)

    @property
    def _options(self) -> tuple[Any, ...]:
        return (self.zero_bound,)

    @property
    def zero_bound(self) -> bool:
        """Return whether g(empty, empty) = 0 is part of the order."""
        return self.lattice.zero_bound

    def code(self, pair: Pair) -> int:
        return self.lattice.code(*self._pair(pair))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, source_names: Sequence[str] | None = None, zero_bound: bool = True) -> Self:
        """Make a bi-capacity from the paper's table: rows A, columns B, both in bitmask order.

        Parameters
        ----------
        matrix : array-like of shape (2^m, 2^m)
            NaN (or None) where A and B meet. The order is empty, 1, 2, 12, 3, 13, 23, 123, ...
        source_names, zero_bound
            As in the constructor.
        """
        table = number_array(matrix, "matrix")
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise InvalidInputError(
                f"matrix must be square, (2^m, 2^m), got shape {table.shape}.", code="matrix-shape", argument="matrix"
            )
        n_sources = sources_from_length(table.shape[0], 2, "matrix")
        lattice = _lattice_of(zero_bound)(n_sources)
        up, down = lattice.masks(np.arange(lattice.size))
        blank = np.ones_like(table, dtype=bool)
        blank[up, down] = False
        filled = np.argwhere(blank & ~np.isnan(table))
        if filled.size:
            row, column = filled[0]
            raise InvalidInputError(
                f"matrix[{row}, {column}] = {table[row, column]:.6g}, but A and B share a source there: leave it NaN.",
                code="matrix-overlap",
                argument="matrix",
            )
        return cls(table[up, down], source_names, zero_bound)

    def to_matrix(self) -> Floats:
        """Return the paper's table form, (2^m, 2^m), NaN where A and B meet; the inverse of `from_matrix`."""
        if self.n_sources > MATRIX_LIMIT:
            raise InvalidInputError(
                f"The matrix of {self.n_sources} sources would take {4**self.n_sources * 8 / 2**30:.1f} GiB; "
                f"it is offered up to {MATRIX_LIMIT} sources. Read .values by code instead.",
                code="sources-many",
            )
        matrix = np.full((1 << self.n_sources, 1 << self.n_sources), np.nan)
        matrix[self.lattice.masks(np.arange(self.lattice.size))] = self.values
        return matrix

    @classmethod
    def from_elements(
        cls,
        elements: Mapping[Pair, float],
        source_names: Sequence[str] | int | None = None,
        zero_bound: bool = True,
        completion: str = "middle",
    ) -> Self:
        """Make a bi-capacity from some of its elements; the rest follow.

        Parameters
        ----------
        elements : mapping of (A, B) to value
            A and B as tuples or frozensets of source indices or names, e.g. ``{((0,), (1, 2)): 0.4}``.
        source_names : sequence of str, or int, optional
            The sources, or just their number; by default counted by the largest index.
        zero_bound : bool, default=True
            As in the constructor.
        completion : {"middle", "lowest", "highest", "nearest-zero"}
            Where between its bounds an element that is not given lies.
        """
        return cls._completed(_lattice_of(zero_bound), elements, source_names, completion, zero_bound)

    @classmethod
    def additive(cls, weights: ArrayLike, source_names: Sequence[str] | None = None) -> Self:
        """Make g(A, B) = sum of weights in A minus sum of weights in B; its integral is the weighted mean."""
        return cls._from_subsets(*2 * (additive_values(weights),), source_names)

    @classmethod
    def from_capacities(cls, up: LatticeMeasure, down: LatticeMeasure) -> Self:
        """Make g(A, B) = up(A) - down(B) of two `Capacity` objects, the form of cumulative prospect theory."""
        if not all(isinstance(part, LatticeMeasure) and part.lattice.base == 2 for part in (up, down)):
            raise InvalidInputError(
                f"up and down must be Capacity objects, got {type(up).__name__}, {type(down).__name__}.",
                code="capacities",
            )
        if up.source_names != down.source_names:
            raise InvalidInputError(
                f"up and down have different sources: {up.source_names} and {down.source_names}.",
                code="capacities-sources",
            )
        return cls._from_subsets(up.values, down.values, up.source_names)

    @classmethod
    def _from_subsets(cls, up: Floats, down: Floats, source_names: Sequence[str] | None) -> Self:
        """Make up(A) - down(B), both given in bitmask order."""
        lattice = pair_lattice(sources_from_length(up.size, 2))
        masks = lattice.masks(np.arange(lattice.size))
        return cls(up[masks[0]] - down[masks[1]], source_names)

    @classmethod
    def random(
        cls,
        n_sources: int,
        zero_bound: bool = True,
        random_state: Seed = None,
        method: str = "ranks",
        source_names: Sequence[str] | None = None,
    ) -> Self:
        """Draw a bi-capacity at random, outward from (empty, empty).

        Parameters
        ----------
        n_sources : int
            Number of sources, m.
        zero_bound, source_names
            As in the constructor.
        random_state : int, numpy.random.Generator or None
            Seed or generator.
        method : {"ranks", "breadth-first"}
            "breadth-first" is the paper's order, O(9^m); "ranks" draws elements of equal |A| - |B| at once, O(m^2 3^m).
        """
        values = sample(_lattice_of(zero_bound)(n_sources), random_generator(random_state), method)
        return cls(values, source_names, zero_bound)

    def to_bicapacity(self) -> "BiCapacity":
        return self

    def to_table(self, bold: Iterable[Pair] | Flags | None = None) -> Table:
        """Return the paper's table: rows A, columns B.

        Parameters
        ----------
        bold : iterable of (A, B), or boolean array of shape (3^m,), optional
            Elements to print bold, for example ``usage_counts(X) > 0``.
        """
        if self.n_sources > self.table_limit:
            raise InvalidInputError(
                f"The table of {self.n_sources} sources has {2**self.n_sources} rows and columns; tables are offered "
                f"up to {self.table_limit} sources. Use to_matrix().",
                code="sources-many",
            )
        marked = self.flags(bold, "bold")
        subsets = self.lattice.subsets()
        labels = [set_label(subset, self.source_names) for subset in subsets]
        rows = []
        for up, label in zip(subsets, labels, strict=True):
            cells = [Cell(label)]
            for down in subsets:
                if set(up) & set(down):
                    cells.append(Cell(""))
                elif not up and not down and not self.zero_bound:
                    cells.append(Cell("–"))
                else:
                    code = self.lattice.code(up, down)
                    cells.append(Cell(number(float(self.values[code])), bool(marked[code])))
            rows.append(cells)
        return Table(["A \\ B", *labels], rows)

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = super().pack()
        return header | {"zero_bound": self.zero_bound}, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: Arrays) -> Self:
        values = unpack_values(_lattice_of(header["zero_bound"]), header, arrays)
        return cls(values, header["source_names"], header["zero_bound"])


def _lattice_of(zero_bound: bool) -> LatticeMaker:
    if not isinstance(zero_bound, bool | np.bool_):
        raise InvalidInputError(
            f"zero_bound must be True or False, got {zero_bound!r}.",
            code="flag",
            argument="zero_bound",
            value=zero_bound,
        )
    return partial(pair_lattice, zero_bound=bool(zero_bound))
