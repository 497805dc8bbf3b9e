"""Learning a measure, with or without a polarity, from training data of whatever kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.direction import trusted_signs
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import IN_MEMORY, InMemory, Problem, Solution, Summed, check_solver
from bimichi.fit.spaces.base import Space, Usage
from bimichi.measures.lattice import random_generator
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import Sample


@dataclass(frozen=True, eq=False)
class FitResult:
    """What was learned.

    Attributes
    ----------
    measure : Measure
        The measure.
    polarity : ndarray of shape (n_sources,)
        The signs by which sources are multiplied before the integral.
    solution : Solution
        What the solver found.
    usage : dict of str to ndarray of int64
        How many training instances "touched" each element (or term), and how many gave it weight ("weighted").
    """

    measure: Any
    polarity: Floats
    solution: Solution
    usage: dict[str, Ints]

    @classmethod
    def of(cls, space: Space, solution: Solution, usage: Usage, signs: Floats, names: Sequence[str] | None) -> Self:
        """Make the measure that a solver found, and count how training instances, with these signs, use it."""
        counts = {kind: usage.counts(kind == "weighted", signs) for kind in ("touched", "weighted")}
        return cls(space.measure(solution.values, names), signs, solution, counts)


def check_training(
    objective: Objective, solver: Any, polarity: str = "given", offers: frozenset[str] = IN_MEMORY
) -> None:
    """Refuse what cannot be learned together, before any data are read.

    Parameters
    ----------
    objective, solver, polarity
        As in `fit_measure`.
    offers : frozenset of str, default=IN_MEMORY
        What the data offer: `Executor.offers`.

    Raises
    ------
    InvalidInputError
        If they do not go together.
    """
    check_choice(polarity, "polarity", ("given", "learn"))
    if polarity == "learn" and objective.measure == "capacity":
        raise InvalidInputError(
            f"polarity='learn' inverts sources around 0, but objective {objective.name!r} is for sources in [0, 1]. "
            "Use polarity='given'."
        )
    check_solver(solver, objective, offers)


def problem_in_memory(bags: Bags, objective: Objective, n_jobs: int | None = None) -> InMemory:
    """Return the problem of bags, of which equal ones with a single instance are merged."""
    usage = objective.space(bags.n_sources).count_usage(bags.X, n_jobs)
    return InMemory(bags.singles_merged(), objective, n_jobs, usage=usage)


def fit_measure(
    problem: Problem | Summed,
    solver: Any,
    *,
    samples: Sequence[Sample] | None = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FitResult:
    """Learn a measure.

    Parameters
    ----------
    problem : Problem or Summed
        Of bags whose sources lie in the range of the objective's measure.
    solver : object
        See `bimichi.fit.solvers.get_solver`.
    samples : sequence of Sample, optional
        Rows of scenes, or of groups of bags, by which it is learned which sources to invert; none by default.
    names : sequence of str, optional
        Of the sources.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of the solver.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    verbose : int, default=0
        Above 0, solvers show their progress.

    Raises
    ------
    InvalidInputError
        If the solver cannot solve the problem.
    """
    check_solver(solver, problem.objective, problem.offers)
    seed = random_generator(random_state).integers(2**63)
    signs = np.ones(problem.space.n_sources) if samples is None else trusted_signs(samples).signs
    solution: Solution = solver.solve(problem.with_signs(signs), np.random.default_rng(seed), n_jobs, verbose)
    return FitResult.of(problem.space, solution, problem.usage, signs, names)
