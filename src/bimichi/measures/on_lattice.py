"""Measures that are one value per element of a lattice: checked, completed, listed."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from bimichi import _html
from bimichi._checks import check_choice, is_integer
from bimichi._html import Cell, Table, number
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures import files
from bimichi.measures.base import TOLERANCE, Measure, check_names, number_array, weight_array
from bimichi.measures.files import COMPLETIONS, filled, pack_values
from bimichi.measures.lattice import Lattice, subset_lattice

LatticeMaker = Callable[[int], Lattice]

OVERVIEW_LIMIT = 3
"""Sources up to which the table of the paper, 2^m columns wide, fits a terminal."""


class Violation(NamedTuple):
    """Two ordered elements whose values are not: the lower one is worth more."""

    lower: str
    upper: str
    lower_value: float
    upper_value: float

    @classmethod
    def at(cls, lattice: Lattice, values: Floats, names: Sequence[str], lower: int, upper: int) -> Self:
        """Return the violation at these codes."""
        labels = lattice.label(lower, names), lattice.label(upper, names)
        return cls(*labels, float(values[lower]), float(values[upper]))

    def __str__(self) -> str:
        digits = next((d for d in range(2, 16) if round(self.upper_value, d) < round(self.lower_value, d)), 17)
        return f"{self.upper} = {self.upper_value:.{digits}f} < {self.lower} = {self.lower_value:.{digits}f}"


class LatticeMeasure(Measure):
    """A measure that is one monotone value per element of a `Lattice`."""

    table_limit: ClassVar[int]  # sources up to which there is a table, and up to which it is shown in text
    text_limit: ClassVar[int]

    def _set_values(self, lattice_of: LatticeMaker, base: int, values: ArrayLike, names: Sequence[str] | None) -> None:
        array = number_array(values, "values")
        if array.ndim != 1:
            hint = "; see from_matrix" if base == 3 else ""
            raise InvalidInputError(
                f"values must be 1-D of length {base}^m, got shape {array.shape}{hint}.",
                code="values-length",
                argument="values",
            )
        lattice = lattice_of(sources_from_length(array.size, base))
        checked = check_names(names, lattice.n_sources)
        self._build(lattice, _check_values(type(self).__name__, lattice, array, checked), checked)

    @classmethod
    def _completed(
        cls,
        lattice_of: LatticeMaker,
        elements: Mapping[Any, float],
        source_names: Sequence[str] | int | None,
        completion: str,
        *options: Any,
    ) -> Self:
        """Make a measure from some of its elements, given by their sources."""
        n_sources, names = count_and_names(source_names, elements)
        lattice = lattice_of(n_sources)
        frame = cls(lattice.bounds(np.full(lattice.size, np.nan))[0], names, *options)  # type: ignore[call-arg]
        given = np.full(lattice.size, np.nan)
        for element, value in elements.items():
            code = frame.code(element)
            label = lattice.label(code, frame.source_names)
            if not isinstance(value, int | float | np.integer | np.floating) or not np.isfinite(value):
                raise InvalidInputError(f"{label} must be a number, got {value!r}.", code="number", value=value)
            fixed = lattice.fixed.get(code, value)
            if abs(value - fixed) > TOLERANCE and (code != 0 or lattice.zero_bound):
                raise InvalidInputError(
                    f"{label} = {value!r}; a {cls.__name__} has {fixed:g} there.", code="values-boundary"
                )
            if not np.isnan(given[code]) and given[code] != value:
                raise InvalidInputError(
                    f"{label} is given twice, as {float(given[code])!r} and as {value!r}.", code="element-twice"
                )
            given[code] = value
        return cls(complete(lattice, given, completion, frame.source_names), names, *options)  # type: ignore[call-arg]

    @property
    def lattice(self) -> Lattice:
        """The elements and their order."""
        lattice: Lattice = self._space
        return lattice

    def sets(self, k: int) -> tuple[list[str], list[str]]:
        up, down = self.lattice.sets(k)
        return [self._source_names[i] for i in up], [self._source_names[i] for i in down]

    def all_sets(self, which: Ints) -> list[tuple[list[str], list[str]]]:
        names = list(enumerate(self._source_names))
        masks = (mask.tolist() for mask in self.lattice.masks(which))
        return [
            ([name for k, name in names if up >> k & 1], [name for k, name in names if down >> k & 1])
            for up, down in zip(*masks, strict=True)
        ]

    def n_instances(self, touched: Ints) -> int:
        return round(int(touched.sum()) / self.n_sources)

    def violations(self, tolerance: float = 0.0) -> list[Violation]:
        """Return neighbours whose values break the order by more than `tolerance`; the constructor accepts 1e-9."""
        lattice, values, names = self.lattice, self._values, self._source_names
        lower, upper = (codes.tolist() for codes in lattice.violations(values, tolerance))
        return [Violation.at(lattice, values, names, a, b) for a, b in zip(lower, upper, strict=True)]

    def is_monotone(self, tolerance: float = 0.0) -> bool:
        return self.lattice.violations(self._values, tolerance)[0].size == 0

    def overview(self, touched: Ints, limit: int) -> Table:
        if self.n_sources <= OVERVIEW_LIMIT:
            return self.to_table(touched > 0)
        rows = []
        for code in np.argsort(-touched, kind="stable")[:limit].tolist():
            if touched[code]:
                sets = [Cell(", ".join(part) or "∅") for part in self.sets(code)]
                rows.append([*sets, Cell(number(self._values[code]), True), Cell(f"{touched[code]:,.0f}")])
        return Table(["A", "B", "g(A, B)", "used by"], rows)

    def pack(self) -> tuple[dict[str, Any], files.Arrays]:
        rule, arrays = pack_values(self.lattice, self._values)
        return {"source_names": list(self._source_names)} | rule, arrays

    def __getitem__(self, element: Any) -> float:
        return float(self.values[self.code(element)])

    @abstractmethod
    def code(self, element: Any) -> int:
        """Return the code of an element given by its sources, indices (zero-based) or names."""

    def __repr__(self) -> str:
        if self.n_sources > self.text_limit:
            return f"{self._head()}, {self.lattice.size:,} elements"
        return f"{self._head()}\n{self.to_table().to_text()}"

    def _head(self) -> str:
        bound = "" if self.lattice.zero_bound else ", zero_bound=False"
        return f"{type(self).__name__} of {self.n_sources} sources ({', '.join(self._source_names)}){bound}"

    def _repr_html_(self) -> str:
        if self.n_sources > self.table_limit:
            return _html.view(repr(self))
        return _html.view(self._head(), _html.table(self.to_table()))

    def flags(self, elements: Iterable[Any] | Flags | None, what: str) -> Flags:
        """Return one flag per code for elements given by their sources, or as such flags; errors call them `what`."""
        if isinstance(elements, np.ndarray):
            if elements.dtype != bool or elements.shape != self._values.shape:
                rule = f"elements, or bool of shape {self._values.shape} such as usage_counts(X) > 0"
                raise InvalidInputError(
                    f"{what} must be {rule}; got {elements.dtype} of shape {elements.shape}.",
                    code="values-shape",
                    argument=what,
                )
            return elements
        flags = np.zeros(self.lattice.size, dtype=bool)
        flags[[self.code(element) for element in elements or ()]] = True
        return flags


def complete(lattice: Lattice, values: Floats, completion: str, names: Sequence[str]) -> Floats:
    """Fill the NaN of `values` between the bounds that the known values leave; `names` are for errors."""
    check_choice(completion, "completion", COMPLETIONS)
    known = lattice.with_boundary(values)
    lower, upper = lattice.bounds(values)
    wrong = np.flatnonzero(~np.isnan(known) & (lower > upper + TOLERANCE))
    if wrong.size:
        code = int(wrong[0])
        given = np.flatnonzero(~np.isnan(known))
        under = given[lattice.less_equal(given, code)]
        worst = int(under[np.argmax(known[under])])
        if worst == code:
            over = given[lattice.less_equal(code, given)]
            code = int(over[np.argmin(known[over])])
        clash = Violation.at(lattice, known, names, worst, code)
        raise InvalidInputError(f"The given elements are not monotone: {clash}.", code="elements-monotone")
    return filled(lattice, values, completion)


def count_and_names(
    source_names: Sequence[str] | int | None, elements: Mapping[Any, float]
) -> tuple[int, Sequence[str] | None]:
    """Return the number of sources and their names, if given; with None, the largest index in `elements` counts."""
    if not isinstance(elements, Mapping):
        raise InvalidInputError(
            f"elements must be a mapping of element to value, got {type(elements).__name__}.",
            code="elements-kind",
            argument="elements",
            value=elements,
        )
    if source_names is None:
        members = list(_leaves(list(elements)))
        if not members or not all(isinstance(member, int | np.integer) for member in members):
            raise InvalidInputError(
                "source_names must be given unless elements are given by source indices.",
                code="names-missing",
                argument="source_names",
            )
        return int(max(members)) + 1, None
    if is_integer(source_names):
        return int(source_names), None
    if not isinstance(source_names, Sequence | np.ndarray):
        raise InvalidInputError(
            f"source_names must be a list of names or a number of sources, got {source_names!r}.",
            code="names-list",
            argument="source_names",
            value=source_names,
        )
    return len(source_names), source_names


def _leaves(nested: Any) -> Iterator[Any]:
    if isinstance(nested, str) or not isinstance(nested, Iterable):
        yield nested
    else:
        for part in nested:
            yield from _leaves(part)


def sources_from_length(length: int, base: int, what: str = "values") -> int:
    """Return the m for which ``base**m == length``, the length of `what`."""
    n_sources = max(1, round(math.log(max(length, 1), base)))
    if base**n_sources != length:
        raise InvalidInputError(
            f"{what} has length {length}; it must be {base}^m for m sources ({base}, {base**2}, {base**3}, ...).",
            code="values-length",
            argument=what,
        )
    return n_sources


def _check_values(what: str, lattice: Lattice, values: ArrayLike, names: Sequence[str]) -> Floats:
    checked = np.array(values, dtype=np.float64)
    if not lattice.zero_bound:
        checked[0] = 0.0
    missing = np.flatnonzero(np.isnan(checked))
    if missing.size:
        raise InvalidInputError(
            f"values has NaN at {lattice.label(int(missing[0]), names)}; use from_elements to complete it.",
            code="values-nan",
            argument="values",
        )
    low = lattice.low
    outside = np.flatnonzero((checked < low - TOLERANCE) | (checked > 1 + TOLERANCE))
    if outside.size:
        code = int(outside[0])
        raise InvalidInputError(
            f"{lattice.label(code, names)} = {float(checked[code])!r}; the values of a {what} must lie "
            f"in [{low:g}, 1].",
            code="values-range",
        )
    for code, value in lattice.fixed.items():
        if abs(checked[code] - value) > TOLERANCE:
            hint = " (or pass zero_bound=False)" if code == 0 and lattice.base == 3 else ""
            raise InvalidInputError(
                f"{lattice.label(code, names)} = {float(checked[code])!r}; a {what} has {value:g} there{hint}.",
                code="values-boundary",
            )
    lower, upper = lattice.violations(checked, TOLERANCE)
    if lower.size:
        worst = Violation.at(lattice, checked, names, int(lower[0]), int(upper[0]))
        more = f" (and {lower.size - 1:,} more)" if lower.size > 1 else ""
        raise InvalidInputError(f"The values of a {what} must be monotone, but {worst}{more}.", code="values-monotone")
    return np.clip(lattice.with_boundary(checked), low, 1.0) + 0.0  # no negative zeros


def additive_values(weights: ArrayLike) -> Floats:
    """Return sums of weights over all subsets, in bitmask order; weights are not negative and add up to 1."""
    given = weight_array(weights)
    if not (given >= 0).all() or abs(given.sum() - 1) > TOLERANCE:
        raise InvalidInputError(
            f"weights must be non-negative and add up to 1, got {given.tolist()} with sum {given.sum():.6g}.",
            code="weights-sum",
            argument="weights",
        )
    lattice = subset_lattice(given.size)
    up, _ = lattice.masks(np.arange(lattice.size))
    members = up[:, None] >> np.arange(given.size) & 1
    return np.minimum(members @ given, 1.0)
