"""The rows that decide bags, as a quadratic program that grows as more of them are found."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.lattice import Lattice
from bimichi.objectives import ConvexForm
from bimichi.problem import Extremes, Problem
from bimichi.sampling import sample
from bimichi.solvers.completion import completed
from bimichi.solvers.least_squares import least_squares
from bimichi.solvers.quadratic import PRECISION, Program, restricted_covers, variable_elements

__all__ = ["Answer", "Deciding", "WorkingSet"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Witnesses = tuple[Ints, Ints]

BINDING = 1e-4
"""A row so near the slack of its bag may hold it up."""


class Answer(NamedTuple):
    """What the QP of a working set gave."""

    partial: Floats  # values, NaN for elements that no row uses
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
    """Rows of negative bags that bound their slacks: (bag, side, row), side an index of ``form.negative``.

    All starts share one set, but each QP takes only the rows that matter near the measure at hand. A single row and
    side of a negative bag must bound its term by its square, which holds if ``sign * C + offset`` cannot be below
    zero, or if the form has both signs.
    """

    def __init__(self, problem: Problem, form: ConvexForm) -> None:
        self.problem, self.form = problem, form
        self.negative = np.flatnonzero(~problem.labels)
        self.scale = float(problem.weights.mean())  # QPs have weights near 1, whatever the user's are
        self._entries = np.empty((0, 3), np.int64)
        self._codes, self._weights = problem.rows(np.empty(0, np.int64))
        self._order = np.empty(0, np.int64)  # of the entries, by row and side
        self._covers: dict[bytes, tuple[Ints, Ints]] = {}

    @property
    def size(self) -> int:
        """How many numbers the measure is made of."""
        return self.problem.lattice.size

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

    def completed(self, partial: Floats) -> Floats:
        """A valid measure of what the QP gave."""
        return completed(self.problem.lattice, partial, self.form.completion)

    def witnesses(self, seen: Extremes) -> Witnesses:
        """For each positive bag, its best row and the sign with which it speaks."""
        labels = self.problem.labels
        high, low = seen.high[labels], seen.low[labels]
        up = np.ones(len(high), dtype=bool) if self.form.positive == (1,) else high >= -low
        return np.where(up, seen.high_row[labels], seen.low_row[labels]), np.where(up, 1, -1)

    def value(self, seen: Extremes) -> float:
        """J, which the extremes of the bags decide."""
        labels = self.problem.labels
        sides = [sign * (seen.high if sign > 0 else seen.low) + offset for sign, offset in self.form.negative]
        best = np.max([sign * (seen.high if sign > 0 else seen.low) for sign in self.form.positive], axis=0)
        terms = np.where(labels, 1 - best, np.max(sides, axis=0)) ** 2
        return float(self.problem.weights @ terms)

    def worst(self, seen: Extremes, slack: Floats, tolerance: float) -> Ints:
        """The worst rows of bags whose slack is too small, as entries."""
        found = []
        for side, (sign, offset) in enumerate(self.form.negative):
            value, rows = (seen.high, seen.high_row) if sign > 0 else (seen.low, seen.low_row)
            short = self.negative[(sign * value + offset > slack + tolerance)[self.negative]]
            found.append(np.column_stack([short, np.full(len(short), side), rows[short]]))
        return np.concatenate(found)

    def extend(self, entries: Ints) -> Ints:
        """Add rows, and return the places of all that were given."""
        added = entries[self.places(entries) < 0]
        if len(added):
            codes, weights = self.problem.rows(added[:, 2])
            self._entries = np.concatenate([self._entries, added])
            self._codes = np.concatenate([self._codes, codes])
            self._weights = np.concatenate([self._weights, weights])
            self._order = np.argsort(_keys(self._entries))
        return self.places(entries)

    def places(self, entries: Ints) -> Ints:
        """Where in the set each entry is; -1 if it is not."""
        wanted, ours = _keys(entries), _keys(self._entries)[self._order]
        at = np.searchsorted(ours, wanted)
        known = np.append(ours, -1)[at] == wanted
        return np.where(known, np.append(self._order, -1)[at], -1)

    def chosen(self, values: Floats, kept: Ints) -> Ints:
        """Places of the worst row of each bag at `values`, and of those to be kept."""
        bag, side, _ = self._entries.T
        sign, offset = np.array(self.form.negative).T
        cost = sign[side] * np.einsum("ij,ij->i", self._weights, values[self._codes]) + offset[side]
        top = np.full(len(self.problem.labels), -np.inf)
        np.maximum.at(top, bag, cost)
        highest = np.flatnonzero(cost == top[bag])
        return np.union1d(highest[np.unique(bag[highest], return_index=True)[1]], kept)

    def solve(self, chosen: Ints, witnesses: Witnesses, precision: float, near: Floats) -> Answer | None:
        """Minimise the sum over bags of w t^2 over element values v, t as large as the rows of the bag make it.

        For a witness t is ``1 - sign * C``. A negative bag with one chosen row has ``t = sign * C + offset``: both
        are squares of v. Only a bag with several rows needs a variable t, bounded by each of them from below; near
        the minimum few bags do, so the QP is little larger than the number of elements.
        `near` is a measure that the minimum may be near to. None if the QP could not be solved.
        """
        problem = self.problem
        witness_rows, signs = witnesses
        bag, side, _ = self._entries[chosen].T
        sign, offset = np.array(self.form.negative)[side].T
        several = np.bincount(bag, minlength=len(problem.labels)) > 1
        tied, free = several[bag], np.flatnonzero(several)
        codes, weights = problem.rows(witness_rows)
        share = np.concatenate([problem.weights[bag[~tied]], problem.weights[problem.labels]])
        deciding = Deciding(
            np.concatenate([self._codes[chosen], codes]),
            np.concatenate([sign[:, None] * self._weights[chosen], -signs[:, None] * weights]),
            np.concatenate([offset, np.ones(len(signs))]),
            np.append(np.flatnonzero(~tied), len(bag) + np.arange(len(signs))),
            share / self.scale,
            np.flatnonzero(tied),
            np.searchsorted(free, bag[tied]),
            problem.weights[free] / self.scale,
        )
        found = self._minimise(deciding, precision, near)
        if found is None:
            return None
        partial, cost, tops, bound = found
        cost = cost[: len(bag)]
        slack = np.full(len(problem.labels), np.inf)
        slack[bag[~tied]] = np.abs(cost[~tied])
        slack[free] = tops
        return Answer(partial, slack, self.scale * bound, chosen[cost >= slack[bag] - BINDING])

    def _minimise(self, rows: Deciding, precision: float, near: Floats) -> tuple[Floats, Floats, Floats, float] | None:
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
        program.below_in_order(lattice, lines.elements, self._covers_of(lines.elements))
        P, q, constant = lines.squares(rows.alone, rows.share)
        P = sp.block_diag([P, sp.diags_array(2 * rows.slack_weight)], format="csc")
        solved = program.solve(sp.csc_matrix(P), np.append(q, np.zeros(len(rows.slack_weight))), precision)
        if solved is None:
            return None
        x, bound = solved
        partial = np.full(lattice.size, np.nan)
        partial[lines.elements] = x[:n_v]
        return partial, lines.at(x[:n_v]), x[n_v:], bound + constant

    def _covers_of(self, elements: Ints) -> tuple[Ints, Ints]:
        """The order restricted to `elements`; remembered, since they seldom change."""
        key = elements.tobytes()
        if key not in self._covers:
            self._covers[key] = restricted_covers(self.problem.lattice, elements)
        return self._covers[key]


def _keys(entries: Ints) -> Ints:
    """What tells one entry from another; the bag follows from the row."""
    return 2 * entries[:, 2] + entries[:, 1]


class _Lines:
    """Rows as linear functions of the elements that they use, with a constant from those that are fixed."""

    def __init__(self, lattice: Lattice, codes: NDArray[np.int32], weights: Floats, constant: Floats) -> None:
        elements = variable_elements(lattice, np.unique(codes[weights != 0]))
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
