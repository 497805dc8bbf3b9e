"""Objectives with a free scale: losses of slope * C + offset, by Newton steps that are quadratic programs.

Squared distances to labels take one such step. The log-loss is convex in h = slope * g and the offset; see
`bimichi.fit.spaces.lines`. Derivatives are those of all instances; of many, second derivatives are first taken
from some, which changes the way to the minimum, but not the minimum. The bound, which no measure, slope and offset can
be below, follows from the derivatives.
"""

import logging
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logit

from bimichi._progress import checkpoint
from bimichi._types import Floats
from bimichi.errors import warn
from bimichi.fit.problem import Problem, Solution
from bimichi.fit.spaces.lines import FLAT, SLOPE_LIMIT, Limits, Line, LineProgram
from bimichi.fit.spaces.order import POLISH, PRECISION
from bimichi.fit.spaces.sums import Gram, LossSums
from bimichi.link import Link
from bimichi.record import ENDINGS, Status

log = logging.getLogger(__name__)

ROUGH = 1 << 14  # how many instances the descent begins with alone
SAMPLE = 1 << 16  # how many instances second derivatives are taken from at first
GAP = 1e-6  # how near to the bound the loss must come, relative to that of the base rate alone
NEAR = 1e-6  # what a step promises, relative to the loss, after which programs are solved as precisely as can be
ROUNDING = 1e-14  # of the loss, which is a sum
NOTHING = 1e-13  # what a step promises, relative to the loss, that is not worth another
ROUNDS = 60
OFFSET_LIMIT = SLOPE_LIMIT + 1  # of squared distances to labels -1 and +1, beyond which no offset can be best
FINE = 1e-10  # the precision of programs that cannot be solved to the highest


