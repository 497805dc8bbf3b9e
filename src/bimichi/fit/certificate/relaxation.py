"""A lower bound of J over a part of all measures: one second-order cone program.

For each positive bag, the term of its best candidate is replaced by the perspective hull over its candidates: shares
that add up to 1, and for each candidate a copy of the values of the bag's elements that is scaled by its share. With
one share 1 and its copy the values themselves, the program has the value of J, so its minimum is no more than J's; rows
of negative bags that are left out only lower it.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bimichi._types import Floats, Ints
from bimichi.fit.certificate.candidates import Box, Candidates, Region
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces.base import Program
from bimichi.fit.working_set import WorkingSet

VIOLATED = 1e-6  # by how much a row must exceed the slack of its bag to be added
PRECISION = 1e-6  # of the programs; their bounds hold whatever it is


class NegativeRows(NamedTuple):
    """Rows of negative bags that a relaxation has, without repetition: bag, side (of the form) and row."""

    bag: Ints
    side: Ints
    row: Ints

    def with_rows(self, other: "NegativeRows") -> "NegativeRows":
        """Return these rows and those of the other that are new."""
        both = [np.concatenate(pair) for pair in zip(self, other, strict=True)]
        first = np.sort(np.unique(2 * both[2] + both[1], return_index=True)[1])
        return NegativeRows(*(part[first] for part in both))


class Part(NamedTuple):
    """A part of all measures: values within a box, and the candidates that each positive bag still has."""

    box: Box
    candidates: tuple[Ints, ...]


class Relaxed(NamedTuple):
    """The minimum of a relaxation."""

    bound: float
    values: Floats  # a measure near the minimum of the relaxation, valid and complete
    value: float  # its J
    missing: NegativeRows  # rows that exceed their slack there
    shortfall: float  # by how much J exceeds the bound because of them
    gaps: Floats  # of each positive bag: by how much its term exceeds that of the hull
    shares: tuple[Floats, ...]  # of its candidates or groups
    spread: Floats  # of each element: how much of the gaps comes from its copies' differing


class Relaxation:
    """The data of a problem as relaxations take them."""

    def __init__(self, working: WorkingSet, candidates: Candidates) -> None:
        problem = working.problem
        assert isinstance(problem, InMemory)
        self.working, self.problem, self.form = working, problem, working.form
        self.region: Region = candidates.region
        self.candidates = candidates
        self._weights = problem.weights / working.scale
        lattice = self.region.lattice
        self._most_slack = 1.0 + max(offset for _, offset in self.form.negative)
        self._most_term = (1.0 - lattice.low) ** 2

    def worst_rows(self, values: Floats, slack: Floats | None = None) -> NegativeRows:
        """Return the worst row of each negative bag and side at these values, if it exceeds the slack of its bag."""
        seen, negative = self.problem.extremes(values), self.working.negative
        rows = []
        for side, (sign, offset) in enumerate(self.form.negative):
            cost, row = (seen.high, seen.high_row) if sign > 0 else (-seen.low, seen.low_row)
            short = slack is None or cost[negative] + offset > slack[negative] + VIOLATED
            bag = negative[np.broadcast_to(short, negative.shape)]
            rows.append(NegativeRows(bag, np.full(len(bag), side), row[bag]))
        return NegativeRows(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))

    def solve(self, part: Part, rows: NegativeRows) -> Relaxed | None:
        """Relax J over a part of all measures; None if the program could not be solved."""
        groups = [self.candidates.grouped(ids) for ids in part.candidates]
        sign, offset = np.array(self.form.negative)[rows.side].T
        vectors, constants = self.region.vectors(*self.problem.rows(rows.row))
        lines, constant = sign[:, None] * vectors, sign * constants + offset
        used = (lines != 0).any(axis=0)
        for vectors, _ in groups:
            used |= (vectors != 0).any(axis=0)
        elements = np.flatnonzero(used)
        box = Box(part.box.low[elements], part.box.high[elements])
        hulls = [_Hull(self.region, part.box, vectors, constants) for vectors, constants in groups]
        program = _Layout(len(elements), rows, hulls)
        built = program.build(self, elements, box, lines[:, elements], constant)
        solved = built.solve_within(*program.costs, *program.limits(box, self._most_slack, self._most_term), PRECISION)
        if solved is None:
            return None
        x, bound = solved
        return self._read(part, program, elements, x, self.working.scale * (bound + program.fixed_cost))

    def weight_of_bags(self) -> tuple[Floats, Floats]:
        """Return the weights of negative bags by their number, and those of (merged) positive bags."""
        return self._weights, self.candidates.weights / self.working.scale

    def _read(self, part: Part, program: "_Layout", elements: Ints, x: Floats, bound: float) -> Relaxed:
        region = self.region
        partial = np.full(region.lattice.size, np.nan)
        partial[region.elements[elements]] = np.clip(
            x[: len(elements)], part.box.low[elements], part.box.high[elements]
        )
        values = self.problem.space.complete(partial, self.form.completion).values
        free = values[region.elements]
        slack = program.slacks(x, len(self.problem.labels))
        missing = self.worst_rows(values, slack)
        seen = self.problem.extremes(values)
        top = np.max([s * (seen.high if s > 0 else seen.low) + o for s, o in self.form.negative], axis=0)
        negative = self.working.negative
        over = np.maximum(top[negative] ** 2 - np.minimum(slack[negative], 9.0) ** 2, 0.0)
        weights = self.candidates.weights
        gaps, spread, shares = np.zeros(len(weights)), np.zeros(len(region.elements)), []
        for b, (ids, hull, own) in enumerate(zip(part.candidates, program.hulls, program.parts(x), strict=True)):
            true = (1 - self.candidates.values(ids, free).max()) ** 2
            gaps[b] = weights[b] * max(true - own.term(hull, free), 0.0)
            shares.append(own.shares)
            differ = np.abs(own.copies - own.shares[:, None] * free[hull.support]).sum(axis=0)
            if len(own.shares) > 1 and differ.sum() > 1e-12:
                spread[hull.support] += gaps[b] * differ / differ.sum()
        value = self.working.value(seen)
        shortfall = float(self.problem.weights[negative] @ over)
        return Relaxed(bound, values, value, missing, shortfall, gaps, tuple(shares), spread)


class _Hull:
    """The candidates of one positive bag, over the elements whose values are not fixed by the box."""

    def __init__(self, region: Region, box: Box, vectors: Floats, constants: Floats) -> None:
        used = (vectors != 0).any(axis=0)
        free = used & (box.high > box.low)
        held = np.flatnonzero(used & ~free)
        self.support = np.flatnonzero(free)
        self.all_vectors, self.all_constants = vectors, constants
        self.vectors = vectors[:, self.support]
        self.constants = constants + vectors[:, held] @ box.low[held]
        self.box = Box(box.low[self.support], box.high[self.support])
        self.pairs = region.pairs(self.support)
        self.width = len(self.support) + 2  # share, copies, term

    def __len__(self) -> int:
        return len(self.constants)


class _OwnPart(NamedTuple):
    shares: Floats
    copies: Floats
    terms: Floats

    def term(self, hull: _Hull, free: Floats) -> float:
        """Return what the bag costs in the relaxation."""
        if len(hull) == 1:
            return float((1 - (hull.all_vectors[0] @ free + hull.all_constants[0])) ** 2)
        return float(self.terms.sum())


class _Layout:
    """Places of the variables of a relaxation: elements, slacks of negative bags with several rows, hulls."""

    def __init__(self, n_elements: int, rows: NegativeRows, hulls: list[_Hull]) -> None:
        self.n_elements, self.rows, self.hulls = n_elements, rows, hulls
        count = np.bincount(rows.bag) if len(rows.bag) else np.zeros(0, int)
        self.tied = count[rows.bag] > 1
        self.slack_bags = np.flatnonzero(count > 1)
        sizes = [len(hull) * hull.width if len(hull) > 1 else 0 for hull in hulls]
        self.starts = n_elements + len(self.slack_bags) + np.append(0, np.cumsum(sizes))
        self.n_variables = int(self.starts[-1])

    def build(self, data: Relaxation, elements: Ints, box: Box, lines: Floats, constant: Floats) -> Program:
        """Return the program, and set its costs."""
        negative_weights, positive_weights = data.weight_of_bags()
        tied, n = self.tied, self.n_elements
        program = Program(self.n_variables)
        column = np.full(len(data.region.elements), -1)
        column[elements] = np.arange(n)
        open_hulls = [(b, hull) for b, hull in enumerate(self.hulls) if len(hull) > 1]
        for b, hull in open_hulls:
            _add_sums(program, self.starts[b], hull, column)
        slack = np.searchsorted(self.slack_bags, self.rows.bag[tied])
        some = sp.coo_array(lines[tied])
        program.below(-constant[tied], (some.row, some.col, some.data), (np.arange(tied.sum()), n + slack, -1.0))
        _add_order(program, data.region.pairs(elements), box, np.zeros(1, int), None)
        for b, hull in open_hulls:
            first = self.starts[b] + np.arange(len(hull)) * hull.width
            program.below(np.zeros(len(hull)), (np.arange(len(hull)), first, -1.0))
            _add_order(program, hull.pairs, hull.box, first + 1, first)
        for b, hull in open_hulls:
            _add_cones(program, self.starts[b], hull)
        single = [(b, hull) for b, hull in enumerate(self.hulls) if len(hull) == 1]
        alone = np.concatenate([lines[~tied], *(-hull.all_vectors[:, elements] for _, hull in single)])
        share = np.concatenate([negative_weights[self.rows.bag[~tied]], positive_weights[[b for b, _ in single]]])
        offset = np.concatenate([constant[~tied], *(1 - hull.all_constants for _, hull in single)])
        self._alone = sp.csr_array(alone)
        weighted = sp.diags_array(2 * share) @ self._alone
        q = np.zeros(self.n_variables)
        q[:n] = weighted.T @ offset
        for b, hull in open_hulls:
            q[self.starts[b] + np.arange(len(hull)) * hull.width + hull.width - 1] = positive_weights[b]
        diagonal = np.zeros(self.n_variables - n)
        diagonal[: len(self.slack_bags)] = 2 * negative_weights[self.slack_bags]
        P = sp.block_diag([sp.triu(self._alone.T @ weighted), sp.diags_array(diagonal)], format="csc")
        self.costs = (sp.csc_matrix(P), q)
        self.fixed_cost = float(share @ offset**2)
        self._single = (self.rows.bag[~tied], lines[~tied], constant[~tied])
        return program

    def limits(self, box: Box, most_slack: float, most_term: float) -> tuple[Floats, Floats]:
        """Return where all variables lie at some minimum."""
        low, high = np.zeros(self.n_variables), np.ones(self.n_variables)
        n = self.n_elements
        low[:n], high[:n] = box
        high[n : n + len(self.slack_bags)] = most_slack
        for start, hull in zip(self.starts[:-1], self.hulls, strict=True):
            if len(hull) > 1:
                block = start + np.arange(len(hull) * hull.width).reshape(len(hull), hull.width)
                low[block[:, 1:-1]], high[block[:, 1:-1]] = np.minimum(hull.box.low, 0), np.maximum(hull.box.high, 0)
                high[block[:, -1]] = most_term
        return low, high

    def slacks(self, x: Floats, n_bags: int) -> Floats:
        """Return the slack of every bag, infinity for those without rows."""
        slack = np.full(n_bags, np.inf)
        bag, lines, constant = self._single
        slack[bag] = np.abs(lines @ x[: self.n_elements] + constant)
        slack[self.slack_bags] = x[self.n_elements : self.n_elements + len(self.slack_bags)]
        return slack

    def parts(self, x: Floats) -> list[_OwnPart]:
        """Return shares, copies and terms of every hull; a single candidate has all of the share."""
        parts = []
        for start, hull in zip(self.starts[:-1], self.hulls, strict=True):
            if len(hull) == 1:
                parts.append(_OwnPart(np.ones(1), np.zeros((1, len(hull.support))), np.zeros(1)))
                continue
            block = x[start : start + len(hull) * hull.width].reshape(len(hull), hull.width)
            parts.append(_OwnPart(np.maximum(block[:, 0], 0.0), block[:, 1:-1], block[:, -1]))
        return parts


def _add_sums(program: Program, start: int, hull: _Hull, column: Ints) -> None:
    """Shares add up to 1, and copies to the values."""
    m, k = len(hull), len(hull.support)
    first = start + np.arange(m) * hull.width
    program.equal(np.ones(1), (np.zeros(m, int), first, 1.0))
    index = np.arange(k)
    copies = (first[:, None] + 1 + index).ravel()
    program.equal(np.zeros(k), (index, column[hull.support], -1.0), (np.tile(index, m), copies, 1.0))


def _add_order(program: Program, pairs: tuple[Ints, Ints], box: Box, firsts: Ints, shares: Ints | None) -> None:
    """Values from each of the columns `firsts` on are in order, and within the box, scaled by their share if given."""
    lower, upper = pairs
    m = len(firsts)
    rows = np.arange(m * len(lower))
    at = np.repeat(firsts, len(lower))
    program.below(np.zeros(len(rows)), (rows, at + np.tile(lower, m), 1.0), (rows, at + np.tile(upper, m), -1.0))
    floor, ceiling = np.ones(len(box.low), dtype=bool), np.ones(len(box.low), dtype=bool)
    floor[upper[box.low[lower] >= box.low[upper]]] = False  # it follows from the order
    ceiling[lower[box.high[upper] <= box.high[lower]]] = False
    for bound, side, needed in ((box.low, -1.0, floor), (box.high, 1.0, ceiling)):
        which = np.flatnonzero(needed)
        rows = np.arange(m * len(which))
        columns = np.repeat(firsts, len(which)) + np.tile(which, m)
        limit = np.tile(side * bound[which], m)
        if shares is None:
            program.below(limit, (rows, columns, side))
        else:
            program.below(np.zeros(len(rows)), (rows, columns, side), (rows, np.repeat(shares, len(which)), -limit))


def _add_cones(program: Program, start: int, hull: _Hull) -> None:
    """``term * share >= (share - sign * C(copy))^2`` for each candidate."""
    m = len(hull)
    share = start + np.arange(m) * hull.width
    term = share + hull.width - 1
    first = 3 * np.arange(m)
    candidate, element = np.nonzero(hull.vectors)
    program.in_cones(
        (first, term, 1.0),
        (first, share, 1.0),
        (first + 1, term, 1.0),
        (first + 1, share, -1.0),
        (first + 2, share, 2 * (1 - hull.constants)),
        (first[candidate] + 2, share[candidate] + 1 + element, -2 * hull.vectors[candidate, element]),
    )


def all_measures(region: Region, candidates: Candidates) -> Part:
    """Return the part that leaves nothing out."""
    return Part(region.box, tuple(candidates.within(region.box, ids) for ids in candidates.of_bags))
