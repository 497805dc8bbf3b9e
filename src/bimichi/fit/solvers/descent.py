"""One start of the convex search: solve for the present witnesses and move them; then try others, bag by bag."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bimichi._types import Floats, Ints
from bimichi.fit.certificate import Certified
from bimichi.fit.problem import InMemory, Solution
from bimichi.fit.spaces.base import Order
from bimichi.fit.spaces.order import POLISH, PRECISION
from bimichi.fit.working_set import Answer, Cuts, Witnesses, WorkingSet
from bimichi.record import Status

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
