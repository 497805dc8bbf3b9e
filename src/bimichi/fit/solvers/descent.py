"""Searches of the convex solver: a descent from witness to witness, and Newton's method for a free scale.

One start of the descent solves for the present witnesses and moves them, then tries others, bag by bag.

With a free scale, losses of slope * C + offset are minimised by Newton steps that are quadratic programs. Squared
distances to labels take one such step. The log-loss is convex in h = slope * g and the offset; see
`bimichi.fit.spaces.lines`. Derivatives are those of all instances; of many, second derivatives are first taken
from some, which changes the way to the minimum, but not the minimum. The bound, which no measure, slope and offset can
be below, follows from the derivatives.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logit

from bimichi._progress import checkpoint
from bimichi._types import Floats, Ints
from bimichi.errors import warn
from bimichi.fit.certificate import Certified
from bimichi.fit.problem import InMemory, Problem, Solution
from bimichi.fit.spaces.base import POLISH, PRECISION, Order
from bimichi.fit.spaces.lines import FLAT, SLOPE_LIMIT, Limits, Line, LineProgram
from bimichi.fit.spaces.sums import Gram, LossSums
from bimichi.fit.working_set import Answer, Cuts, Witnesses, WorkingSet
from bimichi.link import Link
from bimichi.record import ENDINGS, Status

RISE = 1e-9  # what is less, relative to J, may be rounding


@dataclass(frozen=True, eq=False)
class Descent:
    """The state of one start."""

    values: Floats
    best: Floats  # the values with the least J so far
    best_value: float
    witnesses: Witnesses  # for which the next QP is solved
    kept: Ints  # places of cuts that the next QP has in any case
    missing: Cuts  # what the last step found to be missing from its QP
    order: Order  # that of the last QP, with what its solution violated
    complete: bool = False  # whether the last step found nothing missing, neither cuts nor order
    bound: float = -np.inf  # no measure has a smaller J with the witnesses of the last complete step
    reached: float = -np.inf  # the highest minimum of a QP with the present witnesses
    history: tuple[float, ...] = ()  # J whenever it fell
    status: Status | None = None  # None while it goes on


def begin(working: WorkingSet, values: Floats, signs: Ints | None = None) -> Descent:
    """Start from these values; `signs`, one per positive bag, say which of its two extremes is its first witness."""
    seen = working.problem.extremes(values)
    witnesses = working.witnesses(seen, signs)
    measure = working.completed(working.space.known_at(values, witnesses.used), witnesses)
    missing = working.worst(seen, np.full(len(working.problem.labels), -np.inf), 0.0, measure)
    return Descent(values, values, working.value(seen), witnesses, np.empty(0, np.int64), missing, working.order)


def step(working: WorkingSet, state: Descent, tolerance: float, precision: float = PRECISION) -> Descent:
    """Solve the QP of the working set, which is not changed, and move the witnesses if J fell."""
    chosen = working.chosen(state.values, state.kept)
    answer = working.solve(chosen, state.witnesses, working.order, precision, state.values)
    if answer is None:
        nothing = state.missing.take(np.empty(0, np.int64))
        return replace(state, order=working.order, missing=nothing, complete=False, status=Status.UNSOLVED)
    order, violated = working.order.with_violated(answer.partial, tolerance)
    measure = working.completed(answer.partial, state.witnesses)
    seen = working.problem.extremes(measure.values)
    value = working.value(seen)
    worst = working.worst(seen, answer.slack, tolerance, measure)
    missing = worst.take(~np.isin(working.places(worst), chosen))
    complete = not len(missing.bag) and not violated
    gained = value < state.best_value - RISE * (working.scale + value)
    best = (measure.values, value) if value <= state.best_value else (state.best, state.best_value)
    moved = working.witnesses(seen)
    ended = complete and (moved.key == state.witnesses.key or not gained)
    reached = max(state.reached, answer.bound)
    return Descent(
        measure.values,
        *best,
        moved if gained else state.witnesses,  # also when rows are missing: better witnesses make a better next QP
        _kept(state, answer),
        missing,
        order,
        complete,
        answer.bound if complete else state.bound,
        -np.inf if gained else reached,
        (*state.history, value) if gained else state.history,
        Status.CONVERGED if ended else None,
    )


def _kept(state: Descent, answer: Answer) -> Ints:
    """Forget rows that hold no slack up, but only when the QP's minimum reaches a new high with these witnesses.

    That happens finitely often, so rows do not come and go for ever.
    """
    rose = answer.bound > state.reached + RISE * abs(answer.bound)
    return answer.binding if rose else np.union1d(state.kept, answer.binding)


def take_up_missing(working: WorkingSet, state: Descent) -> Descent:
    """Add what the last step found missing to the working set, and keep it from now on."""
    return replace(state, kept=np.union1d(state.kept, working.extend(state.missing, state.order)))


def descend(working: WorkingSet, state: Descent, tolerance: float, max_rounds: int) -> Descent:
    """Let one start go on until it ends."""
    while not state.status:
        state = take_up_missing(working, step(working, state, tolerance))
        if not state.status and len(state.history) >= max_rounds:
            state = replace(state, status=Status.MAX_ROUNDS)
    return state


def polish(working: WorkingSet, state: Descent, tolerance: float) -> Descent:
    """Solve the last QP once more, as precisely as can be; what trouble there is then does not matter."""
    status, history = state.status, state.history
    going = status is Status.CONVERGED and working.space.polishes
    while going:
        state = take_up_missing(working, step(working, replace(state, status=None), tolerance, POLISH))
        going = not state.complete and not state.status
    return replace(state, status=status, history=history)


def solution_of(working: WorkingSet, state: Descent, starts: Floats, proof: Certified | None = None) -> Solution:
    """Return what to report of the best of all starts, whose J are `starts`, and of the proof, if there is one."""
    assert state.status is not None  # every start ends
    witnesses = working.problem.instances(state.witnesses.row)
    bound = min(state.bound, state.best_value) if state.status is Status.CONVERGED else None
    history = np.array(state.history or [state.best_value])
    solution = Solution(state.best, state.best_value, state.status, len(history), history, witnesses, bound, starts)
    if proof is None:
        return solution
    return replace(
        solution,
        global_bound=max(min(proof.bound, state.best_value), 0.0),  # J is a sum of squares
        n_nodes=proof.n_nodes,
        certificate=proof.certificate,
    )


FEW = 64  # rows of positive bags up to which all moves are tried, if values are few, too: QPs are quick then
FEW_VALUES = 3**4
MANY_MOVES = 1000  # how many programs that may take at most


def improve_by_moves(working: WorkingSet, best: Descent, tolerance: float, max_rounds: int, budget: int) -> Descent:
    """Try another row, or the other sign, as the witness of one bag at a time, until none of them lowers J.

    The minimum of the QP with the other witness is a lower bound; if that is not below the J to beat, the move is
    rejected at once. With many rows, it ends after `budget` QPs; the most promising moves come first: of all bags the
    second best row, then the third, and so on.
    """
    problem = working.problem
    if not isinstance(problem, InMemory) or best.status is not Status.CONVERGED:
        return best
    options = _Options(working, problem)
    if len(options.rows) <= FEW and working.space.size <= FEW_VALUES:
        budget = MANY_MOVES
    tried = {best.witnesses.key}
    moves = options.moves(best)
    while budget > 0:
        witnesses = next(moves, None)
        if witnesses is None:
            return best
        if witnesses.key in tried:
            continue
        tried.add(witnesses.key)
        trial, n_programs = _trial(working, best, witnesses, tolerance, max_rounds)
        budget -= n_programs
        if trial.best_value < best.best_value - RISE * (working.scale + best.best_value):
            best, moves = trial, options.moves(trial)
    return best


def _trial(
    working: WorkingSet, best: Descent, witnesses: Witnesses, tolerance: float, max_rounds: int
) -> tuple[Descent, int]:
    """Descend with other witnesses until J is below the best or cannot be; and how many programs that took."""
    state = replace(best, witnesses=witnesses, complete=False, reached=-np.inf, status=None)
    enough = best.best_value - RISE * (working.scale + best.best_value)
    n_programs = 0
    while not state.status:
        state = take_up_missing(working, step(working, state, tolerance))
        n_programs += 1
        if state.best_value >= enough and state.reached >= enough:
            return best, n_programs
        if not state.status and len(state.history) >= max_rounds + len(best.history):
            state = replace(state, status=Status.MAX_ROUNDS)
    return state, n_programs


class _Options:
    """All rows of positive bags, with every sign that counts."""

    def __init__(self, working: WorkingSet, problem: InMemory) -> None:
        positive = np.flatnonzero(problem.labels)
        starts, ends = problem.bags.offsets[positive], problem.bags.offsets[positive + 1]
        self._signs = np.array(working.form.positive)
        self.rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        self._bag = np.repeat(np.arange(len(positive)), ends - starts)
        self._codes, self._weights = problem.rows(self.rows)

    def moves(self, state: Descent) -> Iterator[Witnesses]:
        """Yield the witnesses of a state with one of them replaced; near the best of its bag first."""
        values = (self._weights * state.best[self._codes]).sum(axis=1)
        scores = np.concatenate([sign * values for sign in self._signs])
        bag = np.tile(self._bag, len(self._signs))
        order = np.lexsort((-scores, bag))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(bag[order], bag[order])
        cost = np.full(self._bag.max() + 1, -np.inf)
        np.maximum.at(cost, bag, scores)
        for at in np.lexsort((cost[bag], rank)):  # of one rank, bags that are fit worst first
            yield self._replaced(state.witnesses, int(at), int(bag[at]))

    def _replaced(self, witnesses: Witnesses, at: int, bag: int) -> Witnesses:
        row, sign = at % len(self.rows), self._signs[at // len(self.rows)]
        rows, signs = witnesses.row.copy(), witnesses.sign.copy()
        codes, weights = witnesses.codes.copy(), witnesses.weights.copy()
        rows[bag], signs[bag], codes[bag], weights[bag] = self.rows[row], sign, self._codes[row], self._weights[row]
        return Witnesses(rows, signs, codes, weights)


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
