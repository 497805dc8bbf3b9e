"""After convergence: other witnesses for single bags, each tried by as much of a descent as its bound is worth."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bimichi.learning.problem import InMemory
from bimichi.learning.solvers.descent import RISE, Descent, step, take_up_missing
from bimichi.learning.solvers.working_set import Witnesses, WorkingSet

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
    if not isinstance(problem, InMemory) or best.status != "converged":
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
    state = replace(best, witnesses=witnesses, complete=False, reached=-np.inf, status="")
    enough = best.best_value - RISE * (working.scale + best.best_value)
    n_programs = 0
    while not state.status:
        state = take_up_missing(working, step(working, state, tolerance))
        n_programs += 1
        if state.best_value >= enough and state.reached >= enough:
            return best, n_programs
        if not state.status and len(state.history) >= max_rounds + len(best.history):
            state = replace(state, status="reached max_rounds")
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
