"""`TwoAdditive`: a bi-capacity of many sources, told by the terms of single sources and of pairs."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.measures import files as io
from bimichi.measures.base import TOLERANCE, check_names, number_array
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import MAX_ELEMENTS
from bimichi.measures.sampling import random_generator
from bimichi.measures.terms import Terms

__all__ = ["TwoAdditive"]

SHOWN = 12
"""Terms that repr lists."""

Floats = NDArray[np.float64]


class TwoAdditive:
    """A 2-additive bi-capacity: g(A, B) is the sum of the terms of the sources and of the pairs in (A, B).

    It has 2 m^2 numbers where a `BiCapacity` has 3^m, so it serves where these are too many. It has the zero bound.
    Immutable and hashable.

    Parameters
    ----------
    terms : array-like of shape (2 m^2,)
        In the order of `bimichi.measures.terms.Terms`: sources up, sources down, then pairs; `from_tables` is easier.
    source_names : sequence of str, optional
        By default "1", "2", ...

    Raises
    ------
    InvalidInputError
        If the terms break the bounds, g(C, empty) = 1 and g(empty, C) = -1, or the order, by more than 1e-9. Both are
        checked exactly, in O(m^2).

    Examples
    --------
    >>> g = TwoAdditive.from_tables(up=[[0.6, 0.2], [0.2, 0.2]], down=[[-0.5, 0], [0, -0.5]], cross=[[0, -0.1], [0, 0]])
    >>> round(g[(0,), (1,)], 3)
    0.0
    >>> g.to_bicapacity()[(0, 1), ()]
    1.0
    """

    kind: ClassVar[str] = "2-additive"
    _terms: Terms
    _values: Floats
    _source_names: tuple[str, ...]

    def __init__(self, terms: ArrayLike, source_names: Sequence[str] | None = None) -> None:
        values = number_array(terms, "terms")
        m = max(1, round((values.size / 2) ** 0.5))
        if values.shape != (2 * m * m,):
            raise InvalidInputError(f"terms has shape {values.shape}; m sources have 2 m^2 terms (2, 8, 18, 32, ...).")
        space = Terms(m)
        names = check_names(source_names, m)
        _check(space, values, names)
        object.__setattr__(self, "_terms", space)
        object.__setattr__(self, "_source_names", names)
        object.__setattr__(self, "_values", np.frombuffer((values + 0.0).tobytes()))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("A TwoAdditive cannot be changed; make a new one instead.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    @classmethod
    def from_tables(
        cls, up: ArrayLike, down: ArrayLike, cross: ArrayLike | None = None, source_names: Sequence[str] | None = None
    ) -> Self:
        """Make one from tables of shape (m, m).

        Parameters
        ----------
        up : array-like
            Terms of sources in A: of single ones on the diagonal, of pairs off it, symmetric.
        down : array-like
            The same for sources in B; those of single ones are at most 0.
        cross : array-like, optional
            In row i and column j, the term of source i in A and source j in B; 0 on the diagonal. By default all 0.
        source_names : sequence of str, optional
            As in the constructor.
        """
        above, below = number_array(up, "up"), number_array(down, "down")
        mixed = np.zeros_like(above) if cross is None else number_array(cross, "cross")
        for what, table in (("up", above), ("down", below), ("cross", mixed)):
            if table.ndim != 2 or table.shape != (len(above), len(above)):
                raise InvalidInputError(f"{what} must have one row and one column a source, got shape {table.shape}.")
        for what, table in (("up", above), ("down", below)):
            if not np.array_equal(table, table.T, equal_nan=True):
                raise InvalidInputError(f"{what} must be symmetric: the pair (i, k) is the pair (k, i).")
        if mixed.diagonal().any():
            raise InvalidInputError("cross must be 0 on its diagonal: a source is not in A and in B.")
        space = Terms(len(above))
        first, second = space.sides
        whole = np.block([[above, mixed], [mixed.T, below]])
        return cls(np.concatenate([whole.diagonal(), whole[first, second]]), source_names)

    @classmethod
    def additive(cls, weights: ArrayLike, source_names: Sequence[str] | None = None) -> Self:
        """Make g(A, B) = sum of weights in A minus sum of weights in B; its integral is the weighted mean."""
        given = number_array(weights, "weights")
        if given.ndim != 1 or given.size == 0:
            raise InvalidInputError(f"weights must be 1-D, one for each source, got shape {given.shape}.")
        table = np.diag(given)
        return cls.from_tables(table, -table, source_names=source_names)

    @classmethod
    def random(
        cls,
        n_sources: int,
        random_state: int | np.random.Generator | None = None,
        source_names: Sequence[str] | None = None,
    ) -> Self:
        """Draw one at random."""
        return cls(Terms(n_sources).sample(random_generator(random_state)), source_names)

    @property
    def space(self) -> Terms:
        """The order of the terms."""
        return self._terms

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return self._terms.n_sources

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources; by default "1", "2", ..."""
        return self._source_names

    @property
    def terms(self) -> Floats:
        """The terms, read-only; see `bimichi.measures.terms.Terms` for their order."""
        return self._values

    @property
    def up(self) -> Floats:
        """Terms of sources in A, shape (m, m): of single ones on the diagonal."""
        return self._terms.matrix(self._values)[: self.n_sources, : self.n_sources]

    @property
    def down(self) -> Floats:
        """Terms of sources in B, shape (m, m): of single ones on the diagonal."""
        return self._terms.matrix(self._values)[self.n_sources :, self.n_sources :]

    @property
    def cross(self) -> Floats:
        """In row i and column j, the term of source i in A and source j in B, shape (m, m)."""
        return self._terms.matrix(self._values)[: self.n_sources, self.n_sources :]

    def is_monotone(self, tolerance: float = 0.0) -> bool:
        """Whether no source ever moves the measure the wrong way by more than `tolerance`; O(m^2), exact."""
        return bool((self._terms.slack(self._values) >= -tolerance).all())

    def __getitem__(self, pair: tuple[int | str | Iterable[int | str], int | str | Iterable[int | str]]) -> float:
        """Value at (A, B), sets of source indices or names; a lone one is a set of one."""
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInputError(f"An element is a pair (A, B) of sets of sources, got {pair!r}.")
        sets = [[part] if isinstance(part, str | int | np.integer) else part for part in pair]
        up, down = ({self._source(member) for member in part} for part in sets)
        if up & down:
            raise InvalidInputError(
                f"The two sets of an element must be disjoint, got {sorted(up)} and {sorted(down)}."
            )
        inside = [*up, *(k + self.n_sources for k in down)]
        return float(np.triu(self._terms.matrix(self._values)[np.ix_(sorted(inside), sorted(inside))]).sum())

    def _source(self, member: int | str) -> int:
        if isinstance(member, str) and member in self._source_names:
            return self._source_names.index(member)
        if isinstance(member, int | np.integer) and not isinstance(member, bool) and 0 <= member < self.n_sources:
            return int(member)
        raise InvalidInputError(
            f"A source is one of {', '.join(map(repr, self._source_names))} or an index below {self.n_sources}, "
            f"got {member!r}."
        )

    def to_bicapacity(self) -> BiCapacity:
        """Return all 3^m values; up to 14 sources. O(3^m)."""
        m = self.n_sources
        if 3**m > MAX_ELEMENTS:
            raise InvalidInputError(
                f"A BiCapacity of {m} sources has 3^{m} = {3**m:,} elements; at most {MAX_ELEMENTS:,} (14 sources) are "
                "supported. Read what you need with g[A, B]."
            )
        table = self._terms.matrix(self._values)
        values = np.zeros(1)
        for k in range(m):
            sides = [_joined(table, side, k) for side in (k, k + m)]
            values = np.concatenate([values, *(values + joined for joined in sides)])
        return BiCapacity(np.clip(values, -1, 1), self._source_names)

    def to_table(self, limit: int | None = None) -> Table:
        """List the terms, the largest first; with `limit`, no more of them."""
        rows = []
        order = np.argsort(-np.abs(self._values), kind="stable")
        for term in order[:limit]:
            up, down = self.sets(int(term))
            rows.append([Cell(", ".join(up) or "∅"), Cell(", ".join(down) or "∅"), Cell(number(self._values[term]))])
        return Table(["A", "B", "b(A, B)"], rows)

    def to_markdown(self, limit: int | None = None) -> str:
        """Write the terms as a Markdown table, to two digits, the largest first.

        Parameters
        ----------
        limit : int, optional
            How many; by default those that are not 0.00.
        """
        if limit is None:
            limit = int((np.abs(self._values) >= 0.005).sum())
        return self.to_table(limit).to_markdown()

    def sets(self, term: int) -> tuple[list[str], list[str]]:
        """Names of the sources of a term, in A and in B."""
        m, (first, second) = self.n_sources, self._terms.sides
        sides = [term] if term < 2 * m else [int(first[term - 2 * m]), int(second[term - 2 * m])]
        names = self._source_names
        return [names[s] for s in sides if s < m], [names[s - m] for s in sides if s >= m]

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a model file (see docs/model-format.md), replacing it only when complete."""
        io.write_model(path, self.kind, {"source_names": list(self._source_names)}, {"terms": self._values}, version=2)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read from a model file. The content is checked; nothing in it is executed."""
        header, arrays = io.read_model(path, cls.kind)
        try:
            return cls(arrays["terms"], header["source_names"])
        except KeyError as error:
            raise ModelFileError(f"{path} is not a valid {cls.kind} file: it lacks {error}.") from error
        except InvalidInputError as error:
            raise ModelFileError(f"{path} is not a valid {cls.kind} file: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TwoAdditive):
            return NotImplemented
        return self._source_names == other._source_names and np.array_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash((self._source_names, self._values.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values, self._source_names)

    def __repr__(self) -> str:
        large = int((np.abs(self._values) >= 0.005).sum())
        head = f"TwoAdditive of {self.n_sources} sources ({', '.join(self._source_names)}), {self._terms.size:,} terms"
        rest = f"\nand {large - SHOWN:,} more that are not 0.00" if large > SHOWN else ""
        return f"{head}\n{self.to_table(min(SHOWN, large)).to_text()}{rest}"

    def _repr_html_(self) -> str:
        return self.to_table(SHOWN).to_html()


def _joined(table: Floats, side: int, k: int) -> Floats:
    """What a side of source k adds to each element of the sources before it."""
    m = len(table) // 2
    added = np.array([table[side, side]])
    for j in range(k):
        added = np.concatenate([added, added + table[side, j], added + table[side, j + m]])
    return added


def _check(space: Terms, values: Floats, names: Sequence[str]) -> None:
    if not np.isfinite(values).all():
        raise InvalidInputError("terms must be finite numbers; some are NaN or infinite.")
    for where, total, wanted in zip(("(C, ∅)", "(∅, C)"), space.totals(values), (1.0, -1.0), strict=True):
        if abs(total - wanted) > TOLERANCE:
            raise InvalidInputError(
                f"The terms inside {where} add up to {float(total)!r}; a bi-capacity has {wanted:g} there."
            )
    slack = space.slack(values)
    worst = int(np.argmin(slack))
    if slack[worst] < -TOLERANCE:
        name, side = names[worst % space.n_sources], "A" if worst < space.n_sources else "B"
        way = "lowers" if side == "A" else "raises"
        raise InvalidInputError(
            f"The terms must be monotone, but source {name!r} joining {side} {way} the measure by {-slack[worst]:.3g} "
            "where other sources are worst for it."
        )
