"""`AdditiveBiCapacity`: a bi-capacity given by terms of single sources, and of pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from bimichi import _html
from bimichi._checks import check_integer
from bimichi._html import Cell, Table, number
from bimichi._types import Codes, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.base import TOLERANCE, Measure, check_names, number_array, weight_array
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.files import Arrays
from bimichi.measures.lattice import MAX_ELEMENTS, Seed, random_generator

MAX_SOURCES = 64
"""More, with pairs, would make the quadratic forms of learning larger than half a gigabyte."""

MAX_SINGLE = 256
"""The same of measures without pairs."""

MARGIN = 1e-14
"""The rounding error of a sum of terms."""


@dataclass(frozen=True)
class Terms:
    """The order of the terms in an array, and what makes them monotone.

    The 2 m sides come first, then the pairs (s, t), s < t, in lexicographic order.

    Attributes
    ----------
    n_sources : int
        Number of sources, m.
    pairs : bool
        Whether terms of pairs may differ from zero when they are drawn or learned.
    """

    n_sources: int
    pairs: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_sources", check_integer(self.n_sources, "n_sources"))
        most = MAX_SOURCES if self.pairs else MAX_SINGLE
        if self.n_sources > most:
            raise InvalidInputError(
                f"{self.n_sources} sources have {2 * self.n_sources**2:,} terms, whose quadratic form takes "
                f"{32 * self.n_sources**4 / 2**30:,.1f} GiB; at most {most} sources are supported. Use fewer.",
                code="sources-many",
            )

    @property
    def size(self) -> int:
        """The number of terms, 2 m^2."""
        return 2 * self.n_sources**2

    @property
    def row_length(self) -> int:
        """Number of terms that an instance uses at most: one per source and one per pair of sources."""
        return self.n_sources * (self.n_sources + 1) // 2

    @cached_property
    def sides(self) -> tuple[Ints, Ints]:
        """The two sides of each pair term."""
        first, second = np.triu_indices(2 * self.n_sources, 1)
        other = second - first != self.n_sources  # a source is not both up and down
        return first[other], second[other]

    @cached_property
    def both_sides(self) -> tuple[Ints, Ints]:
        """The two sides of each term; a term of one side has it twice."""
        own = np.arange(2 * self.n_sources)
        first, second = self.sides
        return np.concatenate([own, first]), np.concatenate([own, second])

    @cached_property
    def index(self) -> Codes:
        """The number of the term of two sides; of one side on the diagonal; -1 where there is none."""
        first, second = self.sides
        table = np.full((2 * self.n_sources, 2 * self.n_sources), -1, np.int32)
        np.fill_diagonal(table, np.arange(2 * self.n_sources))
        table[first, second] = table[second, first] = 2 * self.n_sources + np.arange(len(first))
        return table

    @cached_property
    def sign(self) -> Floats:
        """+1 for sides that are up, -1 for those that are down: where the measure goes when such a source joins."""
        return np.repeat([1.0, -1.0], self.n_sources)

    def matrix(self, values: Floats) -> Floats:
        """Terms as a symmetric table of sides, 0 where there is none."""
        return np.where(self.index >= 0, values[self.index], 0.0)

    def totals(self, values: Floats) -> Floats:
        """Return the values at (C, empty) and at (empty, C)."""
        m, table = self.n_sources, self.matrix(values)
        return np.array([np.triu(part).sum() for part in (table[:m, :m], table[m:, m:])])

    def slack(self, values: Floats) -> Floats:
        """Return, for each side, the least that its source moves the measure its own way when it joins; O(m^2).

        Of every other source, the worst (A, B) picks what is least: absent, up or down. So the terms are monotone if
        and only if no slack is below zero.
        """
        m = self.n_sources
        table = self.sign[:, None] * self.matrix(values)
        worst = np.minimum(0.0, np.minimum(table[:, :m], table[:, m:]))
        worst[np.arange(2 * m), np.arange(2 * m) % m] = 0.0
        return np.asarray(np.diagonal(table) + worst.sum(axis=1))

    def repaired(self, values: ArrayLike) -> Floats:
        """Return terms that are monotone and within bounds, near to given ones that nearly are.

        What a side lacks is added to its own term; then the smaller of the two totals is raised to the other, and all
        is divided by it. Neither step makes a slack smaller than zero.
        """
        m = self.n_sources
        terms = np.array(values, dtype=np.float64)
        terms[: 2 * m] += self.sign * np.maximum(0.0, MARGIN - self.slack(terms))
        up, down = self.totals(terms) * [1, -1]
        terms[:m] += max(0.0, down - up) / m
        terms[m : 2 * m] -= max(0.0, up - down) / m
        return np.asarray(terms / max(up, down))

    def neutral(self) -> Floats:
        """All sources alike, no pair: the mean of the sources."""
        return np.concatenate([self.sign / self.n_sources, np.zeros(self.size - 2 * self.n_sources)])

    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw terms at random: those of pairs around zero, those of sides no less than these ask for."""
        m = self.n_sources
        drawn = np.zeros(self.size)
        if self.pairs:
            drawn[2 * m :] = rng.normal(0, m**-1.5, self.size - 2 * m)
        drawn[: 2 * m] = self.sign * (rng.exponential(1 / m, 2 * m) - self.slack(drawn))
        return self.repaired(drawn)


