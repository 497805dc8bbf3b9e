"""`Measure`: numbers in a space, with named sources, checked once and never changed."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import is_integer
from bimichi._html import Table
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures import files

TOLERANCE = 1e-9
"""How much a value may break the order or its bounds: solvers leave rounding errors."""


Source = int | str
SetOfSources = Source | Iterable[Source]


class Measure(ABC):
    """Numbers in a space, with named sources: what every measure shares. Immutable and hashable.

    Attributes
    ----------
    kind : str
        Its name in model files.
    low : float
        The least value that a source may take: -1, or 0 for a `Capacity`; the greatest is 1.
    parts : {"elements", "terms"}
        What the values are of.
    """

    kind: ClassVar[str]
    low: ClassVar[float] = -1.0
    parts: ClassVar[Literal["elements", "terms"]] = "elements"
    _space: Any
    _values: Floats
    _source_names: tuple[str, ...]

    def _build(self, space: Any, values: Floats, source_names: tuple[str, ...]) -> None:
        object.__setattr__(self, "_space", space)
        object.__setattr__(self, "_source_names", source_names)
        object.__setattr__(self, "_values", np.frombuffer(values.tobytes()))  # which nobody can make writeable

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"A {type(self).__name__} cannot be changed; make a new one instead.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    @property
    def _options(self) -> tuple[Any, ...]:
        """Arguments of the constructor after values and names."""
        return ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values, self._source_names, *self._options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure) or type(other) is not type(self):
            return NotImplemented
        alike = self._space == other._space and self._source_names == other._source_names
        return alike and np.array_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash((self._space, self._source_names, self._values.tobytes()))

    @property
    def space(self) -> Any:
        """The space of the values: a `Lattice` of elements, or `Terms`."""
        return self._space

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return int(self._space.n_sources)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources; by default "1", "2", ... as in the paper."""
        return self._source_names

    @property
    def values(self) -> Floats:
        """The numbers that the measure is made of, in the order of its space; read-only."""
        return self._values

    def describe(self) -> str:
        """Return what kind of measure it is, in a word or two."""
        return type(self).__name__

    @property
    def n_parts(self) -> int:
        """Number of elements or terms; terms beyond them are 0."""
        return len(self._values)

    def renamed(self, source_names: Sequence[str] | None) -> Self:
        """Return the same measure with other names of its sources."""
        return type(self)(self._values, source_names, *self._options)  # type: ignore[call-arg]  # all take these

    def with_values(self, values: ArrayLike) -> Self:
        """Return a measure of the same kind, sources and options with other values, checked as in the constructor."""
        return type(self)(values, self._source_names, *self._options)  # type: ignore[call-arg]

    @abstractmethod
    def sets(self, k: int) -> tuple[list[str], list[str]]:
        """Return names of the sources in A and in B, of the k-th of the values."""

    def all_sets(self, which: Ints) -> list[tuple[list[str], list[str]]]:
        """Return `sets` of many values."""
        return [self.sets(int(k)) for k in which]

    @abstractmethod
    def n_instances(self, touched: Ints) -> int:
        """Return how many instances there were, given how often each value was touched: once per source of each."""

    @abstractmethod
    def is_monotone(self, tolerance: float = 0.0) -> bool:
        """Return whether no source ever moves the measure the wrong way by more than `tolerance`."""

    @abstractmethod
    def to_bicapacity(self) -> Any:
        """Return the `BiCapacity` with the same integral, wherever this measure has one."""

    @abstractmethod
    def to_table(self, bold: Any = None) -> Table:
        """Return the values as a small table, those of `bold` marked."""

    @abstractmethod
    def overview(self, touched: Ints, limit: int) -> Table:
        """Return a table for a terminal, of `limit` rows at most, given how often training touched each value."""

    def to_markdown(self, bold: Any = None) -> str:
        """Write the table as Markdown, to two digits; see `to_table`."""
        return self.to_table(bold).to_markdown()

    def to_html(self, bold: Any = None) -> str:
        """Write the table as HTML, to two digits, names escaped; see `to_table`."""
        return self.to_table(bold).to_html()

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a model file (see docs/model-format.md), replacing it only when complete."""
        files.write_model(path, self.kind, *self.pack())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read from a model file; its content is checked, and nothing in it is executed.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is damaged, holds something else, or is of a newer version.
        """
        header, arrays = files.read_model(path, cls.kind)
        with files.reading(path, cls.kind):
            return cls.unpack(header, arrays)

    @abstractmethod
    def pack(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return header fields and arrays of a model file."""

    @classmethod
    @abstractmethod
    def unpack(cls, header: dict[str, Any], arrays: files.Arrays) -> Self:
        """Make one from what a file holds; the inverse of `pack`."""

    def _sources(self, members: SetOfSources) -> list[int]:
        """Return indices of the sources named or numbered in `members`; a lone name or number is a set of one."""
        if isinstance(members, str | int | np.integer):
            members = [members]
        try:
            indices = [self._source(member) for member in members]
        except TypeError as error:
            raise InvalidInputError(
                f"A set of sources must be an iterable, got {members!r}.", code="set-kind", value=members
            ) from error
        return sorted(set(indices))

    def _source(self, member: Source) -> int:
        if isinstance(member, str):
            if member in self._source_names:
                return self._source_names.index(member)
            raise InvalidInputError(
                f"Unknown source {member!r}; the sources are {', '.join(map(repr, self._source_names))}.",
                code="source-unknown",
            )
        if not is_integer(member):
            raise InvalidInputError(
                f"A source is given by its index or its name, got {member!r}.", code="source-key", value=member
            )
        if not 0 <= member < self.n_sources:
            raise InvalidInputError(
                f"Source index {member} must lie in 0..{self.n_sources - 1} (zero-based).", code="source-index"
            )
        return int(member)

    def _pair(self, pair: Any) -> tuple[list[int], list[int]]:
        """Return indices of the sources in A and in B, of an element (A, B)."""
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInputError(
                f"An element is a pair of sets, as in g[{{0}}, {{1, 2}}]; got {pair!r}.",
                code="element-pair",
                value=pair,
            )
        up, down = (self._sources(part) for part in pair)
        both = sorted(set(up) & set(down))
        if both:
            raise InvalidInputError(
                f"The two sets of an element must be disjoint, but both hold source {self._source_names[both[0]]!r}.",
                code="element-disjoint",
            )
        return up, down


def check_names(source_names: Sequence[str] | None, n_sources: int) -> tuple[str, ...]:
    """Return source names as a tuple, "1", "2", ... when None."""
    if source_names is None:
        return tuple(str(k + 1) for k in range(n_sources))
    if isinstance(source_names, str):
        raise InvalidInputError(
            f"source_names must be a list of names, got the single string {source_names!r}.",
            code="names-list",
            argument="source_names",
        )
    try:
        names = tuple(source_names)
    except TypeError as error:
        raise InvalidInputError(
            f"source_names must be a list of names, got {source_names!r}.",
            code="names-list",
            argument="source_names",
            value=source_names,
        ) from error
    for name in names:
        if not isinstance(name, str) or not name or any("\ud800" <= sign <= "\udfff" for sign in name):
            raise InvalidInputError(
                f"source_names must be non-empty strings of valid text, got {name!r}.",
                code="names-text",
                argument="source_names",
                value=name,
            )
    if len(names) != n_sources:
        raise InvalidInputError(
            f"source_names has {len(names)} names for {n_sources} sources: {', '.join(names)}. Give one each.",
            code="names-number",
            argument="source_names",
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"source_names must be distinct, but {twice[0]!r} occurs more than once. Give each "
            "source a name of its own.",
            code="names-distinct",
            argument="source_names",
        )
    return tuple(str(name) for name in names)


def number_array(values: ArrayLike, name: str) -> Floats:
    """`values` as float64, or an error that names the argument."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ValueError("complex numbers have no order")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must hold real numbers: {error}.", code="real-numbers", argument=name
        ) from error


def weight_array(weights: ArrayLike) -> Floats:
    """Return one weight per source as float64."""
    given = number_array(weights, "weights")
    if given.ndim != 1 or given.size == 0:
        raise InvalidInputError(
            f"weights must be 1-D, one for each source, got shape {given.shape}.",
            code="weights-shape",
            argument="weights",
        )
    return given
