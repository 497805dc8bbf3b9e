"""The rows that decide bags, as a quadratic program that grows as more of them are found."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.learning.objectives import ConvexForm
from bimichi.learning.problem import Extremes, Problem
from bimichi.learning.solvers.completion import Traced, traced
from bimichi.learning.solvers.least_squares import least_squares
from bimichi.learning.solvers.order import Order
from bimichi.learning.solvers.quadratic import PRECISION, Program
from bimichi.measures.lattice import Lattice
from bimichi.measures.sampling import sample

__all__ = ["Answer", "Cuts", "Deciding", "Witnesses", "WorkingSet"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOSS = 0.5
"""How much of what it is needed for a cut may lose by using fewer elements."""

REPEATS = 4
"""After so many cuts of the same row it is taken whole: fewer make large programs, more make many."""

BINDING = 1e-4
"""A row so near the slack of its bag may hold it up."""


class Witnesses(NamedTuple):
    """For each positive bag, its best row, the sign with which it speaks, and the linear form of the row."""

    row: Ints
    sign: Ints
    codes: NDArray[np.int32]
    weights: Floats

    @property
    def key(self) -> bytes:
        """What tells one choice of witnesses from another."""
        return self.row.tobytes() + self.sign.tobytes()


class Cuts(NamedTuple):
    """What bounds slacks from below: of each, its bag, its side (an index of ``form.negative``), its row, its terms.

    The codes are those of the row, or of elements below them (above, if the sign of the side is -1). As a monotone
    measure is worth no more there, a cut holds whatever the measure; it is as tight as the row where the values of the
    row's elements come from those of the cut.
    """

    bag: Ints
    side: Ints
    row: Ints
    codes: NDArray[np.int32]
    weights: Floats

    def take(self, which: NDArray[Any]) -> "Cuts":
        """Some of them."""
        return Cuts(*(part[which] for part in self))


class Answer(NamedTuple):
    """What the QP of a working set gave."""

    partial: Floats  # values, NaN for elements that are no variables
    slack: Floats  # of every bag
    bound: float  # no measure has a smaller J with these witnesses
    binding: Ints  # places of the rows that hold slacks up; without the others the QP has the same minimum


class Deciding(NamedTuple):
    """Rows of a QP: linear functions ``weights @ v[codes] + constant`` of the measure v."""

    codes: NDArray[np.int32]
    weights: Floats
    constant: Floats
    alone: Ints  # rows that cost their square
    share: Floats  # how much each of them counts
    tied: Ints  # rows that bound a slack
    slack: Ints  # which
    slack_weight: Floats  # how much the square of each slack counts


class WorkingSet:
    """Cuts of negative bags, and the order of the elements that they use, as far as both were found to matter.

    All starts share one set, but each QP takes only the cuts that matter near the measure at hand. A single cut of a
    negative bag must bound its term by its square, which holds if ``sign * C + offset`` cannot be below zero, or if the
    form has both signs.

    Where the completion is the lowest, elements that no witness uses need not be variables: no bag gains by a larger
    value there, so each has the value of the largest witness element below it, and cuts are made of those alone.
    """

    def __init__(self, problem: Problem, form: ConvexForm) -> None:
        self.problem, self.form = problem, form
        self.order = self._no_order()
        self.negative = np.flatnonzero(~problem.labels)
        self.scale = float(problem.weights.mean())  # QPs have weights near 1, whatever the user's are
        none = np.empty(0, np.int64)
        self._cuts = Cuts(none, none, none, *problem.rows(none))
        self._places: dict[bytes, int] = {}

    def _no_order(self) -> Any:
        return Order(self.problem.lattice)

    @property
    def size(self) -> int:
        """How many numbers the measure is made of."""
        return self.problem.lattice.size

    @property
    def polishes(self) -> bool:
        """Whether a QP of the last precision is not too long; these have few variables."""
        return True

    def middle(self) -> Floats:
        """The measure in the middle of all."""
        lower, upper = self.problem.lattice.bounds(np.full(self.size, np.nan))
        return (lower + upper) / 2

    def fitted(self) -> Floats:
        """The measure that fits all instances to the labels of their bags best."""
        targets = (-self.form.negative[0][1], 1.0)
        return least_squares(self.problem, targets, self.form.completion, (PRECISION,))[0]

    def sample(self, rng: np.random.Generator) -> Floats:
        """A random measure."""
        return sample(self.problem.lattice, rng)

    def witnesses(self, seen: Extremes) -> Witnesses:
        """For each positive bag, its best row and the sign with which it speaks."""
        labels = self.problem.labels
        high, low = seen.high[labels], seen.low[labels]
        up = np.ones(len(high), dtype=bool) if self.form.positive == (1,) else high >= -low
        rows = np.where(up, seen.high_row[labels], seen.low_row[labels])
        return Witnesses(rows, np.where(up, 1, -1), *self.problem.rows(rows))

    def value(self, seen: Extremes) -> float:
        """J, which the extremes of the bags decide."""
        labels = self.problem.labels
        sides = [sign * (seen.high if sign > 0 else seen.low) + offset for sign, offset in self.form.negative]
        best = np.max([sign * (seen.high if sign > 0 else seen.low) for sign in self.form.positive], axis=0)
        terms = np.where(labels, 1 - best, np.max(sides, axis=0)) ** 2
        return float(self.problem.weights @ terms)

    def completed(self, partial: Floats, witnesses: Witnesses) -> Traced:
        """The measure that follows from the values of variables."""
        if self.form.completion == "lowest":
            partial = self.spoken(partial, witnesses)
        return traced(self.problem.lattice, partial, self.form.completion)

    def spoken(self, values: Floats, witnesses: Witnesses) -> Floats:
        """The values of elements that witnesses use, NaN elsewhere."""
        used = witnesses.codes[witnesses.weights != 0]
        partial = np.full_like(values, np.nan)
        partial[used] = values[used]
        return partial

    def worst(self, seen: Extremes, slack: Floats, tolerance: float, measure: Traced) -> Cuts:
        """Cuts by the worst rows of bags whose slack is too small.

        They are made of elements whose values are known. If that loses much, or if the row comes again and again, it
        is taken whole, which adds variables: so a row makes few cuts, and the QP stays small.
        """
        signs, offsets = np.array(self.form.negative).T
        values = [(seen.high, seen.high_row) if sign > 0 else (seen.low, seen.low_row) for sign in signs]
        costs = [signs[side] * value[self.negative] + offsets[side] for side, (value, _) in enumerate(values)]
        side, short = np.nonzero(np.array(costs) > slack[self.negative] + tolerance)
        bag = self.negative[short]
        row = np.array([rows[self.negative] for _, rows in values])[side, short]
        codes, weights = self.problem.rows(row)
        sign = signs[side][:, None]
        source = np.where(sign > 0, measure.lower[codes], measure.upper[codes])
        loss = (sign * weights * (measure.values[codes] - measure.values[source])).sum(axis=1)
        excess = np.array(costs)[side, short] - slack[bag]
        key, known = 2 * row + side, np.sort(2 * self._cuts.row + self._cuts.side)
        again = np.searchsorted(known, key, "right") - np.searchsorted(known, key) >= REPEATS
        whole = (loss > 0) & ((loss > LOSS * excess) | again)
        return Cuts(bag, side, row, np.where(whole[:, None], codes, source), weights)

    def extend(self, cuts: Cuts) -> Ints:
        """Add cuts, and return the places of all that were given."""
        added: list[int] = []
        for i, key in enumerate(_keys(cuts)):
            if self._places.setdefault(key, len(self._places)) == len(self._cuts.bag) + len(added):
                added.append(i)
        if added:
            new = cuts.take(np.array(added))
            self._cuts = Cuts(*(np.concatenate([old, more]) for old, more in zip(self._cuts, new, strict=True)))
        return self.places(cuts)

    def places(self, cuts: Cuts) -> Ints:
        """Where in the set each cut is; -1 if it is not."""
        return np.array([self._places.get(key, -1) for key in _keys(cuts)], dtype=np.int64)

    def chosen(self, values: Floats, kept: Ints) -> Ints:
        """Places of the worst cut of each bag at `values`, and of those to be kept."""
        bag, side, _, codes, weights = self._cuts
        sign, offset = np.array(self.form.negative).T
        cost = sign[side] * np.einsum("ij,ij->i", weights, values[codes]) + offset[side]
        top = np.full(len(self.problem.labels), -np.inf)
        np.maximum.at(top, bag, cost)
        highest = np.flatnonzero(cost == top[bag])
        return np.union1d(highest[np.unique(bag[highest], return_index=True)[1]], kept)

    def solve(self, chosen: Ints, witnesses: Witnesses, order: Order, precision: float, near: Floats) -> Answer | None:
        """Minimise the sum over bags of w t^2 over element values v, t as large as the cuts of the bag make it.

        For a witness t is ``1 - sign * C``. A negative bag with one chosen cut has ``t = sign * C + offset``: both
        are squares of v. Only a bag with several cuts needs a variable t, bounded by each of them from below; near
        the minimum few bags do, so the QP is little larger than the number of elements.
        `near` is a measure that the minimum may be near to. None if the QP could not be solved.
        """
        problem, signs = self.problem, witnesses.sign
        bag, side, _, codes, weights = self._cuts.take(chosen)
        sign, offset = np.array(self.form.negative)[side].T
        several = np.bincount(bag, minlength=len(problem.labels)) > 1
        tied, free = several[bag], np.flatnonzero(several)
        share = np.concatenate([problem.weights[bag[~tied]], problem.weights[problem.labels]])
        deciding = Deciding(
            np.concatenate([codes, witnesses.codes]),
            np.concatenate([sign[:, None] * weights, -signs[:, None] * witnesses.weights]),
            np.concatenate([offset, np.ones(len(signs))]),
            np.append(np.flatnonzero(~tied), len(bag) + np.arange(len(signs))),
            share / self.scale,
            np.flatnonzero(tied),
            np.searchsorted(free, bag[tied]),
            problem.weights[free] / self.scale,
        )
        found = self._minimise(deciding, order, precision, near)
        if found is None:
            return None
        partial, cost, tops, bound = found
        cost = cost[: len(bag)]
        slack = np.full(len(problem.labels), np.inf)
        slack[bag[~tied]] = np.abs(cost[~tied])
        slack[free] = tops
        return Answer(partial, slack, self.scale * bound, chosen[cost >= slack[bag] - BINDING])

    def _minimise(
        self, rows: Deciding, order: Order, precision: float, near: Floats
    ) -> tuple[Floats, Floats, Floats, float] | None:
        """Return values, NaN for elements that no row uses; what the rows are there; slacks; and the lower bound."""
        lattice = self.problem.lattice
        lines = _Lines(lattice, rows.codes, rows.weights, rows.constant)
        n_v = len(lines.elements)
        program = Program(n_v + len(rows.slack_weight))
        program.below(
            -lines.constant[rows.tied],
            lines.triplets(rows.tied),
            (np.arange(len(rows.tied)), n_v + rows.slack, -1.0),
        )
        program.below_in_order(lattice, lines.elements, order.among(lines.elements))
        P, q, constant = lines.squares(rows.alone, rows.share)
        P = sp.block_diag([P, sp.diags_array(2 * rows.slack_weight)], format="csc")
        solved = program.solve(sp.csc_matrix(P), np.append(q, np.zeros(len(rows.slack_weight))), precision)
        if solved is None:
            return None
        x, bound = solved
        partial = np.full(lattice.size, np.nan)
        partial[lines.elements] = x[:n_v]
        return partial, lines.at(x[:n_v]), x[n_v:], bound + constant


def _keys(cuts: Cuts) -> list[bytes]:
    """What tells one cut from another; the bag follows from the row."""
    table = np.column_stack([cuts.row, cuts.side, cuts.codes])
    return [line.tobytes() for line in table]


class _Lines:
    """Rows as linear functions of the elements that they use, with a constant from those that are fixed."""

    def __init__(self, lattice: Lattice, codes: NDArray[np.int32], weights: Floats, constant: Floats) -> None:
        elements = np.setdiff1d(codes[weights != 0], list(lattice.fixed)).astype(np.int64)
        position = np.full(lattice.size, -1)
        position[elements] = np.arange(len(elements))
        used = (weights != 0) & (position[codes] >= 0)
        boundary = lattice.with_boundary(np.zeros(lattice.size))
        self.elements = elements
        self.constant = constant + (weights * boundary[codes]).sum(axis=1)
        pointers = np.append(0, np.cumsum(used.sum(axis=1)))
        self._matrix = sp.csr_array((weights[used], position[codes[used]], pointers), shape=(len(codes), len(elements)))

    def at(self, values: Floats) -> Floats:
        """Their values, given those of the elements."""
        return np.asarray(self._matrix @ values + self.constant)

    def triplets(self, which: Ints) -> tuple[Ints, Ints, Floats]:
        """Some of them as (row, column, weight)."""
        part = self._matrix[which].tocoo()
        return part.row, part.col, part.data

    def squares(self, which: Ints, share: Floats) -> tuple[sp.csc_array, Floats, float]:
        """The weighted sum of their squares as (P, q, constant) of x'Px/2 + q'x + constant, P upper triangular."""
        part, constant = self._matrix[which], self.constant[which]
        weighted = sp.diags_array(2 * share) @ part
        return sp.triu(part.T @ weighted, format="csc"), weighted.T @ constant, float(share @ constant**2)
