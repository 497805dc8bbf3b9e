"""Intervals of each fused value: over all measures that fit alike, and over resampled labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi._checks import is_xarray
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import Explanation, parts_of, percent, prepare
from bimichi.explain.stability import Stability
from bimichi.integral.integrals import integrate
from bimichi.integral.labelled import relabelled, unlabelled
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.integral.terms import integrate_terms, sign_table
from bimichi.measures.additive import Terms
from bimichi.rule import FusionRule, as_rule

MOST_PROGRAMS = 128
"""With more free terms than this, whose linear programs would take seconds, each is only known to be in [-1, 1]."""

STILL = 1e-6
"""A term whose interval is narrower is determined; linear programs are no more precise."""


Ends = tuple[NDArray[Any], NDArray[Any], bool]
"""The least and the greatest integral of each instance, and whether they are reached, or only never exceeded."""


def same_fit(measure: Any, used: Flags, entered: list[NDArray[Any]], n_jobs: int | None = None) -> Ends:
    """Return the ends over all measures that keep the elements or terms in use; sources are as they enter."""
    if measure.parts != "elements":
        return _same_fit_of_terms(measure, used, entered, n_jobs)
    lattice = measure.lattice
    low, high = parts_of(measure).intervals(used)
    # A measure may break the order by the tolerance, and so may its completions: the sweeps leave none of that.
    completions = lattice.bounds(low)[0], lattice.bounds(high)[1]
    least, most = (
        integrate(entered, measure.with_values(values), check_range=False, n_jobs=n_jobs) for values in completions
    )
    return least, most, True


def _same_fit_of_terms(measure: Any, used: Flags, entered: list[NDArray[Any]], n_jobs: int | None) -> Ends:
    """Return the ends over the terms that are not used.

    Of order 1, those of sources that are up are not negative and share what the used ones leave of 1, in any way: the
    integral is least where all of it belongs to the source with the least positive part, and so for those below zero.
    Of order 2, the least and the greatest value of each free term are found by linear programs; the ends take all of
    them at once, so that they may be wider than what any one measure reaches.
    """
    space: Terms = measure.space
    free = ~used
    if not space.pairs:
        free[2 * space.n_sources :] = False
        held = _integrals(space, np.where(free, 0.0, measure.values), entered, n_jobs)
        low, high = held.copy(), held
        _share_out(space, measure.values, free, entered, low, high)
        return low, high, True
    ends = _term_ends(space, measure.values, np.flatnonzero(free))
    exact = bool((ends[1] - ends[0] <= STILL).all())
    least, most = (_integrals(space, values, entered, n_jobs) for values in ends)
    return least, most, exact


def _integrals(space: Terms, values: Floats, entered: list[NDArray[Any]], n_jobs: int | None) -> NDArray[Any]:
    """Add up the terms of every instance; together they need not be a measure."""
    planes = Planes(entered, space.n_sources)
    table = sign_table(space, values).astype(planes.dtype)

    def run(chunk: slice) -> None:
        with planes.writing(chunk) as out:
            integrate_terms(planes.stacked(chunk), table, out)

    run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    return planes.out


def _share_out(
    space: Terms, values: Floats, free: Flags, entered: list[NDArray[Any]], low: NDArray[Any], high: NDArray[Any]
) -> None:
    """Add to both ends what the free terms of single sources can add to them, in place."""
    m = space.n_sources
    for sign, start in ((1, 0), (-1, m)):
        sources = np.flatnonzero(free[start : start + m])
        if not sources.size:
            continue
        total = values[start + sources].sum()  # not positive for those below zero
        parts = [np.maximum(sign * entered[k], 0) for k in sources]
        least, most = (total * end.reduce(parts) for end in ((np.minimum, np.maximum)[::sign]))
        low += least
        high += most


def _term_ends(space: Terms, values: Floats, free: Ints) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each term, the used ones held."""
    low, high = values.copy(), values.copy()
    if len(free) > MOST_PROGRAMS:
        low[free], high[free] = -1.0, 1.0
        return low, high
    from scipy.optimize import linprog  # takes long to import

    rows, room, equal, totals = _constraints(space, values, free)
    n_helpers = rows.shape[1] - len(free)
    bounds = [(-1.0, 1.0)] * len(free) + [(None, 0.0)] * n_helpers
    for k, term in enumerate(free):
        for sign, end in ((1.0, low), (-1.0, high)):
            cost = sign * np.eye(1, rows.shape[1], k)[0]
            solution = linprog(cost, A_ub=rows, b_ub=room, A_eq=equal, b_eq=totals, bounds=bounds, method="highs")
            # The terms as they are meet all conditions, so that a program without a solution is rounding.
            end[term] = values[term] if solution.x is None else solution.x[k]
    return np.minimum(low, values), np.maximum(high, values)


