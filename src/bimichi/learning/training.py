"""Training data: labelled bags in memory. `bimichi.learning.streaming` has those that come in parts."""

from os import PathLike
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.learning.abilities import IN_MEMORY
from bimichi.learning.bags import Bags
from bimichi.learning.objectives import Objective
from bimichi.learning.problem import InMemory, Problem, Summed
from bimichi.learning.samples import Sample, bag_groups, grouped_bags
from bimichi.learning.scaling import Scale
from bimichi.learning.scene import Scene, Scenes
from bimichi.learning.spaces.base import Usage

GROUPS = 5  # of neighbouring bags, where there are no scenes to leave out


def is_lazy(X: Any) -> bool:
    """Whether data are for `bimichi.learning.streaming`: a Dask collection, or a list of scenes that may come later."""
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
    offers: frozenset[str]  # what problems about them can answer; see `bimichi.learning.abilities`

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
