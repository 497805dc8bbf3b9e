"""The rule to explain, and the parts of its measure; the one place of the package that knows the two families apart."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi import _html
from bimichi._extras import import_optional
from bimichi._html import Cell, Table, number
from bimichi._jit import jit
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.integral.linear import digit_steps, linear_form
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.integral.terms import LANES, add_features, sign_table, term_rows
from bimichi.measures.additive import Terms
from bimichi.measures.base import Measure
from bimichi.measures.lattice import Lattice, set_label
from bimichi.rule import FusionRule, as_rule

Result = TypeVar("Result")


class Use(NamedTuple):
    """For every part: how many instances touch it, how many give it weight, and how much weight in all."""

    touched: Ints
    weighted: Ints
    weight: Floats
    n_instances: int


@dataclass(frozen=True, eq=False)
class Parts(ABC):
    """All elements or terms of a measure, their values, and the names of the sources."""

    space: Any
    values: Floats
    names: tuple[str, ...]
    columns: ClassVar[tuple[str, str, str, str]]
    """Headings of tables: a part, its weight in an instance, its value, and the product of both."""

    @property
    @abstractmethod
    def listed(self) -> Ints:
        """The parts that tables list, in that order."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """The number of values that the definition of the measure does not fix."""

    @abstractmethod
    def label(self, k: int) -> str:
        """Return the name of a part."""

    @abstractmethod
    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        """Return the parts whose weighted sum is the integral of one instance, and their weights."""

    @abstractmethod
    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return a function that writes contributions of sources (m, n) to an array (n, m), NaN where a source is."""

    @abstractmethod
    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        """Return the parts that rows touch: how many touch each, how many give it weight, and how much in all."""

    @abstractmethod
    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return importance up and down, and interaction up, down and mixed, averaged over the whole measure."""

    @abstractmethod
    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions up, down and mixed, given the mean weight of every part."""

    @abstractmethod
    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        """Return the least and the greatest value of each part that change no fused value, given those in use."""

    def table_columns(self, codes: Ints, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Sequence[Any]]:
        """Return columns of a table: the labels of some parts, and their entries in arrays."""
        labels = {self.columns[0]: [self.label(code) for code in codes.tolist()]}
        return labels | {name: array[codes].tolist() for name, array in arrays.items()}

    def count_use(self, planes: Planes, n_jobs: int | None = None) -> Use:
        """Count how the instances without NaN use each part; O(n m^2)."""
        size = len(self.values)

        def run(chunk: slice) -> tuple[int, tuple[Ints, Ints, Ints, Floats]]:
            rows = planes.stacked(chunk).T
            rows = rows[~np.isnan(rows).any(axis=1)]
            return len(rows), self.use(rows)

        total = Use(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size), 0)
        n_instances = 0
        for n, (met, touched, weighted, weight) in run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs)):
            total.touched[met] += touched
            total.weighted[met] += weighted
            total.weight[met] += weight
            n_instances += n
        return total._replace(n_instances=n_instances)

    def summarise(
        self, planes: Planes, n_jobs: int | None, summary: Callable[[NDArray[Any], Floats], Result]
    ) -> list[Result]:
        """Return a summary of each chunk, given its instances without NaN and their contributions."""
        contribute = self.contributor()

        def run(chunk: slice) -> Result:
            sources = planes.stacked(chunk)
            contributed = np.empty((sources.shape[1], planes.n_sources))
            contribute(sources, contributed)
            kept = ~np.isnan(contributed[:, 0])
            return summary(sources.T[kept], contributed[kept])

        return run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))


MAX_SOURCES = 12
"""Beyond, hardly any of the pairs that the averages run over is met by data."""


