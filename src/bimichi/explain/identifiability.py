"""The elements of a measure that data determines, and intervals of those that it leaves open."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bimichi._html import Cell, Table
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import ElementParts, Explanation, parts_of, prepare
from bimichi.measures.base import TOLERANCE, Measure
from bimichi.measures.lattice import Lattice
from bimichi.rule import as_rule

MOST_ELEMENTS = 3**6
"""Of measures with more elements than this, even those that the equations determine are not looked for."""

MOST_OPEN = 100
"""With more other elements than this, whose programs would take minutes, none is solved."""

NEGLIGIBLE = 1e-9
"""Rows count as equal if they differ by less than this: their weights, and so their outputs."""

PROBES = 3
"""How many random vectors a row is tried against."""

STILL = 1e-7
"""An element is determined if no direction of unit length in which outputs stay the same moves it by more than this."""

PRECISION = 1e-6
"""How exact the ends of intervals are; narrower ones are single values."""

Rows = Callable[[], Iterator[tuple[Codes, Floats]]]
"""A function that yields the codes and weights of all instances, chunk by chunk, each time that it is called."""


class SameOutputs(NamedTuple):
    """Ends of intervals, which elements the equations determine, and whether the ends are those of programs."""

    lower: Floats
    upper: Floats
    determined: Flags
    exact: bool


def same_outputs(lattice: Lattice, values: Floats, used: Flags, rows: Rows) -> SameOutputs | None:
    """Return the intervals of all elements; `used` are those to which some row gives weight.

    Where there are too many elements for programs, used ones that are not determined are held at their values. None if
    there are too many for either.
    """
    fixed = np.zeros(lattice.size, np.bool_)
    fixed[list(lattice.fixed)] = True
    met = np.flatnonzero(used & ~fixed)
    if lattice.size > MOST_ELEMENTS:
        return None
    still = _null_space(met, lattice.size, rows)
    determined = fixed.copy()
    determined[met[np.linalg.norm(still, axis=1) <= STILL]] = True
    moving = ~determined[met]
    return _ends(lattice, values, determined, still[moving], met[moving])


def _null_space(met: Ints, size: int, rows: Rows) -> Floats:
    """Return an orthonormal basis, in columns, of the changes of the elements `met` that change no row's output."""
    rng = np.random.default_rng(0)
    span, still = np.empty((0, len(met))), np.eye(len(met))
    while still.shape[1]:
        probe = np.zeros((size, PROBES))
        probe[met] = still @ rng.standard_normal((still.shape[1], PROBES))
        new = _outside(rows, probe)[:, met]
        joined = np.vstack([span, new])
        _, sizes, basis = np.linalg.svd(joined, full_matrices=len(joined) < len(met))
        rank = int((sizes > NEGLIGIBLE * max(1.0, sizes[0])).sum())
        if rank <= len(span):
            break
        span, still = basis[:rank], basis[rank:].T
    return still