SHOWN = 12
"""Terms that repr lists."""


class AdditiveBiCapacity(Measure):
    """A bi-capacity made of few terms: g(A, B) is the sum of the terms of the sources, and of the pairs, in (A, B).

    Of order 1 it has one weight per source above zero and one below; of order 2 (2-additive), terms of pairs besides:
    2 m^2 numbers where a `BiCapacity` has 3^m. So it serves where these are too many, or the data too few. It has the
    zero bound. Immutable and hashable.

    Parameters
    ----------
    terms : array-like of shape (2 m^2,)
        In the order of `Terms`: sources up, sources down, then pairs; `from_tables` is easier.
    source_names : sequence of str, optional
        By default "1", "2", ...
    order : {2, 1}
        The largest number of sources in a term. With 1, the terms of pairs must be 0.

    Raises
    ------
    InvalidInputError
        If the terms break the bounds, g(C, empty) = 1 and g(empty, C) = -1, or the order, by more than 1e-9. Both are
        checked exactly, in O(m^2).

    Examples
    --------
    >>> tables = {"up": [[0.6, 0.2], [0.2, 0.2]], "down": [[-0.5, 0], [0, -0.5]], "cross": [[0, -0.1], [0, 0]]}
    >>> g = AdditiveBiCapacity.from_tables(**tables)
    >>> round(g[(0,), (1,)], 3)
    0.0
    >>> g.to_bicapacity()[(0, 1), ()]
    1.0
    """

    kind: ClassVar[str] = "2-additive"
    parts: ClassVar[Literal["elements", "terms"]] = "terms"

    def __init__(self, terms: ArrayLike, source_names: Sequence[str] | None = None, order: int = 2) -> None:
        values = number_array(terms, "terms")
        m = max(1, round((values.size / 2) ** 0.5))
        if values.shape != (2 * m * m,):
            raise InvalidInputError(
                f"terms has shape {values.shape}; m sources have 2 m^2 terms (2, 8, 18, 32, ...).",
                code="terms-shape",
                argument="terms",
            )
        if isinstance(order, bool) or order not in (1, 2):
            raise InvalidInputError(
                f"order must be 1 or 2, got {order!r}.", code="order", argument="order", value=order
            )
        space = Terms(m, pairs=order == 2)
        names = check_names(source_names, m)
        _check(space, values, names)
        self._build(space, values + 0.0, names)

    @classmethod
    def from_tables(
        cls, up: ArrayLike, down: ArrayLike, cross: ArrayLike | None = None, source_names: Sequence[str] | None = None
    ) -> Self:
        """Make one from tables of shape (m, m).

        Parameters
        ----------
        up, down : array-like
            Terms of sources in A, and in B: of single ones on the diagonal (at most 0 in B), of pairs elsewhere.
        cross : array-like, optional
            In row i and column j, the term of source i in A and source j in B; 0 on the diagonal. By default all 0.
        source_names : sequence of str, optional
            As in the constructor.
        """
        above, below = number_array(up, "up"), number_array(down, "down")
        mixed = np.zeros_like(above) if cross is None else number_array(cross, "cross")
        for what, table in (("up", above), ("down", below), ("cross", mixed)):
            if table.ndim != 2 or table.shape != (len(above), len(above)):
                raise InvalidInputError(
                    f"{what} must have one row and one column per source, got shape {table.shape}.",
                    code="pairs-shape",
                    argument=what,
                )
        for what, table in (("up", above), ("down", below)):
            if not np.array_equal(table, table.T, equal_nan=True):
                raise InvalidInputError(
                    f"{what} must be symmetric: the pair (i, k) is the pair (k, i).",
                    code="pairs-symmetric",
                    argument=what,
                )
        if mixed.diagonal().any():
            raise InvalidInputError(
                "cross must be 0 on its diagonal: a source is not in A and in B.",
                code="cross-diagonal",
                argument="cross",
            )
        space = Terms(len(above))
        first, second = space.sides
        whole = np.block([[above, mixed], [mixed.T, below]])
        pairs = whole[first, second]
        return cls(np.concatenate([whole.diagonal(), pairs]), source_names, order=2 if pairs.any() else 1)

    @classmethod
    def additive(cls, weights: ArrayLike, source_names: Sequence[str] | None = None) -> Self:
        """Make g(A, B) = sum of weights in A minus sum of weights in B; its integral is the weighted mean."""
        table = np.diag(weight_array(weights))
        return cls.from_tables(table, -table, source_names=source_names)

    @classmethod
    def random(
        cls, n_sources: int, random_state: Seed = None, source_names: Sequence[str] | None = None, order: int = 2
    ) -> Self:
        """Draw one at random."""
        return cls(Terms(n_sources, order == 2).sample(random_generator(random_state)), source_names, order)

    @property
    def order(self) -> int:
        """The largest number of sources in a term, 1 or 2."""
        return 2 if self._space.pairs else 1

    @property
    def _options(self) -> tuple[Any, ...]:
        return (self.order,)

    def describe(self) -> str:
        """Return what kind of measure it is, in a word or two."""
        return f"{self.order}-additive BiCapacity"

    @property
    def n_parts(self) -> int:
        """Number of terms that may differ from 0; they come first."""
        return self._space.size if self._space.pairs else 2 * self.n_sources

    @property
    def terms(self) -> Floats:
        """The terms, read-only; see `bimichi.measures.additive.Terms` for their order."""
        return self._values

    @property
    def up(self) -> Floats:
        """Terms of sources in A, shape (m, m): of single ones on the diagonal."""
        return np.asarray(self._space.matrix(self._values)[: self.n_sources, : self.n_sources])

    @property
    def down(self) -> Floats:
        """Terms of sources in B, as in `up`."""
        return np.asarray(self._space.matrix(self._values)[self.n_sources :, self.n_sources :])

    @property
    def cross(self) -> Floats:
        """In row i and column j, the term of source i in A and source j in B, shape (m, m)."""
        return np.asarray(self._space.matrix(self._values)[: self.n_sources, self.n_sources :])

    def n_instances(self, touched: Ints) -> int:
        return round(int(touched[: 2 * self.n_sources].sum()) / self.n_sources)

    def is_monotone(self, tolerance: float = 0.0) -> bool:
        return bool((self._space.slack(self._values) >= -tolerance).all())

    def __getitem__(self, pair: tuple[int | str | Iterable[int | str], int | str | Iterable[int | str]]) -> float:
        """Value at (A, B), sets of source indices or names; a lone one is a set of one."""
        up, down = self._pair(pair)
        inside = [*up, *(k + self.n_sources for k in down)]
        return float(np.triu(self._space.matrix(self._values)[np.ix_(inside, inside)]).sum())

    def to_bicapacity(self) -> BiCapacity:
        """Return all 3^m values; up to 14 sources. O(3^m)."""
        m = self.n_sources
        if 3**m > MAX_ELEMENTS:
            raise InvalidInputError(
                f"A BiCapacity of {m} sources has 3^{m} = {3**m:,} elements; at most {MAX_ELEMENTS:,} (14 sources) are "
                "supported. Read what you need with g[A, B].",
                code="sources-many",
            )
        table = self._space.matrix(self._values)
        values = np.zeros(1)
        for k in range(m):
            sides = [_joined(table, side, k) for side in (k, k + m)]
            values = np.concatenate([values, *(values + joined for joined in sides)])
        return BiCapacity(np.clip(values, -1, 1), self._source_names)

    def to_table(self, bold: Any = None, limit: int | None = None) -> Table:
        """Return the terms as a table, the largest first.

        Parameters
        ----------
        bold : ignored
            Present because other measures take it.
        limit : int, optional
            How many; by default those that are not 0.00.
        """
        if limit is None:
            limit = int((np.abs(self._values) >= 0.005).sum())
        rows = []
        for term in np.argsort(-np.abs(self._values), kind="stable")[:limit]:
            up, down = self.sets(int(term))
            rows.append([Cell(", ".join(up) or "∅"), Cell(", ".join(down) or "∅"), Cell(number(self._values[term]))])
        return Table(["A", "B", "b(A, B)"], rows)

    def overview(self, touched: Ints, limit: int) -> Table:
        return self.to_table(limit=min(limit, self.n_parts))

    def to_markdown(self, bold: Any = None, limit: int | None = None) -> str:
        return self.to_table(bold, limit).to_markdown()

    def sets(self, k: int) -> tuple[list[str], list[str]]:
        m, (first, second) = self.n_sources, self._space.sides
        sides = [k] if k < 2 * m else [int(first[k - 2 * m]), int(second[k - 2 * m])]
        names = self._source_names
        return [names[s] for s in sides if s < m], [names[s - m] for s in sides if s >= m]

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        kept = self._values if self.order == 2 else self._values[: 2 * self.n_sources]
        return {"source_names": list(self._source_names), "order": self.order}, {"terms": kept}

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: Arrays) -> Self:
        terms, names = np.asarray(arrays["terms"]), header["source_names"]
        if header["order"] == 1 and terms.shape == (2 * len(names),) and len(names) <= MAX_SINGLE:
            terms = np.concatenate([terms, np.zeros(2 * len(names) ** 2 - terms.size)])  # no pairs
        return cls(terms, names, header["order"])

    def __repr__(self) -> str:
        head, shown, rest = self._shown()
        return "\n".join(filter(None, [head, shown.to_text(), rest]))

    def _repr_html_(self) -> str:
        head, shown, rest = self._shown()
        return _html.view(head, _html.table(shown), note=rest)

    def _shown(self) -> tuple[str, Table, str]:
        """Return what is printed: a head, the largest terms, and how many are left out."""
        large = int((np.abs(self._values) >= 0.005).sum())
        names = ", ".join(self._source_names)
        head = f"AdditiveBiCapacity of order {self.order}, {self.n_sources} sources ({names}), {self.n_parts:,} terms"
        rest = f"and {large - SHOWN:,} more that are not 0.00" if large > SHOWN else ""
        return head, self.to_table(limit=min(SHOWN, large)), rest


