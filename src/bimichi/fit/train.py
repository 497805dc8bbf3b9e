"""Learning a measure, with or without a polarity, from training data of whatever kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.direction import trusted_signs
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import IN_MEMORY, InMemory, Problem, Solution, Summed, check_solver
from bimichi.fit.spaces.base import Space, Usage
from bimichi.measures.lattice import random_generator
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import Sample, Scale, bag_groups, grouped_bags
from bimichi.scenes.scene import Scene, Scenes

GROUPS = 5  # of neighbouring bags, where there are no scenes to leave out


def is_lazy(X: Any) -> bool:
    """Whether data are for `bimichi.fit.streaming`: a Dask collection, or a list of scenes that may come later."""
    if hasattr(X, "__dask_graph__") or isinstance(X, Scenes):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    return isinstance(X[0], Scene | str | PathLike) or callable(X[0]) or hasattr(X[0], "__dask_graph__")


class BagLabels(NamedTuple):
    """Label and weight of every bag."""

    labels: Flags
    weights: Floats


class Training(Protocol):
    """Labelled bags to learn from."""

    n_sources: int
    offers: frozenset[str]  # what problems about them can answer; see `bimichi.fit.problem`

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each source."""

    def scaled(self, scale: Scale) -> Self:
        """The same bags with sources mapped."""

    def samples(self) -> list[Sample]:
        """Rows of scenes, or of groups of bags, by which signs are decided."""

    def problem(self, objective: Objective, n_jobs: int | None = None) -> Problem | Summed:
        """What a solver asks; the same object each time."""

    def usage(self, objective: Objective, n_jobs: int | None = None) -> Usage:
        """How many instances use each code of the space that the objective is minimised in."""


class BagsInMemory(Training):
    """Training data that are `Bags`."""

    offers = IN_MEMORY

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self._merged = bags.singles_merged()
        self._problems: dict[Objective, InMemory] = {}
        self.n_sources = bags.n_sources

    def ranges(self) -> tuple[Floats, Floats]:
        return self._bags.X.min(axis=0).astype(np.float64), self._bags.X.max(axis=0).astype(np.float64)

    def scaled(self, scale: Scale) -> "BagsInMemory":
        return BagsInMemory(scale.bags(self._bags))

    def samples(self) -> list[Sample]:
        return grouped_bags("", self._bags, bag_groups(self._bags, None, GROUPS))

    def problem(self, objective: Objective, n_jobs: int | None = None) -> InMemory:
        if objective not in self._problems:
            self._problems[objective] = InMemory(self._merged, objective, n_jobs, given=self._bags.X)
        return self._problems[objective]

    def usage(self, objective: Objective, n_jobs: int | None = None) -> Usage:
        return objective.space(self.n_sources).count_usage(self._bags.X, n_jobs)


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
            "Use polarity='given'.",
            code="polarity-objective",
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
        What is minimised; see `bimichi.fit.objectives.get_objective`.
    solver : object
        See `bimichi.fit.solvers.get_solver`.
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