def _outside(rows: Rows, probe: Floats) -> Floats:
    """Return rows, dense, that the probes show not to be in the span: for each element, the furthest that uses it."""
    size = len(probe)
    best, furthest = np.full((PROBES, size), NEGLIGIBLE), np.zeros((PROBES, size, size))
    for codes, weights in rows():
        distances = np.abs(np.einsum("nk,nkp->pn", weights, probe[codes]))
        for distance, far, dense in zip(distances, best, furthest, strict=True):
            order = np.argsort(-distance, kind="stable")
            order = order[: int((distance > NEGLIGIBLE).sum())]
            used, first = np.unique(np.where(weights[order] > 0, codes[order], -1), return_index=True)
            row = order[first // codes.shape[1]]
            better = (used >= 0) & (distance[row] > far[used])
            for code, k in zip(used[better].tolist(), row[better].tolist(), strict=True):
                far[code] = distance[k]
                dense[code] = np.bincount(codes[k], weights[k], minlength=size)
    return furthest.reshape(-1, size)[(best > NEGLIGIBLE).ravel()]


@dataclass(frozen=True)
class _Polytope:
    """Changes d of the moving elements: ``order @ d <= room``, ``equal @ d = 0``, ``low <= d <= high``."""

    order: sp.csr_array
    room: Floats
    equal: sp.csr_array
    low: Floats
    high: Floats

    def minimise(self, cost: Floats) -> Floats:
        from scipy.optimize import linprog  # takes long to import

        solution = linprog(
            cost,
            A_ub=self.order if len(self.room) else None,
            b_ub=self.room if len(self.room) else None,
            A_eq=self.equal if self.equal.shape[0] else None,
            b_eq=np.zeros(self.equal.shape[0]) if self.equal.shape[0] else None,
            bounds=np.column_stack([self.low, self.high]),
            method="highs",
        )
        if solution.x is None:  # no change at all is always possible, so this is rounding
            return np.zeros(len(cost))
        return np.asarray(solution.x, dtype=np.float64)


def _ends(lattice: Lattice, values: Floats, determined: Flags, still: Floats, linked: Ints) -> SameOutputs:
    """Return the ends of the intervals; `still` holds the directions in which the elements `linked` can move."""
    # If only what is determined is known, intervals are too wide; if all that is linked is, too narrow. Where both
    # agree, there is nothing to compute.
    widest = _ordered(lattice.bounds(np.where(determined, values, np.nan)))
    held = determined.copy()
    held[linked] = True
    inner = _ordered(lattice.bounds(np.where(held, values, np.nan)))
    lower, upper = (np.where(held, values, end) for end in inner)
    free = np.flatnonzero(~determined)
    exact = not len(linked) or len(free) <= MOST_OPEN
    if len(linked) and exact:
        polytope = _polytope(lattice, values, free, still, linked)
        for sign, end, bound in ((1.0, lower, widest[0]), (-1.0, upper, widest[1])):
            _push(polytope, sign, end, bound, values, free)
    return SameOutputs(lower, upper, determined, exact)


def _push(polytope: _Polytope, sign: float, end: Floats, bound: Floats, values: Floats, free: Ints) -> None:
    """Move the ends of intervals outwards, down for sign 1, to what the polytope allows, in place."""

    def solve(cost: Floats) -> None:
        reached = values[free] + polytope.minimise(sign * cost)
        end[free] = np.minimum(end[free], reached) if sign > 0 else np.maximum(end[free], reached)

    solve(np.ones(len(free)))  # one solution often has the ends of many
    for k, code in enumerate(free):
        if sign * (end[code] - bound[code]) > PRECISION / 10:
            solve(np.eye(1, len(free), k)[0])


def _polytope(lattice: Lattice, values: Floats, free: Ints, still: Floats, linked: Ints) -> _Polytope:
    position = np.full(lattice.size, -1)
    position[free] = np.arange(len(free))
    lower, upper = lattice.covers()
    room = np.maximum(values[upper] - values[lower], 0.0)
    at_low, at_high = position[lower], position[upper]
    both = (at_low >= 0) & (at_high >= 0)
    count = int(both.sum())
    index = np.arange(count)
    entries = (np.repeat([1.0, -1.0], count), (np.tile(index, 2), np.concatenate([at_low[both], at_high[both]])))
    low, high = lattice.low - values[free], 1.0 - values[free]
    rises, falls = (at_low >= 0) & (at_high < 0), (at_low < 0) & (at_high >= 0)
    np.minimum.at(high, at_low[rises], room[rises])
    np.maximum.at(low, at_high[falls], -room[falls])
    vectors, sizes, _ = np.linalg.svd(still, full_matrices=True)
    constraints = vectors[:, int((sizes > STILL).sum()) :]  # a basis of what is orthogonal to all directions
    equal = sp.lil_array((constraints.shape[1], len(free)))
    equal[:, position[linked]] = constraints.T
    order = sp.csr_array(entries, shape=(count, len(free)))
    return _Polytope(order, room[both], sp.csr_array(equal), np.minimum(low, 0.0), np.maximum(high, 0.0))


def _ordered(ends: tuple[NDArray[Any], NDArray[Any]]) -> tuple[Floats, Floats]:
    """Return bounds the right way round: a measure may break the order by the tolerance, and its bounds cross by it."""
    return np.minimum(*ends), np.maximum(*ends)


NOT_APPLICABLE = (
    "Intervals are not applicable: the terms of an additive measure are not ordered, so that none bounds another."
)


@dataclass(frozen=True, eq=False, repr=False)
class Identifiability(Explanation):
    """Use and intervals of each element, or term; arrays have one entry for each, in the measure's order.

    Attributes
    ----------
    measure : Measure
        What is explained.
    lower, upper : ndarray
        If `exact`, the least and the greatest value of an element among all monotone measures that give every instance
        the same output, to 1e-6. Otherwise, elements in use are held at their values, and others lie between them; a
        used element may then have an interval that is not shown. Not applicable to terms: NaN.
    used, counts : ndarray of bool, and of int64
        Whether some instance gives it weight, and how many do.
    touched : ndarray of int64
        How many instances touch it at all, as the paper counts.
    weight : ndarray of float64 or None
        How much weight they give it in all; None where only the counts of a model's training are known.
    exact : bool
        Whether the intervals are those of all measures with the same outputs. They are not if only the counts of a
        model's training are known, if the measure has more than 729 elements, or if more than 100 of them would need
        a linear program.
    determined : ndarray of bool or None
        Elements that the outputs of the instances determine by themselves, without the order, and the boundary; None if
        that was not computed. All other used elements may be free, whatever their interval shows unless `exact`.
    """

    measure: Measure
    lower: Floats
    upper: Floats
    used: Flags
    counts: Ints
    touched: Ints
    weight: Floats | None
    exact: bool = False
    determined: Flags | None = None

    @property
    def open(self) -> Flags:
        """Flags of the elements that are open: whose intervals have a width."""
        return self.upper - self.lower > (PRECISION if self.exact else TOLERANCE)

    @property
    def n_free(self) -> int:
        """The number of elements that the boundary does not fix; of an additive measure, of its terms."""
        return parts_of(self.measure).n_free

    @property
    def n_used(self) -> int:
        """The number of these that some instance gives weight."""
        return int(self.used[parts_of(self.measure).listed].sum())

    @property
    def has_intervals(self) -> bool:
        """True if the measure is one of elements, which have intervals."""
        return self.measure.parts == "elements"

    def _head(self) -> str:
        if self.has_intervals:
            held = "" if self.exact else ", if the used ones keep their values"
            if not self.exact and self.determined is not None:
                sure = int((self.determined & self.used).sum())
                held += f" (outputs determine {sure:,} of {int(self.used.sum()):,} used ones)"
            return f"Identifiability: {int(self.open.sum()):,} of {self.n_free:,} free elements are open{held}"
        return f"Identifiability: {self.n_used:,} of {self.n_free:,} terms are used. {NOT_APPLICABLE}"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        parts = parts_of(self.measure)
        ends = {"lower": self.lower, "upper": self.upper} if self.has_intervals else {}
        weight = {} if self.weight is None else {"weight": self.weight}
        arrays = {parts.columns[2]: parts.values} | ends | {"touched": self.touched, "weighted": self.counts} | weight
        return parts.table_columns(parts.listed, arrays)

    def to_table(self) -> Table:
        """Return the elements, open ones as intervals, or the terms as a table."""
        table = super().to_table()
        if not self.has_intervals:
            return table
        rows = []
        for code, (label, value, lower, upper, *use) in zip(parts_of(self.measure).listed, table.rows, strict=True):
            rows.append([label, Cell(f"{lower.text} .. {upper.text}") if self.open[code] else value, *use])
        return Table([title for title in table.header if title not in ("lower", "upper")], rows)


def identifiability(
    model: Any, X: ArrayLike | Sequence[ArrayLike] | None = None, *, exact: bool = True, n_jobs: int | None = None
) -> Identifiability:
    """Report which elements or terms data has used, and in which interval each element may lie.

    Parameters
    ----------
    model, n_jobs
        As in `contributions`.
    X : array-like of shape (..., n_sources), or list of planes, optional
        The data; instances with NaN are left out. Not needed if the rule has counts of its training data, which are
        enough for intervals with the used elements held at their values, but not for exact ones.
    exact : bool, default=True
        Whether to compute exact intervals from `X`. False is much quicker.

    Notes
    -----
    What is held equal is the integral C of every instance of `X`, to 1e-9 per unit that an element moves; for a
    "magnitude" model too, though its output is abs(C). A measure with other outputs may reach the same objective on
    the training data; how far those differ is for `bootstrap`.

    O(n m^2 + m 3^m) for the counts, some passes over the data for the equations, and two linear programs for each
    element that these do not determine: seconds for four sources. If there are too many, `exact` of the result is
    False: an open element then lies between the largest used (or boundary) element below it and the smallest one
    above it.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> identifiability(BiCapacity.additive([0.7, 0.3]), [[0.5, 1.0], [0.5, -0.5]])
    Identifiability: 4 of 6 free elements are open
    element           value  touched  weighted  weight
    g_{∅,∅}            0.00        0         0    0.00
    g_{1,∅}    0.40 .. 1.00        0         0    0.00
    g_{∅,1}   -1.00 .. 0.00        0         0    0.00
    g_{2,∅}            0.30        1         1    0.50
    g_{12,∅}           1.00        1         1    0.50
    g_{2,1}   -1.00 .. 0.30        0         0    0.00
    g_{∅,2}   -1.00 .. 0.00        1         0    0.00
    g_{1,2}            0.40        1         1    0.50
    g_{∅,12}          -1.00        0         0    0.00
    """
    rule = as_rule(model)
    parts, weight, planes = parts_of(rule.measure), None, None
    if X is not None:
        planes = prepare(rule, X)[2]
        touched, counts, weight, _ = parts.count_use(planes, n_jobs)
    elif rule.usage:
        touched, counts = rule.usage["touched"], rule.usage["weighted"]
    else:
        raise InvalidInputError(
            "X must be given: this rule has no counts of its training data. Pass data, in which elements are counted.",
            code="counts-missing",
            argument="X",
        )
    used = counts > 0
    outcome = None
    if exact and planes is not None and isinstance(parts, ElementParts):

        def rows() -> Iterator[tuple[Codes, Floats]]:
            for chunk in planes.chunks(stacked=True):
                instances = planes.stacked(chunk).T
                yield parts.rows(instances[~np.isnan(instances).any(axis=1)])

        outcome = same_outputs(parts.space, parts.values, used, rows)  # None if that would take long
    if outcome is None:
        return Identifiability(rule.measure, *parts.intervals(used), used, counts, touched, weight)
    ends = (outcome.lower, outcome.upper) if outcome.exact else parts.intervals(used)
    return Identifiability(rule.measure, *ends, used, counts, touched, weight, outcome.exact, outcome.determined)
