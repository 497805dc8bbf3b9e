"""Learning a measure, with or without a polarity, from training data of whatever kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.learning.abilities import IN_MEMORY, check_solver
from bimichi.learning.objectives import Objective
from bimichi.learning.polarity import trusted_signs
from bimichi.learning.problem import Solution
from bimichi.learning.spaces.base import Space, Usage
from bimichi.learning.training import Training
from bimichi.measures.sampling import random_generator


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
        What the data offer: `Training.offers`.

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


def fit_measure(
    training: Training,
    objective: Objective,
    solver: Any,
    *,
    polarity: str = "given",
    names: Sequence[str] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FitResult:
    """Learn a measure.

    Parameters
    ----------
    training : Training
        Bags whose sources lie in the range of the objective's measure.
    objective : Objective
        What is minimised; see `bimichi.learning.objectives.get_objective`.
    solver : object
        See `bimichi.learning.solvers.get_solver`.
    polarity : {"given", "learn"}
        Whether to learn which sources to invert.
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
        If the three do not go together.
    """
    check_training(objective, solver, polarity, training.offers)
    seed = random_generator(random_state).integers(2**63)

    signs = trusted_signs(training.samples()).signs if polarity == "learn" else np.ones(training.n_sources)
    problem = training.problem(objective, n_jobs).with_signs(signs)
    solution: Solution = solver.solve(problem, np.random.default_rng(seed), n_jobs, verbose)
    return FitResult.of(problem.space, solution, training.usage(objective, n_jobs), signs, names)
