"""What a bi-capacity and a capacity share: values on a lattice, checked once and never changed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.measures import files as io
from bimichi.measures.compact import COMPLETIONS, filled, pack_values
from bimichi.measures.lattice import Lattice

__all__ = ["COMPLETIONS", "TOLERANCE", "Measure", "Violation", "check_names"]

TOLERANCE = 1e-9
"""How much a value may break the order or its bounds, which is what solvers leave behind."""

Source = int | str


class Violation(NamedTuple):
    """Two ordered elements whose values are not: the lower one is worth more."""

    lower: str
    upper: str
    lower_value: float
    upper_value: float

    def __str__(self) -> str:
        digits = next((d for d in range(2, 16) if round(self.upper_value, d) < round(self.lower_value, d)), 17)
        return f"{self.upper} = {self.upper_value:.{digits}f} < {self.lower} = {self.lower_value:.{digits}f}"


class Measure(ABC):
    """Monotone values on a `Lattice`, with named sources. Immutable and hashable."""

    kind: ClassVar[str]
    _lattice: Lattice
    _values: NDArray[np.float64]
    _source_names: tuple[str, ...]

    def _build(self, lattice: Lattice, values: ArrayLike, source_names: Sequence[str] | None) -> None:
        names = check_names(source_names, lattice.n_sources)
        object.__setattr__(self, "_lattice", lattice)
        object.__setattr__(self, "_source_names", names)
        object.__setattr__(self, "_values", _check_values(type(self).__name__, lattice, values, names))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} cannot be changed; make a new one instead.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    @property
    def lattice(self) -> Lattice:
        """The elements and their order."""
        return self._lattice

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return self._lattice.n_sources

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources; by default "1", "2", ... as in the paper."""
        return self._source_names

    @property
    def values(self) -> NDArray[np.float64]:
        """Values in code order, read-only."""
        return self._values

    def violations(self, tolerance: float = 0.0) -> list[Violation]:
        """Neighbours whose values break the order by more than `tolerance`.

        The constructor lets `TOLERANCE` (1e-9) pass, so this can list what rounding left behind. For an array
        that the constructor rejects, ask ``lattice.violations(values)``.
        """
        return _violations(self._lattice, self._values, self._source_names, tolerance)

    def is_monotone(self, tolerance: float = 0.0) -> bool:
        """Whether no value breaks the order by more than `tolerance`."""
        return self._lattice.violations(self._values, tolerance)[0].size == 0

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a model file (see docs/model-format.md), replacing it only when complete."""
        rule, arrays = pack_values(self._lattice, self._values)
        io.write_model(path, self.kind, self._header() | rule, arrays, version=2 if rule else 1)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read from a model file. The content is checked; nothing in it is executed.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is damaged, holds something else, or is of a newer version.
        """
        header, arrays = io.read_model(path, cls.kind)
        try:
            return cls._from_file(header, arrays)
        except KeyError as error:
            raise ModelFileError(f"{path} is not a valid {cls.kind} file: it lacks {error}.") from error
        except (InvalidInputError, TypeError) as error:
            raise ModelFileError(f"{path} is not a valid {cls.kind} file: {error}") from error

    def _header(self) -> dict[str, Any]:
        return {"source_names": list(self._source_names)}

    @classmethod
    @abstractmethod
    def _from_file(cls, header: dict[str, Any], arrays: io.Arrays) -> Self:
        """Make one from what a file holds."""

    def _with_elements(self, elements: Mapping[Any, float], completion: str) -> NDArray[np.float64]:
        """Values that agree with `elements`, completed; this measure only lends its names and its lattice."""
        given = np.full(self._lattice.size, np.nan)
        for element, value in elements.items():
            code = self.code(element)
            label = self._lattice.label(code, self._source_names)
            if not isinstance(value, int | float | np.integer | np.floating) or not np.isfinite(value):
                raise InvalidInputError(f"{label} must be a number, got {value!r}.")
            fixed = self._lattice.fixed.get(code, value)
            if abs(value - fixed) > TOLERANCE and (code != 0 or self._lattice.zero_bound):
                raise InvalidInputError(f"{label} = {value!r}; a {type(self).__name__} has {fixed:g} there.")
            if not np.isnan(given[code]) and given[code] != value:
                raise InvalidInputError(f"{label} is given twice, as {float(given[code])!r} and as {value!r}.")
            given[code] = value
        return complete(self._lattice, given, completion, self._source_names)

    @abstractmethod
    def code(self, element: Any) -> int:
        """Code of an element, given by its sources."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (
            self._lattice == other._lattice
            and self._source_names == other._source_names
            and np.array_equal(self._values, other._values)
        )

    def __hash__(self) -> int:
        return hash((self._lattice, self._source_names, self._values.tobytes()))

    def _marked(self, bold: Iterable[Any] | NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Turn a set of elements, or a boolean array, into a boolean array."""
        if isinstance(bold, np.ndarray):
            if bold.dtype != bool or bold.shape != self._values.shape:
                raise InvalidInputError(
                    f"bold must be a boolean array of shape {self._values.shape}, got {bold.dtype} of {bold.shape}."
                )
            return bold
        marked = np.zeros(self._lattice.size, dtype=bool)
        marked[[self.code(element) for element in bold or ()]] = True
        return marked

    def _sources(self, members: Source | Iterable[Source]) -> list[int]:
        """Indices of the sources named or numbered in `members`; a lone name or number is a set of one."""
        if isinstance(members, str | int | np.integer):
            members = [members]
        try:
            found = [self._source(member) for member in members]
        except TypeError as error:
            raise InvalidInputError(f"A set of sources must be an iterable, got {members!r}.") from error
        return sorted(set(found))

    def _source(self, member: Source) -> int:
        if isinstance(member, str):
            if member in self._source_names:
                return self._source_names.index(member)
            raise InvalidInputError(
                f"Unknown source {member!r}; the sources are {', '.join(map(repr, self._source_names))}."
            )
        if isinstance(member, bool) or not isinstance(member, int | np.integer):
            raise InvalidInputError(f"A source is given by its index or its name, got {member!r}.")
        if not 0 <= member < self.n_sources:
            raise InvalidInputError(
                f"Source index {member} is outside 0..{self.n_sources - 1} (indices are zero-based)."
            )
        return int(member)


