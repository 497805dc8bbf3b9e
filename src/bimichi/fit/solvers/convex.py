"""The convex search: fix a witness for each positive bag, solve a QP, move the witnesses, repeat.

Not in the paper. With one instance, the witness, chosen for each positive bag, the objective is convex in the measure,
and its minimum is found exactly. J never rises from round to round, so the search ends where no other choice of best
instances improves it; several starts look for the best such point.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from bimichi._checks import check_integer, check_number
from bimichi._progress import checkpoint, status_line
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError, warn
from bimichi.fit.certificate import Certified, Incumbent, Limits, certify
from bimichi.fit.certificate.candidates import Candidates, Region
from bimichi.fit.certificate.relaxation import Relaxation, all_measures
from bimichi.fit.problem import InMemory, Problem, Solution, Summed, check_solver
from bimichi.fit.solvers.descent import (
    Descent,
    begin,
    descend,
    improve_by_moves,
    polish,
    solution_of,
    solve_free_scale,
    solve_logistic,
    step,
    take_up_missing,
)
from bimichi.fit.spaces.base import POLISH, PRECISION
from bimichi.fit.working_set import WorkingSet
from bimichi.integral.planes import check_n_jobs
from bimichi.record import ENDINGS, Status

NEAR = (1e-7, 1e-9, 1e-11)  # what counts as equal: the first by which J does not rise
ROUNDING = 1e-15  # of J, which is a sum


def snapped(problem: Any, solution: Solution) -> Solution:
    """Return the solution with values that nearly are a bound, or nearly each other, made so; J never rises."""
    for near in NEAR:
        values = problem.space.snapped(solution.values, near)
        if (values == solution.values).all():
            return solution
        value = float(problem.value(values, *(() if solution.link is None else (solution.link,))))
        if value <= solution.objective_value * (1 + ROUNDING):
            bound = solution.lower_bound
            history = np.append(solution.history[:-1], min(value, solution.objective_value))
            return replace(
                solution,
                values=values,
                objective_value=value,
                history=history,
                lower_bound=None if bound is None else min(bound, value),
            )
    return solution


MAX_ELEMENTS = 3**7  # tables of the order are quadratic in their number
START_ROWS = 200  # rows of positive bags up to which the relaxation is as quick as a few starts


def relaxed_start(working: WorkingSet, rng: Generator) -> Floats | None:
    """Return the measure that the relaxation of the whole problem finds; None where that would take long."""
    problem, space = working.problem, working.space
    if not isinstance(problem, InMemory) or space.lattice is None or space.size > 3**4:
        return None
    if len(working.form.positive) * np.diff(problem.bags.offsets)[problem.labels].sum() > START_ROWS:
        return None
    relaxation = _relaxation(working, rng)
    rows = relaxation.worst_rows(space.middle())
    relaxed = relaxation.solve(all_measures(relaxation.region, relaxation.candidates), rows)
    return None if relaxed is None else relaxed.values


def prove(
    working: WorkingSet,
    best: Descent,
    limits: Limits,
    rng: Generator,
    options: tuple[float, int],
    n_jobs: int,
    report: Callable[[Certified], None],
) -> tuple[Descent, Certified]:
    """Bound J from below over all measures, and return the best measure that was found on the way.

    `options` are `tolerance` and `max_rounds` of the search.
    """
    states = {best.best_value: best}

    def improve(values: Floats) -> Incumbent:
        state = take_up_missing(working, begin(working, values))
        state = polish(working, descend(working, state, *options), options[0])
        states[state.best_value] = state
        return Incumbent(state.best, state.best_value)

    proof = certify(_relaxation(working, rng), Incumbent(best.best, best.best_value), improve, limits, n_jobs, report)
    return states[proof.best.value], proof


def check_provable(problem: Problem) -> None:
    """Refuse problems that no certificate can be made for."""
    remedy = "Leave out certify=True."
    if not isinstance(problem, InMemory):
        raise InvalidInputError(
            f"certify=True needs its data in memory, not in parts on a cluster. {remedy}", code="certify-memory"
        )
    space = problem.space
    if space.lattice is None:
        raise InvalidInputError(
            f"certify=True is for bi-capacities and capacities with all elements, not for additive ones. {remedy}",
            code="certify-additive",
        )
    if space.size > MAX_ELEMENTS:
        raise InvalidInputError(
            f"certify=True is for at most {MAX_ELEMENTS:,} elements (seven sources), and {space.n_sources} sources "
            f"have {space.size:,}. Use fewer sources, or leave out certify=True.",
            code="certify-elements",
        )


def _relaxation(working: WorkingSet, rng: Generator) -> Relaxation:
    problem, lattice = working.problem, working.space.lattice
    assert isinstance(problem, InMemory)
    assert lattice is not None
    return Relaxation(working, Candidates(problem, working.form, Region(lattice), rng))


log = logging.getLogger(__name__)

MOVES_SHARE = 3  # of the QPs of all starts, which share threads, one in so many is spent on moves, which do not
GUESS_LIMIT = 3**6  # with more elements, fitting all instances would cost more than a few random starts


@dataclass(frozen=True)
class ConvexSolver:
    """Minimise by witnesses and quadratic programs (Clarabel).

    Parameters
    ----------
    n_starts : int, default=8
        How many measures to start from: the middle one, the one that fits all instances to the labels of their bags
        best in least squares (up to six sources of a bi-capacity), and random ones, for `magnitude` half of them with
        random signs of the first witnesses; besides, in small problems, the solution of a relaxation. A start that
        comes to witnesses that another has had ends there, so further starts are cheap. `mean` needs no start.
    max_rounds : int, default=100
        How often witnesses may move.
    tolerance : float, default=1e-7
        By how much a row outside the QP may exceed its bag's slack.
    moves : bool, default=True
        Whether, after convergence, other witnesses of single bags are tried; see below.
    certify : bool, default=False
        Whether to prove, by branch and bound over all measures, how far J is above the least possible; better measures
        that are met on the way are taken. For `bipolar`, `magnitude` and `min-max` in memory, with up to seven sources
        of a bi-capacity (eleven of a capacity); additive measures are refused. See docs/optimality.md.
    gap, absolute_gap : float, default=1e-3 and 1e-6
        The proof is complete if J exceeds its bound by no more than ``gap * J`` or `absolute_gap`.
    max_nodes : int, default=10000
        How many parts of all measures may be bounded. Runs that it ends are repeatable.
    time_limit : float, optional
        Seconds after which no further part is bounded. What such a run has proven depends on the machine.

    Notes
    -----
    Variables are the elements that witnesses use, and few others; constraints are deciding rows, and the order of
    those elements where it matters. What the rest of the data and of the order would add is added when it is violated.
    This is exact for the given witnesses, and no QP grows with the 3^m elements: those cost O(m 3^m) a step.

    Starts end at local minima. From the best of them, other witnesses (and signs) of single bags are tried, those first
    that are nearest to being the best of their bag; with many rows, a third as many as all starts took QPs.
    """

    needs: ClassVar[tuple[str, ...]] = ("convex form",)

    n_starts: int = 8
    max_rounds: int = 100
    tolerance: float = 1e-7
    moves: bool = True
    certify: bool = False
    gap: float = 1e-3
    absolute_gap: float = 1e-6
    max_nodes: int = 10_000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("n_starts", "max_rounds", "max_nodes"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name))
        check_number(self.tolerance, "tolerance", 0.0, 1.0, exclusive=True)
        check_number(self.gap, "gap", 0.0, 1.0)
        check_number(self.absolute_gap, "absolute_gap", 0.0)
        if self.time_limit is not None:
            check_number(self.time_limit, "time_limit", 0.0, exclusive=True)

    def solve(self, problem: Problem, rng: Generator, n_jobs: int | None = None, verbose: int = 0) -> Solution:
        """Return the best solution over all starts."""
        check_solver(self, problem.objective, problem.offers)
        form = problem.objective.convex
        if form == "logistic":
            return snapped(problem, solve_logistic(problem, quiet=verbose < 0))
        if problem.objective.free_scale:
            return snapped(problem, solve_free_scale(problem))
        if form == "mean" or form is None:
            return solve_least_squares(problem)
        if self.certify:
            check_provable(problem)
        working, jobs = WorkingSet(problem, form), check_n_jobs(n_jobs)
        states = [begin(working, values, signs) for values, signs in self._starts(working, rng)]
        states = [take_up_missing(working, state) for state in states]
        n_programs = [0]
        with ThreadPoolExecutor(min(jobs, len(states))) as pool:
            states = self._descend_all(working, states, pool.map, n_programs)
            first = min(range(len(states)), key=lambda start: states[start].best_value)
            best = states[first]
            while not best.status:  # it met another start, which then ended higher: it continues alone
                (best,) = self._descend_all(working, [best], map, n_programs)
        states[first] = best
        values = np.array([state.best_value for state in states])
        if self.moves:
            best = improve_by_moves(working, best, self.tolerance, self.max_rounds, n_programs[0] // MOVES_SHARE)
        best = polish(working, best, self.tolerance)
        proof = None
        if self.certify:
            best, proof = self._prove(working, best, rng, jobs, verbose)
        if verbose:
            log.info("J of each start: %s; the best ended %s after %d rounds", values, best.status, len(best.history))
        if best.status is Status.UNSOLVED:
            warn(
                f"The convex solver ended early: {ENDINGS[best.status]}. The result is valid.",
                code="solver-ended-early",
                stacklevel=2,
            )
        return snapped(problem, solution_of(working, best, values, proof))

    def quick(self) -> "ConvexSolver":
        """Return the solver with its first two starts alone, to compare problems before one is solved in earnest."""
        return replace(self, n_starts=min(2, self.n_starts), moves=False, certify=False)

    def _prove(
        self, working: WorkingSet, best: Descent, rng: Generator, n_jobs: int, verbose: int
    ) -> tuple[Descent, Certified]:
        limits = Limits(self.gap, self.absolute_gap, self.max_nodes, self.time_limit)
        with status_line("Proving", verbose) as show:

            def report(proof: Certified) -> None:
                gap = (proof.best.value - proof.bound) / (abs(proof.best.value) or 1.0)
                show(f"J {proof.best.value:.6g}, bound {proof.bound:.6g}, gap {gap:.3%}, {proof.n_nodes} nodes")

            return prove(working, best, limits, rng, (self.tolerance, self.max_rounds), n_jobs, report)

    def _starts(self, working: WorkingSet, rng: Generator) -> list[tuple[Floats, Ints | None]]:
        """Return measures to start from, with signs of the first witnesses where either pole may be right."""
        space = working.space
        starts: list[tuple[Floats, Ints | None]] = [(space.middle(), None)]
        if self.n_starts > 1 and space.size <= GUESS_LIMIT:
            starts.append((working.fitted(), None))
        either = len(working.form.positive) > 1
        for k, seed in enumerate(rng.spawn(self.n_starts - len(starts))):
            values = space.sample(seed)
            starts.append((values, working.signs(space.sample(seed)) if either and k % 2 else None))
        relaxed = relaxed_start(working, rng) if self.n_starts > 2 else None
        return starts if relaxed is None else [*starts, (relaxed, None)]

    def _descend_all(
        self, working: WorkingSet, states: list[Descent], parallel: Callable[..., Any], n_programs: list[int]
    ) -> list[Descent]:
        """Let all starts take one step at a time; one that meets the witnesses of another ends.

        The number of QPs is added to `n_programs`.

        What a step finds missing is added after all have taken it, so that the order of threads changes nothing.
        """
        states = list(states)
        owner: dict[bytes, int] = {}  # which start is done with these witnesses
        going = list(range(len(states)))
        while going:
            checkpoint()
            for start in going:
                if len(states[start].history) >= self.max_rounds:
                    states[start] = replace(states[start], status=Status.MAX_ROUNDS)
            going = [k for k in going if not states[k].status and owner.get(states[k].witnesses.key, k) == k]
            solved = [states[start].witnesses.key for start in going]
            n_programs[0] += len(going)
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
    minimum = problem.space.least_squares(problem, (first, second), completion, (POLISH, PRECISION))
    status = Status.CONVERGED if minimum else Status.UNSOLVED
    if not minimum:
        warn(
            f"The convex solver failed: {ENDINGS[status]}; a neutral measure is returned.",
            code="solver-failed",
            stacklevel=3,
        )
    values, bound = minimum or (problem.space.middle(), -np.inf)
    value = problem.value(values)
    return snapped(problem, Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value)))
