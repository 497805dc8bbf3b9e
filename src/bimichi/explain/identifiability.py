"""What the data says about each element of a measure, and what it leaves open."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._tables import Cell, Table
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.elements import ElementParts
from bimichi.explain.parts import parts_of, prepare
from bimichi.explain.results import Explanation
from bimichi.explain.same_outputs import PRECISION, same_outputs
from bimichi.measures.base import TOLERANCE, Measure
from bimichi.rule import as_rule

NOT_APPLICABLE = (
    "Intervals are not applicable: the terms of an additive measure are not ordered, so that none bounds another."
)


@dataclass(frozen=True, eq=False, repr=False)
class Identifiability(Explanation):
    """How far the data determines each element, or term. Arrays have one entry for each, in the measure's order.

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
        """Whether an element is left open: its interval has a width."""
        return self.upper - self.lower > (PRECISION if self.exact else TOLERANCE)

    @property
    def n_free(self) -> int:
        """The number of elements that the boundary does not fix; of an additive measure, of its terms."""
        return parts_of(self.measure).n_free

    @property
    def n_used(self) -> int:
        """How many of these some instance gives weight."""
        return int(self.used[parts_of(self.measure).listed].sum())

    @property
    def has_intervals(self) -> bool:
        """Whether the measure is one of elements, which have intervals."""
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
        found = super().to_table()
        if not self.has_intervals:
            return found
        rows = []
        for code, (label, value, lower, upper, *use) in zip(parts_of(self.measure).listed, found.rows, strict=True):
            rows.append([label, Cell(f"{lower.text} .. {upper.text}") if self.open[code] else value, *use])
        return Table([title for title in found.header if title not in ("lower", "upper")], rows)


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
            "X must be given: this rule has no counts of its training data. Pass data, in which elements are counted."
        )
    used = counts > 0
    found = None
    if exact and planes is not None and isinstance(parts, ElementParts):

        def rows() -> Iterator[tuple[Codes, Floats]]:
            for chunk in planes.chunks(stacked=True):
                instances = planes.stacked(chunk).T
                yield parts.rows(instances[~np.isnan(instances).any(axis=1)])

        found = same_outputs(parts.space, parts.values, used, rows)  # None if that would take long
    if found is None:
        return Identifiability(rule.measure, *parts.intervals(used), used, counts, touched, weight)
    ends = (found.lower, found.upper) if found.exact else parts.intervals(used)
    return Identifiability(rule.measure, *ends, used, counts, touched, weight, found.exact, found.determined)