@dataclass(frozen=True, eq=False)
class ElementParts(Parts):
    """The elements of a lattice; `steps` goes from all sources to the largest alone, by how much |x| rises on each."""

    space: Lattice
    columns = ("element", "weight", "value", "product")

    def label(self, k: int) -> str:
        return self.space.label(k, self.names)

    @property
    def listed(self) -> Ints:
        return np.arange(0 if self.space.zero_bound else 1, self.space.size)

    @property
    def n_free(self) -> int:
        return self.space.size - len(self.space.fixed)

    @property
    def _kind(self) -> str:
        return "bicapacity" if self.space.base == 3 else "capacity"

    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        codes, weights = linear_form(x[None], self._kind, check_range=False)
        kept = weights[0] > 0
        return codes[0][kept].astype(np.int64), weights[0][kept]

    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return a function that writes contributions; O(m 3^m) once, then O(m^2) per instance."""
        potential = np.zeros(self.space.size)
        _fill_potential(self.values, self.space.base, potential)
        steps = digit_steps(self.space)
        return lambda sources, out: _contribute(sources, steps, potential, out)

    def rows(self, instances: NDArray[Any]) -> tuple[Codes, Floats]:
        """Return the codes and weights of instances, each of shape (n, m)."""
        codes, weights = linear_form(instances, self._kind, check_range=False, n_jobs=1)
        return codes, weights.astype(np.float64, copy=False)

    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        size = self.space.size
        codes, weights = (part.ravel() for part in linear_form(rows, self._kind, check_range=False, n_jobs=1))
        touched = np.bincount(codes, minlength=size)
        met = np.flatnonzero(touched)
        weighted = np.bincount(codes[weights > 0], minlength=size)
        weight: Floats = np.bincount(codes, weights, minlength=size).astype(np.float64)
        return met, touched[met], weighted[met], weight[met]

    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Average differences over the sets of other sources, O(m^2 2^m); down and mixed of a capacity are 0."""
        m, both_sides = self.space.n_sources, self.space.base == 3
        if m > MAX_SOURCES:
            raise InvalidInputError(
                f"The measure has {m} sources; indices are offered up to {MAX_SOURCES}, because beyond them data meets "
                "hardly any of the elements averaged over. Use data_indices(measure, X), the average over data.",
                code="sources-many",
            )
        up = np.array([self._difference((k,), ()) for k in range(m)])
        down = np.array([self._difference((), (k,)) if both_sides else 0.0 for k in range(m)])
        both_up, both_down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
        for i, j in product(range(m), repeat=2):
            if i < j:
                both_up[i, j] = both_up[j, i] = self._difference((i, j), ())
            if i < j and both_sides:
                both_down[i, j] = both_down[j, i] = self._difference((), (i, j))
            if i != j and both_sides:
                mixed[i, j] = self._difference((i,), (j,))
        return up, down, both_up, both_down, mixed

    def _difference(self, up: tuple[int, ...], down: tuple[int, ...]) -> float:
        """Average the mixed difference of `up` rising from neutral to for, and `down` from against to neutral.

        Over the sets K of the n other sources, those of size k weigh (n - k)! k! / (n + 1)! each. In a capacity, what
        is not in K is absent.
        """
        base, absent = self.space.base, self.space.chain[0]
        others = [k for k in range(self.space.n_sources) if k not in up + down]
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
            total += (-1) ** raised.count(False) * self.values[codes + moved]
        return float(weights @ total)

    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions.

        The index of a pair in the game of one element is the sum of Moebius(T) / (|T| - 1) over the sub-elements T that
        hold both. So T counts with the weight of all elements that it is part of.
        """
        m, base = self.space.n_sources, self.space.base
        moebius, within, size = self.values.copy(), weight.copy(), np.zeros(1)
        for k in range(m):
            part = moebius.reshape(-1, base, base**k)
            part[:, 1:] -= part[:, :1]
            part = within.reshape(-1, base, base**k)
            part[:, 0] = part.sum(axis=1)
            size = np.concatenate([size, size + 1, size + 1][:base])
        terms = np.where(size > 1, moebius * within / np.maximum(size - 1, 1), 0.0)
        up, down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
        for i in range(m):
            for j in range(i + 1, m):
                by_digits = terms.reshape(base ** (m - 1 - j), base, base ** (j - i - 1), base, base**i).sum((0, 2, 4))
                up[i, j] = up[j, i] = by_digits[1, 1]
                if base == 3:  # rows: the digit of j; down is one step below neutral, hence the sign of mixed terms
                    down[i, j] = down[j, i] = by_digits[2, 2]
                    mixed[i, j], mixed[j, i] = -by_digits[2, 1], -by_digits[1, 2]
        return up, down, mixed

    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        low, high = self.space.bounds(np.where(used, self.values, np.nan))
        # A measure may break the order by the tolerance, so bounds may cross by as much, or pass a used value.
        return np.where(used, self.values, np.minimum(low, high)), np.where(used, self.values, np.maximum(low, high))


@jit
def _fill_potential(values, base, potential):
    """Fill ``P(A, B) = (g(A, B) + sum of P without one source) / size``, an element without one of its sources first.

    On each step of the integral, the game ``v(S) = C(x with the sources outside S set to 0)`` is that of one element;
    the value of source i in it is P(element) - P(element without i).
    """
    for code in range(1, values.size):
        total, size, rest, place = values[code], 0, code, 1
        while rest > 0:
            digit = rest % base
            if digit > 0:
                total += potential[code - digit * place]
                size += 1
            rest //= base
            place *= base
        potential[code] = total / size


@jit
def _sort(sources, i, order, key):
    """Sort sources of one instance by |x|; return the largest, NaN if there is any."""
    for k in range(key.size):
        size = abs(sources[k, i])
        if np.isnan(size):
            return size
        j = k
        while j > 0 and key[j - 1] > size:
            key[j], order[j] = key[j - 1], order[j - 1]
            j -= 1
        key[j], order[j] = size, k
    return key[-1]


@jit
def _contribute(sources, steps, potential, out):
    m, n = sources.shape
    order, key = np.empty(m, np.int64), np.empty(m)
    step, total = np.empty(m, np.int64), np.empty(m)
    for i in range(n):
        if np.isnan(_sort(sources, i, order, key)):
            out[i] = np.nan
            continue
        total[:] = 0.0
        code = 0
        for k in range(m - 1, -1, -1):
            step[k] = steps[1 if sources[order[k], i] < 0 else 0, order[k]]
            code += step[k]
            weight = key[k] - key[k - 1] if k > 0 else key[0]
            if weight > 0:
                for j in range(k, m):
                    total[order[j]] += weight * (potential[code] - potential[code - step[j]])
        for k in range(m):
            out[i, k] = total[k]


_fast = jit(error_model="numpy", fastmath={"contract", "nsz"})


@dataclass(frozen=True, eq=False)
class TermParts(Parts):
    """The terms of an additive bi-capacity; the weight of a term is |x|, or the smaller |x| of its two sources."""

    space: Terms
    columns = ("term", "min |x|", "b", "product")

    @property
    def n_free(self) -> int:
        return self.space.size if self.space.pairs else 2 * self.space.n_sources

    @property
    def listed(self) -> Ints:
        return np.argsort(-np.abs(self.values[: self.n_free]), kind="stable")  # those that may differ from 0

    def label(self, k: int) -> str:
        m, sides = self.space.n_sources, sorted({int(side[k]) for side in self.space.both_sides})
        up, down = [s for s in sides if s < m], [s - m for s in sides if s >= m]
        return f"b_{{{set_label(up, self.names)},{set_label(down, self.names)}}}"

    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        """Return the terms that are not 0: sources in their order, then pairs, those that move C most first."""
        shape = (1, self.space.row_length)
        rows, features = np.empty(shape, np.int32), np.empty(shape)
        term_rows(np.asarray(x, np.float64)[None], self.space.index, rows, features)
        codes, weights = rows[0].astype(np.int64), features[0]
        products = np.abs(weights * self.values[codes])
        single = codes < 2 * self.space.n_sources
        order = np.lexsort((codes, np.where(single, codes % self.space.n_sources, -products), ~single))
        kept = order[products[order] > 0]
        return codes[kept], weights[kept]

    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return a function that writes contributions; O(m^2) per instance, O(m) without pairs."""
        table = sign_table(self.space, self.values)
        return lambda sources, out: _contribute_terms(sources, table, self.space.pairs, out)

    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        """Count rows on the sides of each term, exactly; a zero is above zero, but gives no weight."""
        both = (np.hstack([above, rows < 0]).astype(np.float32) for above in (rows >= 0, rows > 0))
        touched, weighted = ((sides.T @ sides)[self.space.both_sides].astype(np.int64) for sides in both)
        weight = np.zeros(self.space.size)
        add_features(np.ascontiguousarray(rows), np.ones(len(rows)), self.space.index, True, weight)
        return np.arange(self.space.size), touched, weighted, weight

    def _tables(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the terms of pairs: both up, both down, and (row up, column down); NaN on the diagonals."""
        m, table = self.space.n_sources, self.space.matrix(values)
        off = np.where(np.eye(m, dtype=bool), np.nan, 0.0)
        return table[:m, :m] + off, table[m:, m:] + off, table[:m, m:] + off

    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the averages in closed form: of every other source, half of the sets hold it, and half do not.

        So a source rising from neutral to for adds its own term, and half of its terms with each other source for and
        against; the difference of two sources rising at once is their one term.
        """
        m = self.space.n_sources
        up, down, cross = self._tables(self.values)
        own = self.values[: 2 * m]
        rising = own[:m] + (np.nansum(up, axis=1) + np.nansum(cross, axis=1)) / 2
        leaving = -own[m:] - (np.nansum(down, axis=1) + np.nansum(cross, axis=0)) / 2
        return rising, leaving, up, down, 0.0 - cross

    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions: the index of a pair in the game of an instance is its one term there."""
        up, down, cross = self._tables(self.values * weight)
        return up, down, 0.0 - cross

    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        """Return NaN: terms are not in order, so that none bounds another."""
        nothing = np.full(len(self.values), np.nan)
        return nothing, nothing


@_fast
def _contribute_terms(sources, table, pairs, out):
    m, n = sources.shape
    size, sign, total = np.zeros((m, LANES)), np.zeros((m, LANES)), np.zeros((m, LANES))
    missing = np.empty(LANES, np.bool_)
    for start in range(0, n, LANES):
        width = min(LANES, n - start)
        missing[:] = False
        for i in range(m):
            a, b = table[i, i, 0], table[i, i, 1]
            for lane in range(width):
                x = np.float64(sources[i, start + lane])
                missing[lane] |= x != x
                size[i, lane], sign[i, lane] = abs(x), -1.0 if x < 0 else 1.0
                total[i, lane] = size[i, lane] * (a + b * sign[i, lane])
            for k in range(i if pairs else 0):
                _share_pair(size[k], sign[k], size[i], sign[i], table[k, i], total[k], total[i])
        for lane in range(width):
            for i in range(m):
                out[start + lane, i] = np.nan if missing[lane] else total[i, lane]


@_fast
def _share_pair(size, sign, other_size, other_sign, parts, total, other_total):
    """Add half of the term of a pair to each of the two; `parts` as in `bimichi.integral.terms.sign_table`."""
    a, b, c, d = parts[0], parts[1], parts[2], parts[3]
    for lane in range(LANES):
        s, t = sign[lane], other_sign[lane]
        x, y = size[lane], other_size[lane]
        half = 0.5 * (x if x < y else y) * (a + b * s + t * (c + d * s))
        total[lane] += half
        other_total[lane] += half


FAMILIES: dict[str, type[Parts]] = {"elements": ElementParts, "terms": TermParts}


def parts_of(measure: Measure) -> Parts:
    """Return the elements or terms of a measure."""
    return FAMILIES[measure.parts](measure.space, measure.values, measure.source_names)


def prepare(model: Any, X: Any) -> tuple[FusionRule, Parts, Planes]:
    """Return the rule of a model, the parts of its measure, and the sources as they enter the integral, checked."""
    rule = as_rule(model)
    return rule, parts_of(rule.measure), Planes(rule.enter(X), rule.n_sources, rule.source_names)


TABLE_LIMIT = 3**5
"""Rows of the longest table that is printed; data frames have no limit."""


def percent(share: float) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.0f} %"


class Explanation(ABC):
    """A result that is shown as a table, and can be taken further as a data frame."""

    def _head(self) -> str:
        """Return the line above the table."""
        return type(self).__name__

    @property
    def _note(self) -> str:
        """The line below the table."""
        return ""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the data frame by name, all equally long; the first one names the rows."""

    def _text(self, column: str, value: Any) -> str:
        """Return an entry of the table as text."""
        return number(value) if isinstance(value, float) else str(value)

    def to_table(self) -> Table:
        """Return the result as a table."""
        return self._tabulated(self._columns(), "Use to_frame(), or read the arrays of the result.")

    def _tabulated(self, columns: Mapping[str, Sequence[Any]], remedy: str) -> Table:
        texts = [[Cell(self._text(name, value)) for value in column] for name, column in columns.items()]
        rows = list(zip(*texts, strict=True))
        if len(rows) > TABLE_LIMIT:
            raise InvalidInputError(
                f"The table would have {len(rows):,} rows; tables have up to {TABLE_LIMIT} rows. {remedy}",
                code="table-large",
            )
        return Table(list(columns), rows)

    def to_frame(self) -> Any:
        """Return the result as a pandas data frame, its numbers unrounded."""
        return import_optional("pandas").DataFrame(dict(self._columns()))

    def _fits(self) -> bool:
        return len(next(iter(self._columns().values()))) <= TABLE_LIMIT

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.to_table().to_text()}" if self._fits() else self._head()

    def _repr_html_(self) -> str:
        return _html.view(self._head(), *([_html.table(self.to_table())] if self._fits() else []), note=self._note)
