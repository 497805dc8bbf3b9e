"""The convex search: fix a witness for each positive bag, solve a QP, move the witnesses, repeat.

Not in the paper. With one instance chosen to speak for each positive bag, the objective is convex in the measure,
and its minimum is found exactly. From one such round to the next J never rises, so a few rounds end in a point
that no choice of other best instances improves; several starts look for the best such point.
"""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.problem import Problem, Solution
from bimichi.learning.solvers.least_squares import solve_least_squares
from bimichi.learning.solvers.quadratic import POLISH, PRECISION
from bimichi.learning.solvers.term_working_set import TermWorkingSet, solve_least_squares_terms
from bimichi.learning.solvers.working_set import Answer, WorkingSet
from bimichi.learning.term_problem import TermProblem

__all__ = ["ConvexSolver"]

Floats = NDArray[np.float64]

log = logging.getLogger(__name__)

GUESS_LIMIT = 3**6
"""With more elements, fitting all instances would cost more than a few random starts."""

RISE = 1e-9
"""What is less, relative to J, may be rounding."""


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

    n_starts: int = 8
    max_rounds: int = 100
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        for name in ("n_starts", "max_rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidInputError(f"{name} must be a positive whole number, got {value!r}.")
            object.__setattr__(self, name, int(value))
        if not isinstance(self.tolerance, float | int) or not 0 < self.tolerance < 1:
            raise InvalidInputError(f"tolerance must lie between 0 and 1, got {self.tolerance!r}.")

    def solve(
        self, problem: Problem | TermProblem, rng: np.random.Generator, n_jobs: int | None = None, verbose: int = 0
    ) -> Solution:
        """Return the best solution over all starts; of a problem with terms, its values are terms."""
        form = problem.objective.convex
        if form is None:
            raise InvalidInputError(
                f"The convex solver cannot minimise {problem.objective.name!r}: it has no convex form. "
                "Use solver='evolutionary'."
            )
        if form == "mean":
            return (
                solve_least_squares_terms(problem) if isinstance(problem, TermProblem) else solve_least_squares(problem)
            )
        working = TermWorkingSet(problem, form) if isinstance(problem, TermProblem) else WorkingSet(problem, form)
        descents = [_Descent(working, values) for values in self._starts(working, rng)]
        for descent in descents:
            descent.take_up_missing()
        with ThreadPoolExecutor(min(check_n_jobs(n_jobs), self.n_starts)) as pool:
            self._descend_all(descents, pool.map)
            best = min(descents, key=lambda descent: descent.best_value)
            while not best.status:  # it met another, which then ended higher: let it go on alone
                self._descend_all([best], map)
        values = np.array([descent.best_value for descent in descents])
        best.polish(self.tolerance)
        if verbose:
            log.info("J of each start: %s; the best ended %s after %d rounds", values, best.status, len(best.history))
        if best.status.startswith("the QP"):
            warnings.warn(f"The convex solver ended early: {best.status}. The result is valid.", stacklevel=2)
        return best.solution(values)

    def quick(self) -> "ConvexSolver":
        """Return the solver with its first two starts alone, to compare problems before one is solved in earnest."""
        return replace(self, n_starts=min(2, self.n_starts))

    def _starts(self, working: WorkingSet, rng: np.random.Generator) -> list[Floats]:
        starts = [working.middle()]
        if self.n_starts > 1 and working.size <= GUESS_LIMIT:
            starts.append(working.fitted())
        return starts + [working.sample(seed) for seed in rng.spawn(self.n_starts - len(starts))]

    def _descend_all(self, descents: list["_Descent"], parallel: Any) -> None:
        """Let all starts take one step at a time; one that meets the witnesses of another need not go on.

        What a step finds missing is added after all have taken it, so that the order of threads changes nothing.
        """
        owner: dict[bytes, _Descent] = {}
        going = descents
        while going:
            for descent in going:
                if len(descent.history) >= self.max_rounds:
                    descent.status = "reached max_rounds"
            going = [d for d in going if not d.status and owner.get(d.witnesses.key, d) is d]
            solved = [descent.witnesses.key for descent in going]
            list(parallel(lambda descent: descent.step(self.tolerance), going))
            for descent, key in zip(going, solved, strict=True):
                if descent.complete:  # these witnesses are done with; before that, others may still try them
                    owner.setdefault(key, descent)
                descent.take_up_missing()
            going = [descent for descent in going if not descent.status]


class _Descent:
    """From one start: solve for the witnesses of the moment, move them, until nothing moves."""

    def __init__(self, working: WorkingSet, values: Floats) -> None:
        self.working, self.problem = working, working.problem
        self.values = self.best = values
        seen = self.problem.extremes(values)
        self.best_value = working.value(seen)
        self.kept = np.empty(0, np.int64)
        self.witnesses = working.witnesses(seen)
        measure = working.completed(working.spoken(values, self.witnesses), self.witnesses)
        self.missing = working.worst(seen, np.full(len(self.problem.labels), -np.inf), 0.0, measure)
        self.order = working.order
        self.complete = False  # whether the last step found nothing missing, neither cuts nor order
        self.bound = self.reached = -np.inf
        self.history: list[float] = []
        self.status = ""

    def step(self, tolerance: float, precision: float = PRECISION) -> None:
        """Solve the QP of the working set, and move the witnesses if J fell."""
        chosen = self.working.chosen(self.values, self.kept)
        self.order = self.working.order
        answer = self.working.solve(chosen, self.witnesses, self.order, precision, self.values)
        if answer is None:
            self.missing, self.complete = self.missing.take(np.empty(0, np.int64)), False
            self.status = f"the QP of round {len(self.history) + 1} could not be solved"
            return
        self.order = self.order.with_violated(answer.partial, tolerance)
        measure = self.working.completed(answer.partial, self.witnesses)
        values = self.values = measure.values
        seen = self.problem.extremes(values)
        value = self.working.value(seen)
        worst = self.working.worst(seen, answer.slack, tolerance, measure)
        self.missing = worst.take(~np.isin(self.working.places(worst), chosen))
        self.complete = not len(self.missing.bag) and self.order is self.working.order
        gained = value < self.best_value - RISE * (self.working.scale + value)
        if value <= self.best_value:
            self.best, self.best_value = values, value
        self._keep(answer)
        if self.complete:
            self.bound = answer.bound
        moved = self.working.witnesses(seen)
        still = moved.key == self.witnesses.key
        if gained:  # also when rows are missing: J is J, and better witnesses make a better next QP
            self.history.append(value)
            self.witnesses, self.reached = moved, -np.inf
        if self.complete and (still or not gained):
            self.status = "converged"

    def _keep(self, answer: Answer) -> None:
        """Forget rows that hold no slack up, but only when the QP's minimum is higher than ever with these witnesses.

        As that cannot go on, rows do not come and go for ever.
        """
        rose = answer.bound > self.reached + RISE * abs(answer.bound)
        self.kept = answer.binding if rose else np.union1d(self.kept, answer.binding)
        self.reached = max(self.reached, answer.bound)

    def take_up_missing(self) -> None:
        """Add what the last step found missing to the working set, and keep it from now on."""
        self.working.order = self.working.order.joined(self.order)
        self.kept = np.union1d(self.kept, self.working.extend(self.missing))

    def polish(self, tolerance: float) -> None:
        """Solve the last QP once more, as precisely as can be; what trouble there is then does not matter."""
        status, rounds = self.status, len(self.history)
        going = status == "converged" and self.working.polishes
        while going:
            self.status = ""
            self.step(tolerance, POLISH)
            self.take_up_missing()
            going = not self.complete and not self.status
        self.status = status
        del self.history[rounds:]

    def solution(self, starts: Floats) -> Solution:
        """What to report."""
        instance = getattr(self.problem, "instance", None)
        rows = self.witnesses.row if instance is None else instance[self.witnesses.row]
        bound = min(self.bound, self.best_value) if self.status == "converged" else None
        history = np.array(self.history or [self.best_value])
        return Solution(self.best, self.best_value, self.status, len(history), history, rows, bound, starts)
