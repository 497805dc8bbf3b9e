"""The rows that decide bags, as a quadratic program that grows as more of them are found."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.lattice import Lattice
from bimichi.objectives import ConvexForm
from bimichi.problem import Extremes, Problem
from bimichi.solvers.quadratic import Program, restricted_covers, variable_elements

__all__ = ["WorkingSet"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Entry = tuple[int, int, int]
Witnesses = tuple[Ints, Ints]

MARGIN = 0.02
"""A row so far below the worst of its bag is left out of the QP, until it proves missing."""


class WorkingSet:
    """Rows of negative bags that bound their slacks: (bag, side, row), side an index of ``form.negative``.

    All starts share one set, but each QP takes only the rows that matter near the measure at hand.
    """

    def __init__(self, problem: Problem, form: ConvexForm) -> None:
        self.problem, self.form = problem, form
        self.negative = np.flatnonzero(~problem.labels)
        self.scale = float(problem.weights.mean())  # QPs have weights near 1, whatever the user's are
        self._place: dict[Entry, int] = {}
        self._entries = np.empty((0, 3), np.int64)
        self._codes = np.empty((0, problem.lattice.n_sources), np.int32)
        self._weights = np.empty((0, problem.lattice.n_sources))
        self._covers: dict[bytes, tuple[Ints, Ints]] = {}

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

    def worst(self, seen: Extremes, slack: Floats, tolerance: float) -> list[Entry]:
        """The worst rows of bags whose slack is too small."""
        found = []
        for side, (sign, offset) in enumerate(self.form.negative):
            value, rows = (seen.high, seen.high_row) if sign > 0 else (seen.low, seen.low_row)
            short = sign * value + offset > slack + tolerance
            found += [(int(b), side, int(rows[b])) for b in self.negative[short[self.negative]]]
        return found

    def extend(self, entries: list[Entry]) -> list[int]:
        """Add rows, and return the places of all that were given."""
        new = [entry for entry in dict.fromkeys(entries) if entry not in self._place]
        if new:
            self._place.update({entry: len(self._entries) + k for k, entry in enumerate(new)})
            added = np.array(new, dtype=np.int64)
            codes, weights = self.problem.rows(added[:, 2])
            self._entries = np.concatenate([self._entries, added])
            self._codes = np.concatenate([self._codes, codes])
            self._weights = np.concatenate([self._weights, weights])
        return [self._place[entry] for entry in entries]

    def chosen(self, values: Floats, kept: set[int]) -> Ints:
        """Places of the rows near the worst of their bag at `values`, and of those to be kept."""
        bag, side, _ = self._entries.T
        sign, offset = np.array(self.form.negative).T
        cost = sign[side] * (self._weights * values[self._codes]).sum(axis=1) + offset[side]
        top = np.full(len(self.problem.labels), -np.inf)
        np.maximum.at(top, bag, cost)
        near = cost >= top[bag] - MARGIN
        near[list(kept)] = True
        return np.flatnonzero(near)

    def holds(self, entry: Entry, chosen: Ints) -> bool:
        """Whether a row is among the chosen ones."""
        place = self._place.get(entry, -1)
        at = np.searchsorted(chosen, place)
        return bool(at < len(chosen) and chosen[at] == place)

    def solve(self, chosen: Ints, witnesses: Witnesses, precision: float) -> tuple[Floats, Floats, float] | None:
        """Minimise sum w t^2 + sum w r^2 over element values v, slacks t of negative, residuals r of positive bags.

        Subject to ``sign * C + offset <= t`` for the chosen rows, ``r = 1 - sign * C`` for the witnesses, the
        order among the elements that these rows use, and their bounds.

        Returns
        -------
        partial, slack, bound
            The values (NaN for elements that no row uses), the slack of every bag, and a lower bound on J for
            these witnesses; None if the QP could not be solved.
        """
        problem, lattice = self.problem, self.problem.lattice
        witness_rows, signs = witnesses
        bag, side, _ = self._entries[chosen].T
        n_w, n_t, n_r = len(chosen), len(self.negative), len(witness_rows)
        codes, weights = problem.rows(witness_rows)
        codes, weights = np.concatenate([self._codes[chosen], codes]), np.concatenate([self._weights[chosen], weights])
        elements, index, column, weight, constant = _combinations(lattice, codes, weights)
        n_v = len(elements)
        ours = index < n_w  # triplets of chosen rows; the others are of witnesses

        program = Program(n_v + n_t + n_r)
        each = np.arange(n_r)
        program.equal(
            1 - signs * constant[n_w:],
            (index[~ours] - n_w, column[~ours], signs[index[~ours] - n_w] * weight[~ours]),
            (each, n_v + n_t + each, 1.0),
        )
        sign, offset = np.array(self.form.negative)[side].T
        program.below(
            -offset - sign * constant[:n_w],
            (index[ours], column[ours], sign[index[ours]] * weight[ours]),
            (np.arange(n_w), n_v + np.searchsorted(self.negative, bag), -1.0),
        )
        program.below_in_order(lattice, elements, self._covers_of(elements))
        bag_weight = np.concatenate([problem.weights[self.negative], problem.weights[problem.labels]])
        P = _diagonal(np.concatenate([np.zeros(n_v), 2 / self.scale * bag_weight]))
        solved = program.solve(P, np.zeros(n_v + n_t + n_r), precision)
        if solved is None:
            return None
        x, bound = solved
        partial = np.full(lattice.size, np.nan)
        partial[elements] = x[:n_v]
        slack = np.full(len(problem.labels), np.inf)
        slack[self.negative] = x[n_v : n_v + n_t]
        return partial, slack, self.scale * bound

    def _covers_of(self, elements: Ints) -> tuple[Ints, Ints]:
        """The order restricted to `elements`; remembered, since they seldom change."""
        key = elements.tobytes()
        if key not in self._covers:
            self._covers[key] = restricted_covers(self.problem.lattice, elements)
        return self._covers[key]


def _combinations(
    lattice: Lattice, codes: NDArray[np.int32], weights: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Rows as combinations of the elements that they use, and a constant from those that are fixed.

    Returns the elements, triplets (row, position among the elements, weight), and the constants.
    """
    elements = variable_elements(lattice, np.unique(codes[weights > 0]))
    position = np.full(lattice.size, -1)
    position[elements] = np.arange(len(elements))
    used = (weights > 0) & (position[codes] >= 0)
    constant = (weights * lattice.with_boundary(np.zeros(lattice.size))[codes]).sum(axis=1)
    return elements, np.nonzero(used)[0], position[codes[used]], weights[used], constant


def _diagonal(entries: Floats) -> sp.csc_matrix:
    n = len(entries)
    return sp.csc_matrix((entries, np.arange(n), np.arange(n + 1)), shape=(n, n))
