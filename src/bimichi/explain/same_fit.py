"""The least and the greatest integral of every instance over all measures that fit the training data alike.

They are the measures that keep the elements, or terms, to which some training instance gives weight, so that none of
its outputs changes. On a lattice, the lowest and the highest completion of these elements are two of them; as every
element is worth the least in one and the most in the other, and weights are not negative, the integrals over the two
are the ends for all instances at once. The terms of an additive measure are not ordered; see `_of_terms`.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi._types import Flags, Floats, Ints
from bimichi.explain.parts import parts_of
from bimichi.integral.integrals import integrate
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.integral.terms import integrate_terms, sign_table
from bimichi.measures.terms import Terms

MOST_PROGRAMS = 128
"""With more free terms than this, whose linear programs would take seconds, each is only known to be in [-1, 1]."""

STILL = 1e-6
"""A term whose interval is narrower is determined; linear programs are no more precise."""


class SameFit(NamedTuple):
    """The ends of the integral of each instance, and whether they are reached, or only never exceeded."""

    low: NDArray[Any]
    high: NDArray[Any]
    exact: bool


def same_fit(measure: Any, used: Flags, entered: list[NDArray[Any]], n_jobs: int | None = None) -> SameFit:
    """Return the ends, given which elements or terms training used, and the sources as they enter the integral."""
    if measure.parts != "elements":
        return _of_terms(measure, used, entered, n_jobs)
    lattice = measure.lattice
    low, high = parts_of(measure).intervals(used)
    # A measure may break the order by the tolerance, and so may its completions: the sweeps leave none of that.
    completions = lattice.bounds(low)[0], lattice.bounds(high)[1]
    least, most = (
        integrate(entered, measure.with_values(values), check_range=False, n_jobs=n_jobs) for values in completions
    )
    return SameFit(least, most, exact=True)


def _of_terms(measure: Any, used: Flags, entered: list[NDArray[Any]], n_jobs: int | None) -> SameFit:
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
        return SameFit(low, high, True)
    ends = _term_ends(space, measure.values, np.flatnonzero(free))
    exact = bool((ends[1] - ends[0] <= STILL).all())
    least, most = (_integrals(space, values, entered, n_jobs) for values in ends)
    return SameFit(least, most, exact)


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
            found = linprog(cost, A_ub=rows, b_ub=room, A_eq=equal, b_eq=totals, bounds=bounds, method="highs")
            # The terms as they are meet all conditions, so that a program without a solution is rounding.
            end[term] = values[term] if found.x is None else found.x[k]
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