def complete(
    lattice: Lattice, values: NDArray[np.float64], completion: str, names: Sequence[str]
) -> NDArray[np.float64]:
    """Fill the NaN of `values` between the bounds that the known values leave.

    Parameters
    ----------
    lattice : Lattice
        The elements and their order.
    values : ndarray of shape (size,)
        Known values, NaN elsewhere.
    completion : {"middle", "lowest", "highest", "nearest-zero"}
        Which value between its bounds an unknown element takes.
    names : sequence of str
        Source names, for the error when known values contradict each other.
    """
    if completion not in COMPLETIONS:
        raise InvalidInputError(f"completion must be one of {', '.join(COMPLETIONS)}, got {completion!r}.")
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
        clash = Violation(lattice.label(worst, names), lattice.label(code, names), known[worst], known[code])
        raise InvalidInputError(f"The given elements are not monotone: {clash}.")
    return filled(lattice, values, completion)


def check_names(source_names: Sequence[str] | None, n_sources: int) -> tuple[str, ...]:
    """Source names as a tuple, or "1", "2", ... when None."""
    if source_names is None:
        return tuple(str(k + 1) for k in range(n_sources))
    if isinstance(source_names, str):
        raise InvalidInputError(f"source_names must be a list of names, got the single string {source_names!r}.")
    try:
        names = tuple(source_names)
    except TypeError as error:
        raise InvalidInputError(f"source_names must be a list of names, got {source_names!r}.") from error
    for name in names:
        if not isinstance(name, str) or not name or any("\ud800" <= sign <= "\udfff" for sign in name):
            raise InvalidInputError(f"source_names must be non-empty strings of valid text, got {name!r}.")
    if len(names) != n_sources:
        raise InvalidInputError(f"source_names has {len(names)} names for {n_sources} sources: {', '.join(names)}.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"source_names must be distinct, but {twice[0]!r} occurs more than once.")
    return tuple(str(name) for name in names)


def count_and_names(
    source_names: Sequence[str] | int | None, elements: Mapping[Any, float]
) -> tuple[int, Sequence[str] | None]:
    """Return the number of sources and, when they were given and not just counted, their names.

    None counts them by the largest index in the elements' keys.
    """
    if not isinstance(elements, Mapping):
        raise InvalidInputError(f"elements must be a mapping of element to value, got {type(elements).__name__}.")
    if source_names is None:
        members = list(_leaves(list(elements)))
        if not members or not all(isinstance(member, int | np.integer) for member in members):
            raise InvalidInputError("source_names must be given unless elements are told by source indices.")
        return int(max(members)) + 1, None
    if isinstance(source_names, int | np.integer) and not isinstance(source_names, bool):
        return int(source_names), None
    if not isinstance(source_names, Sequence | np.ndarray):
        raise InvalidInputError(f"source_names must be a list of names or a number of sources, got {source_names!r}.")
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
            f"{what} has length {length}; it must be {base}^m for m sources ({base}, {base**2}, {base**3}, ...)."
        )
    return n_sources