def _constraints(space: Terms, values: Floats, free: Ints) -> tuple[sp.csr_array, Floats, sp.csr_array, Floats]:
    """Return what makes the free terms, and one helper for each "min(0, ., .)" of `Terms.slack`, a measure."""
    m, n_sides = space.n_sources, 2 * space.n_sources
    column = np.full(space.size, -1)
    column[free] = np.arange(len(free))
    helper = np.full((n_sides, m), -1)
    others = np.arange(n_sides)[:, None] % m != np.arange(m)
    helper[others] = len(free) + np.arange(others.sum())
    rows, room = [], []

    def add(weights: dict[int, float], sign: float, term: int) -> None:
        """Add the condition that weights are no more than sign times a term; a used term is a number."""
        free_term = column[term] >= 0
        rows.append(weights | ({int(column[term]): -sign} if free_term else {}))
        room.append(0.0 if free_term else sign * values[term])

    for side in range(n_sides):
        sign = space.sign[side]
        own = {int(helper[side, k]): -1.0 for k in range(m) if others[side, k]}
        add(own, sign, side)
        for other in range(n_sides):
            if others[side, other % m]:
                add({int(helper[side, other % m]): 1.0}, sign, space.index[side, other])
    width = len(free) + int(others.sum())
    equal = np.zeros((2, width))
    held = values.copy()
    held[free] = 0.0
    first, second = space.both_sides
    for row, inside in enumerate((second < m, first >= m)):
        equal[row, column[free[inside[free]]]] = 1.0
    at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    columns = np.concatenate([list(row) for row in rows]).astype(np.int64)
    weights = np.concatenate([list(row.values()) for row in rows])
    matrix = sp.csr_array((weights, (at, columns)), (len(rows), width))
    return matrix, np.array(room), sp.csr_array(equal), np.array([1.0, -1.0]) - space.totals(held)


ARRAYS = ("fused", "lower", "upper", "spread_lower", "spread_upper")

WIDE = 0.1
"""From which width on, of a range of 1, the table counts an instance as open."""


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty(Explanation):
    """Intervals of the fused value of each instance; arrays have the shape of one source, and NaN where a source has.

    Attributes
    ----------
    fused : ndarray
        What `FusionRule.fuse` gives.
    lower, upper : ndarray
        The least and the greatest fused value over all measures that fit the training data alike: those that keep the
        value of every element, or term, to which some training instance gives weight. They give each training
        instance the same output. Scale, polarity and link stay as fitted.
    exact : bool
        Whether some such measure reaches each end, up to rounding. It is so on a lattice, where the ends are those of
        the lowest and the highest completion, and for additive measures of order 1. Of order 2, if terms are free,
        ends are bounds that no such measure exceeds.
    n_open : int
        How many elements, or terms, training gave no weight; the boundary of a lattice is not counted.
    spread_lower, spread_upper : ndarray or None
        Percentiles of the fused values of models refitted to bags drawn with replacement: the interval holds the share
        `level` of the refits. None without a `Stability`.
    level : float or None
        As in `bootstrap`.
    output_range : (float, float)
        The range of `fuse`.
    """

    fused: NDArray[Any]
    lower: NDArray[Any]
    upper: NDArray[Any]
    exact: bool
    n_open: int
    output_range: tuple[float, float]
    spread_lower: NDArray[Any] | None = None
    spread_upper: NDArray[Any] | None = None
    level: float | None = None

    @property
    def width(self) -> NDArray[Any]:
        """The distance between the ends, as a share of the range of `fuse`: between 0 and 1."""
        return self._share(self.upper - self.lower)

    @property
    def spread(self) -> NDArray[Any] | None:
        """The distance between the percentiles of the refits, as a share of the range of `fuse`."""
        if self.spread_lower is None or self.spread_upper is None:
            return None
        return self._share(self.spread_upper - self.spread_lower)

    def _share(self, difference: NDArray[Any]) -> NDArray[Any]:
        return difference / (self.output_range[1] - self.output_range[0])

    def _head(self) -> str:
        bounds = "" if self.exact else " (bounds, perhaps not reached)"
        return f"Uncertainty of {np.size(self.fused):,} instances; training left {self.n_open:,} parts open{bounds}"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        widths = {"same fit": self.width}
        if self.spread is not None and self.level is not None:
            widths[f"{percent(self.level)} of refits"] = self.spread
        valid = [np.asarray(width)[~np.isnan(width)] for width in widths.values()]
        return {
            "interval": list(widths),
            "mean width": [float(width.mean()) if width.size else np.nan for width in valid],
            "largest": [float(width.max()) if width.size else np.nan for width in valid],
            f"share above {WIDE:g}": [float((width > WIDE).mean()) if width.size else np.nan for width in valid],
        }