def _joined(table: Floats, side: int, k: int) -> Floats:
    """Return what a side of source k adds to each element of the sources before it."""
    m = len(table) // 2
    added = np.array([table[side, side]])
    for j in range(k):
        added = np.concatenate([added, added + table[side, j], added + table[side, j + m]])
    return added


def _check(space: Terms, values: Floats, names: Sequence[str]) -> None:
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "terms must be finite numbers; some are NaN or infinite.", code="terms-finite", argument="terms"
        )
    for where, total, wanted in zip(("(C, ∅)", "(∅, C)"), space.totals(values), (1.0, -1.0), strict=True):
        if abs(total - wanted) > TOLERANCE:
            raise InvalidInputError(
                f"The terms inside {where} add up to {float(total)!r}; a bi-capacity has {wanted:g} there.",
                code="terms-boundary",
            )
    if not space.pairs and values[2 * space.n_sources :].any():
        raise InvalidInputError(
            "terms of pairs must be 0 with order=1; pass order=2.", code="terms-order", argument="terms"
        )
    slack = space.slack(values)
    worst = int(np.argmin(slack))
    if slack[worst] < -TOLERANCE:
        name, side = names[worst % space.n_sources], "A" if worst < space.n_sources else "B"
        way = "lowers" if side == "A" else "raises"
        raise InvalidInputError(
            f"The terms must be monotone, but source {name!r} joining {side} {way} the measure by {-slack[worst]:.3g} "
            "where other sources are worst for it.",
            code="terms-monotone",
        )