@dataclass
class _Newton:
    """A descent: where it is, what no line is below, and the loss after each round."""

    problem: Problem
    program: LineProgram
    total: float  # weight of all instances, by which sums are divided
    offset_limit: float
    line: Line
    step: int  # second derivatives are those of every step-th instance
    bound: float = -np.inf
    history: list[float] = field(default_factory=list)

    def loss(self, line: Line, step: int = 1) -> LossSums:
        sums = self.problem.total("log_loss", values=line.values, offset=float(line.offset), step=step)
        return LossSums(*(part / self.total for part in sums))

    def descend(self, gap: float, sparse: bool = False) -> Status:
        """Take steps until the loss is within `gap` of the bound; with `sparse`, of the loss of some instances."""
        every, self.bound, before, promise, near = self.step if sparse else 1, -np.inf, np.inf, np.inf, False
        sums = self.loss(self.line, every)
        for _ in range(ROUNDS):
            checkpoint()
            form = self._curvature()
            share = 1.0 if sparse else 1 / self.step  # what is surely part of all curvature
            limits = Limits(self.offset_limit, share)
            self.bound = max(self.bound, self.program.bound(sums, form, self.line, limits))
            distance = sums.value - self.bound
            if distance <= gap:
                return Status.CONVERGED
            if distance > 0.5 * before:
                if sparse or (near and promise <= NOTHING * sums.value):
                    return Status.CONVERGED  # as far as numbers can tell; the bound says how far that is
                if self.step > 1:
                    self.step = max(1, self.step // 4)
                    form = self._curvature()
            before = distance
            near = not sparse and promise < NEAR * sums.value
            precisions = (POLISH, FINE, PRECISION) if near else (PRECISION, FINE)
            tries = (self.program.minimise(form, sums, self.line, precision) for precision in precisions)
            target = next((line for line in tries if line is not None), None)
            if target is None:
                return Status.UNSOLVED
            promise = -self._slope(sums, target)
            sums = self._search(sums, target, every)
            self.history += [] if sparse else [sums.value * self.total]
        return Status.MAX_ROUNDS

    def _curvature(self) -> Gram:
        line = self.line
        form = self.problem.total("loss_curvature", values=line.values, offset=float(line.offset), step=self.step)
        return Gram(*(part / self.total for part in form))

    def _slope(self, sums: LossSums, target: Line) -> float:
        """Return how quickly the loss falls at the start of the way to a target, per whole way."""
        there, here = target, self.line
        return float(sums.gradient @ (there.values - here.values) + sums.offset * (there.offset - here.offset))

    def _search(self, sums: LossSums, target: Line, every: int) -> LossSums:
        """Go to the target, or half of the way, and so on, until the loss falls by enough, rounding aside.

        Where a part of the way promises less than rounding hides, a shorter one would not differ from it.
        """
        slope, share = self._slope(sums, target), 1.0
        while share == 1 or -share * slope > NOTHING * sums.value:
            line = self.line.toward(target, share)
            there = self.loss(line, every)
            if there.value < sums.value + 1e-4 * share * min(slope, 0.0) + ROUNDING * sums.value:
                self.line = line
                return there
            share /= 2
        return sums


def solve_logistic(problem: Problem, quiet: bool = False) -> Solution:
    """Minimise the log-loss over measures, slopes and offsets; the solution has a link. `quiet`: without warnings."""
    space = problem.space
    nothing = Line(np.zeros(space.size), 0.0, 0.0)
    total, positive = problem.total("mass")
    rate = float(positive / total)
    odds, n = float(logit(rate)), problem.total("n_rows")
    start = nothing._replace(offset=odds)
    program = space.lines(problem.total("use") / total)
    newton = _Newton(problem, program, total, SLOPE_LIMIT + abs(odds), start, max(1, n // ROUGH))
    entropy = float(-rate * np.log(rate) - (1 - rate) * np.log1p(-rate))
    if newton.step > 1:
        newton.descend(1e-4 * entropy, sparse=True)
        newton.step = max(1, n // SAMPLE)
    status = newton.descend(GAP * entropy)
    if status is Status.UNSOLVED and not quiet:
        warn(
            f"The convex solver ended early: {ENDINGS[status]}. The result is valid.",
            code="solver-ended-early",
            stacklevel=4,
        )
    return _solution(newton, status, rate, quiet)


def solve_free_scale(problem: Problem) -> Solution:
    """Minimise the squared distances of slope * C + offset to the labels over all three: one QP, as it is quadratic."""
    space, total, targets = problem.space, float(problem.weights.sum()), problem.objective.parameters
    start = Line(np.zeros(space.size), 0.0, 0.0)

    def loss(line: Line) -> LossSums:
        sums = problem.total("squared_loss", values=line.values, offset=float(line.offset), targets=targets)
        return LossSums(*(part / total for part in sums))

    form = problem.total("square_curvature")
    program = space.lines(form.linear / total)
    form, sums = Gram(*(part / total for part in form)), loss(start)
    tries = (program.minimise(form, sums, start, precision) for precision in (POLISH, FINE, PRECISION))
    line = next((line for line in tries if line is not None), None)
    status = Status.UNSOLVED if line is None else Status.CONVERGED
    if line is None:
        warn(
            f"The convex solver failed: {ENDINGS[status]}; a neutral measure is returned.",
            code="solver-failed",
            stacklevel=4,
        )
        line = start
    flat = line.slope < FLAT
    values: Floats = space.middle() if flat else program.measure(line)
    link = Link(0.0 if flat else line.slope, float(line.offset))
    bound = program.bound(loss(line), form, line, Limits(OFFSET_LIMIT, None)) * total
    value = problem.value(values, link)
    return Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value), link=link)


def _solution(newton: _Newton, status: Status, rate: float, quiet: bool) -> Solution:
    line, problem = newton.line, newton.problem
    flat = line.slope < FLAT
    values: Floats = problem.space.middle() if flat else newton.program.measure(line)
    counts = problem.total("count_outputs", values=values)
    others, targets = (tuple((side / side.sum()).tolist()) for side in counts)
    link = Link(0.0 if flat else min(line.slope, SLOPE_LIMIT), float(line.offset), rate, (others, targets))
    if line.slope > 0.99 * SLOPE_LIMIT and not quiet:
        log.warning(
            "The slope of the log-odds has reached its limit of %g: the sources separate classes of the training data, "
            "at least in part, so that probabilities there are as good as 0 and 1. More varied data, or fewer terms "
            "(additivity=1), would help; sources of a narrow range need a scale.",
            SLOPE_LIMIT,
        )
    value = problem.value(values, link)
    history = np.minimum.accumulate([*newton.history, value])
    bound = min(newton.bound * newton.total, value)
    return Solution(values, value, status, len(history), history, lower_bound=bound, link=link)