def uncertainty(
    model: Any, X: Any, *, training: Any = None, stability: Stability | None = None, n_jobs: int | None = None
) -> Uncertainty:
    """Return the interval in which the fused value of each instance may lie.

    Parameters
    ----------
    model, X, n_jobs
        As in `contributions`. An instance with NaN in any source gives NaN. Of xarray, the result holds arrays with
        the coordinates of `X`.
    training : array-like of shape (..., n_sources), or list of planes, optional
        The training instances. Needed only if the rule has no counts of its training data.
    stability : Stability, optional
        What `bootstrap` returned for this model; with it, the result has the spread of the refits.

    Returns
    -------
    Uncertainty
        Two intervals that answer two questions. [lower, upper]: what could the value be if nothing about the training
        outputs changed? It is wide where an instance needs elements that no training instance used, and has no width
        where it needs none of them; so of an additive measure, whose few terms are soon all used, it says little.
        [spread_lower, spread_upper]: what could the value be had other bags been labelled?

    Notes
    -----
    Two fuses for the ends, whatever the number of instances. Measures that move used elements, but in such a way that
    no training output changes, are not counted; `identifiability` reports whether there are any.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> g = BiCapacity.additive([0.7, 0.3])
    >>> found = uncertainty(g, [[0.5, 1.0], [0.5, 0.0]], training=[[0.5, 1.0], [0.5, -0.5]])
    >>> found.lower, found.upper
    (array([0.65, 0.2 ]), array([0.65, 0.5 ]))
    """
    rule = as_rule(model)
    if is_xarray(X):
        sources = unlabelled(X, rule)
        plain = uncertainty(rule, sources.planes, training=training, stability=stability, n_jobs=n_jobs)
        arrays: dict[str, Any] = {name: getattr(plain, name) for name in ARRAYS}
        named = {name: relabelled(array, sources.like, name) for name, array in arrays.items() if array is not None}
        return replace(plain, **dict[str, Any](named))
    used = used_parts(rule, training, n_jobs)
    entered = rule.enter(X)
    integral = integrate(entered, rule.measure, check_range=False, n_jobs=n_jobs)
    low, high, exact = same_fit(rule.measure, used, entered, n_jobs)
    # Where no open element is in use, all three are sums of the same products, but rounded differently.
    low, high = np.minimum(low, integral), np.maximum(high, integral)
    if rule.output == "magnitude":  # the integral takes all values between its ends
        least = np.where((low <= 0) & (high >= 0), 0, np.minimum(abs(low), abs(high))).astype(low.dtype)
        low, high = np.where(np.isnan(low), low, least), np.maximum(abs(low), abs(high))
    spread = (None, None) if stability is None else _spread(rule, stability, entered, n_jobs)
    parts = parts_of(rule.measure)
    return Uncertainty(
        fused=rule.output_of(integral),
        lower=rule.output_of(low),
        upper=rule.output_of(high),
        exact=exact,
        n_open=int((~used[parts.listed]).sum()),
        output_range=rule.output_range,
        spread_lower=spread[0],
        spread_upper=spread[1],
        level=None if stability is None else stability.level,
    )


def used_parts(rule: FusionRule, training: Any, n_jobs: int | None) -> Flags:
    """Return which elements or terms training gave weight; those of the boundary are as good as used."""
    if training is not None:
        _, parts, planes = prepare(rule, training)
        used: Flags = parts.count_use(planes, n_jobs).weighted > 0
    elif "weighted" in rule.usage:
        used = rule.usage["weighted"] > 0
    else:
        raise InvalidInputError(
            "training must be given: this rule has no counts of its training data. Pass the instances that it was "
            "learned from.",
            code="counts-missing",
            argument="training",
        )
    used = used.copy()
    used[list(getattr(rule.measure.space, "fixed", ()))] = True
    return used


def _spread(
    rule: FusionRule, stability: Stability, entered: list[NDArray[Any]], n_jobs: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return percentiles of the fused values of all refits, chunk by chunk."""
    if type(stability.measure) is not type(rule.measure) or stability.values.shape[1] != len(rule.measure.values):
        raise InvalidInputError(
            f"stability is of a {stability.measure.describe()} of {stability.measure.n_sources} sources, but the model "
            f"has a {rule.measure.describe()} of {rule.n_sources}. Pass bootstrap(model, ...) of this model.",
            code="stability-of-another",
            argument="stability",
        )
    rules = [replace(rule, measure=measure, link=link) for measure, link in stability.refits()]
    planes = Planes(entered, rule.n_sources)
    ends = (1 - stability.level) / 2, (1 + stability.level) / 2
    out = np.empty((2, planes.size), planes.dtype)

    def run(chunk: slice) -> None:
        sources = list(planes.contiguous(chunk))
        fused = np.empty((len(sources[0]), len(rules)), planes.dtype)
        for k, refitted in enumerate(rules):
            fused[:, k] = refitted.output_of(integrate(sources, refitted.measure, check_range=False, n_jobs=1))
        out[:, planes.instances(chunk)] = np.quantile(fused, ends, axis=1)

    run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    lower, upper = out.reshape(2, *planes.shape)
    return lower, upper
