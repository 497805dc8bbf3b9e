"""The convex search: fix a witness for each positive bag, solve a QP, move the witnesses, repeat.

Not in the paper. With one instance, the witness, chosen for each positive bag, the objective is convex in the measure,
and its minimum is found exactly. J never rises from round to round, so the search ends where no other choice of best
instances improves it; several starts look for the best such point.
"""

import logging
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from bimichi._checks import check_integer, check_number
from bimichi._types import Floats
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.abilities import check_solver
from bimichi.learning.problem import Problem, Solution, Summed
from bimichi.learning.solvers.descent import Descent, begin, polish, solution_of, step, take_up_missing
from bimichi.learning.solvers.newton import solve_logistic
from bimichi.learning.solvers.snapping import snapped
from bimichi.learning.solvers.working_set import WorkingSet
from bimichi.learning.spaces.quadratic import POLISH, PRECISION

log = logging.getLogger(__name__)

GUESS_LIMIT = 3**6  # with more elements, fitting all instances would cost more than a few random starts


@dataclass(frozen=True)
class ConvexSolver:
    """Minimise by witnesses and quadratic programs (Clarabel).

    Parameters
    ----------
    n_starts : int, default=8
        How many measures to start from: the middle one, the one that fits all instances to the labels of their bags
        best in least squares (up to six sources of a bi-capacity), and random ones. A start that comes to witnesses
        that another has had ends there, so further starts are cheap. `mean` needs no start: it is one QP.
    max_rounds : int, default=100
        How often witnesses may move.
    tolerance : float, default=1e-7
        By how much a row outside the QP may exceed its bag's slack.

    Notes
    -----
    Variables are the elements that witnesses use, and few others; constraints are deciding rows, and the order of
    those elements where it matters. What the rest of the data and of the order would add is added when it is violated.
    This is exact for the given witnesses, and no QP grows with the 3^m elements: those cost O(m 3^m) a step.
    """

    needs: ClassVar[tuple[str, ...]] = ("convex form",)

    n_starts: int = 8
    max_rounds: int = 100
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        for name in ("n_starts", "max_rounds"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name))
        check_number(self.tolerance, "tolerance", 0.0, 1.0, exclusive=True)

    def solve(self, problem: Problem, rng: Generator, n_jobs: int | None = None, verbose: int = 0) -> Solution:
        """Return the best solution over all starts."""
        check_solver(self, problem.objective, problem.offers)
        form = problem.objective.convex
        if form == "logistic":
            return snapped(problem, solve_logistic(problem, quiet=verbose < 0))
        if form == "mean" or form is None:
            return solve_least_squares(problem)
        working = WorkingSet(problem, form)
        states = [begin(working, values) for values in self._starts(working, rng)]
        states = [take_up_missing(working, state) for state in states]
        with ThreadPoolExecutor(min(check_n_jobs(n_jobs), self.n_starts)) as pool:
            states = self._descend_all(working, states, pool.map)
            first = min(range(len(states)), key=lambda start: states[start].best_value)
            best = states[first]
            while not best.status:  # it met another start, which then ended higher: it continues alone
                (best,) = self._descend_all(working, [best], map)
        states[first] = best
        values = np.array([state.best_value for state in states])
        best = polish(working, best, self.tolerance)
        if verbose:
            log.info("J of each start: %s; the best ended %s after %d rounds", values, best.status, len(best.history))
        if best.status.startswith("the QP"):
            warnings.warn(f"The convex solver ended early: {best.status}. The result is valid.", stacklevel=2)
        return snapped(problem, solution_of(working, best, values))

    def quick(self) -> "ConvexSolver":
        """Return the solver with its first two starts alone, to compare problems before one is solved in earnest."""
        return replace(self, n_starts=min(2, self.n_starts))

    def _starts(self, working: WorkingSet, rng: Generator) -> list[Floats]:
        space = working.space
        starts = [space.middle()]
        if self.n_starts > 1 and space.size <= GUESS_LIMIT:
            starts.append(working.fitted())
        return starts + [space.sample(seed) for seed in rng.spawn(self.n_starts - len(starts))]

    def _descend_all(self, working: WorkingSet, states: list[Descent], parallel: Callable[..., Any]) -> list[Descent]:
        """Let all starts take one step at a time; one that meets the witnesses of another ends.

        What a step finds missing is added after all have taken it, so that the order of threads changes nothing.
        """
        states = list(states)
        owner: dict[bytes, int] = {}  # which start is done with these witnesses
        going = list(range(len(states)))
        while going:
            for start in going:
                if len(states[start].history) >= self.max_rounds:
                    states[start] = replace(states[start], status="reached max_rounds")
            going = [k for k in going if not states[k].status and owner.get(states[k].witnesses.key, k) == k]
            solved = [states[start].witnesses.key for start in going]
            stepped = list(parallel(lambda start: step(working, states[start], self.tolerance), going))
            for start, key, state in zip(going, solved, stepped, strict=True):
                if state.complete:  # before that, others may still try these witnesses
                    owner.setdefault(key, start)
                states[start] = take_up_missing(working, state)
            going = [start for start in going if not states[start].status]
        return states


def solve_least_squares(problem: Problem | Summed, completion: str = "lowest") -> Solution:
    """Minimise an objective that is one sum of squares by one QP; values without weight follow by `completion`."""
    first, second = problem.objective.parameters
    found = problem.space.least_squares(problem, (first, second), completion, (POLISH, PRECISION))
    status = "converged" if found else "the QP could not be solved"
    if not found:
        warnings.warn(f"The convex solver failed: {status}; a neutral measure is returned.", stacklevel=3)
    values, bound = found or (problem.space.middle(), -np.inf)
    value = problem.value(values)
    return snapped(problem, Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value)))