def _check_values(what: str, lattice: Lattice, values: ArrayLike, names: Sequence[str]) -> NDArray[np.float64]:
    checked = np.array(values, dtype=np.float64)
    if not lattice.zero_bound:
        checked[0] = 0.0
    missing = np.flatnonzero(np.isnan(checked))
    if missing.size:
        raise InvalidInputError(
            f"values has NaN at {lattice.label(int(missing[0]), names)}; use from_elements to complete it."
        )
    low = -1.0 if lattice.base == 3 else 0.0
    outside = np.flatnonzero((checked < low - TOLERANCE) | (checked > 1 + TOLERANCE))
    if outside.size:
        code = int(outside[0])
        raise InvalidInputError(
            f"{lattice.label(code, names)} = {float(checked[code])!r}; the values of a {what} must lie in [{low:g}, 1]."
        )
    for code, value in lattice.fixed.items():
        if abs(checked[code] - value) > TOLERANCE:
            hint = " (or pass zero_bound=False)" if code == 0 and lattice.base == 3 else ""
            raise InvalidInputError(
                f"{lattice.label(code, names)} = {float(checked[code])!r}; a {what} has {value:g} there{hint}."
            )
    lower, upper = lattice.violations(checked, TOLERANCE)
    if lower.size:
        worst = _violation(lattice, checked, names, int(lower[0]), int(upper[0]))
        more = f" (and {lower.size - 1:,} more)" if lower.size > 1 else ""
        raise InvalidInputError(f"The values of a {what} must be monotone, but {worst}{more}.")
    checked = np.clip(lattice.with_boundary(checked), low, 1.0) + 0.0  # no negative zeros
    return np.frombuffer(checked.tobytes())  # which nobody can make writeable


def _violations(
    lattice: Lattice, values: NDArray[np.float64], names: Sequence[str], tolerance: float
) -> list[Violation]:
    return [
        _violation(lattice, values, names, a, b)
        for a, b in zip(*(codes.tolist() for codes in lattice.violations(values, tolerance)), strict=True)
    ]


def _violation(
    lattice: Lattice, values: NDArray[np.float64], names: Sequence[str], lower: int, upper: int
) -> Violation:
    return Violation(
        lattice.label(lower, names), lattice.label(upper, names), float(values[lower]), float(values[upper])
    )


def number_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """`values` as float64, or an error that names the argument."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ValueError("complex numbers have no order")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold real numbers: {error}.") from error
