"""The rows that decide bags, as a quadratic program that grows as more of them are found."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Codes, Floats, Ints
from bimichi.fit.objectives import ConvexForm
from bimichi.fit.problem import Extremes, Problem
from bimichi.fit.spaces.base import PRECISION, Completion, Order, QuadraticRows

LOSS = 0.5  # which share of its excess a cut may lose by using fewer elements
REPEATS = 4  # after so many cuts of the same row it is taken whole: fewer make large programs, more make many
BINDING = 1e-4  # a row so near the slack of its bag may hold it up


class Witnesses(NamedTuple):
    """For each positive bag, its best row, the sign of its integral that counts, and the linear form of the row."""

    row: Ints
    sign: Ints
    codes: Codes
    weights: Floats

    @property
    def used(self) -> Codes:
        """The codes to which they give weight."""
        return np.asarray(self.codes[self.weights != 0])

    @property
    def key(self) -> bytes:
        """Return what distinguishes one choice of witnesses from another."""
        return self.row.tobytes() + self.sign.tobytes()


class Cuts(NamedTuple):
    """Lower bounds of slacks: of each, its bag, its side (an index of ``form.negative``), its row, its terms.

    The codes are those of the row, or of elements below them (above, if the sign of the side is -1). A monotone measure
    has no larger value there, so a cut is always valid; it is tight where its elements have the values of the row's.
    """

    bag: Ints
    side: Ints
    row: Ints
    codes: Codes
    weights: Floats

    def take(self, which: NDArray[Any]) -> "Cuts":
        """Some of them."""
        return Cuts(*(part[which] for part in self))


class Answer(NamedTuple):
    """The solution of the QP of a working set."""

    partial: Floats  # values, NaN for elements that are no variables
    slack: Floats  # of every bag
    bound: float  # no measure has a smaller J with these witnesses
    binding: Ints  # places of the rows that hold slacks up; without the others the QP has the same minimum


class WorkingSet:
    """Cuts of negative bags, and the order of the elements that they use, as far as both were found to matter.

    All starts share one set, but each QP takes only the cuts that matter near the present measure. The square of a
    single cut must bound the term of its negative bag: ``sign * C + offset`` is never negative, or the form has both
    signs.

    Where the completion is the lowest, elements that no witness uses need not be variables: no bag gains by a larger
    value there, so each has the value of the largest witness element below it, and cuts are made of those alone.
    """

    def __init__(self, problem: Problem, form: ConvexForm) -> None:
        self.problem, self.form, self.space = problem, form, problem.space
        self.order: Order = self.space.order()
        self.negative = np.flatnonzero(~problem.labels)
        self.scale = float(problem.weights.mean())  # QPs have weights near 1, whatever the user's are
        none = np.empty(0, np.int64)
        self._cuts = Cuts(none, none, none, *problem.rows(none))
        self._places: dict[bytes, int] = {}

    def fitted(self) -> Floats:
        """The measure that fits all instances to the labels of their bags best."""
        targets = (-self.form.negative[0][1], 1.0)
        minimum = self.space.least_squares(self.problem, targets, self.form.completion, (PRECISION,))
        return minimum[0] if minimum else self.space.middle()

    def witnesses(self, seen: Extremes, signs: Ints | None = None) -> Witnesses:
        """For each positive bag, its best row and the sign of its integral that counts; `signs` if given."""
        labels = self.problem.labels
        high, low = seen.high[labels], seen.low[labels]
        up = np.ones(len(high), dtype=bool) if self.form.positive == (1,) else high >= -low
        up = up if signs is None else signs > 0
        rows = np.where(up, seen.high_row[labels], seen.low_row[labels])
        return Witnesses(rows, np.where(up, 1, -1), *self.problem.rows(rows))

    def signs(self, values: Floats) -> Ints:
        """For each positive bag, the pole that it is nearer to at these values."""
        return self.witnesses(self.problem.extremes(values)).sign

    def value(self, seen: Extremes) -> float:
        """J, which the extremes of the bags decide."""
        labels = self.problem.labels
        sides = [sign * (seen.high if sign > 0 else seen.low) + offset for sign, offset in self.form.negative]
        best = np.max([sign * (seen.high if sign > 0 else seen.low) for sign in self.form.positive], axis=0)
        terms = np.where(labels, 1 - best, np.max(sides, axis=0)) ** 2
        return float(self.problem.weights @ terms)

    def completed(self, partial: Floats, witnesses: Witnesses) -> Completion:
        """The measure that follows from the values of variables."""
        if self.form.completion == "lowest":
            partial = self.space.known_at(partial, witnesses.used)
        return self.space.complete(partial, self.form.completion)

    def worst(self, seen: Extremes, slack: Floats, tolerance: float, measure: Completion) -> Cuts:
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
        key, present = 2 * row + side, np.sort(2 * self._cuts.row + self._cuts.side)
        again = np.searchsorted(present, key, "right") - np.searchsorted(present, key) >= REPEATS
        whole = (loss > 0) & ((loss > LOSS * excess) | again)
        return Cuts(bag, side, row, np.where(whole[:, None], codes, source), weights)

    def extend(self, cuts: Cuts, order: Order) -> Ints:
        """Add cuts and order, and return the places of all cuts that were given."""
        self.order = self.order.joined(order)
        added: list[int] = []
        for i, key in enumerate(_keys(cuts)):
            if self._places.setdefault(key, len(self._places)) == len(self._cuts.bag) + len(added):
                added.append(i)
        if added:
            new = cuts.take(np.array(added))
            self._cuts = Cuts(*(np.concatenate([old, more]) for old, more in zip(self._cuts, new, strict=True)))
        return self.places(cuts)

    def places(self, cuts: Cuts) -> Ints:
        """Return where in the set each cut is; -1 if it is not."""
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
        rows = QuadraticRows(
            np.concatenate([codes, witnesses.codes]),
            np.concatenate([sign[:, None] * weights, -signs[:, None] * witnesses.weights]),
            np.concatenate([offset, np.ones(len(signs))]),
            np.append(np.flatnonzero(~tied), len(bag) + np.arange(len(signs))),
            share / self.scale,
            np.flatnonzero(tied),
            np.searchsorted(free, bag[tied]),
            problem.weights[free] / self.scale,
        )
        minimum = self.space.minimise(rows, order, precision, near)
        if minimum is None:
            return None
        cost = minimum.costs[: len(bag)]
        slack = np.full(len(problem.labels), np.inf)
        slack[bag[~tied]] = np.abs(cost[~tied])
        slack[free] = minimum.slacks
        return Answer(minimum.values, slack, self.scale * minimum.bound, chosen[cost >= slack[bag] - BINDING])


def _keys(cuts: Cuts) -> list[bytes]:
    """Return what distinguishes one cut from another; the bag follows from the row."""
    table = np.column_stack([cuts.row, cuts.side, cuts.codes])
    return [line.tobytes() for line in table]
