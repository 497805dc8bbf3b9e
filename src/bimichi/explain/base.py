"""The parts of a measure, elements of a lattice or terms, as explanations see them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats, Ints
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks

Result = TypeVar("Result")


class Use(NamedTuple):
    """For every part: how many instances touch it, how many give it weight, and how much weight in all."""

    touched: Ints
    weighted: Ints
    weight: Floats
    n_instances: int


@dataclass(frozen=True, eq=False)
class Parts(ABC):
    """All elements or terms of a measure, their values, and the names of the sources."""

    space: Any
    values: Floats
    names: tuple[str, ...]
    columns: ClassVar[tuple[str, str, str, str]]
    """Headings of tables: a part, its weight in an instance, its value, and the product of both."""

    @property
    @abstractmethod
    def listed(self) -> Ints:
        """The parts that tables list, in that order."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """How many values the definition of the measure does not fix."""

    @abstractmethod
    def label(self, k: int) -> str:
        """Return the name of a part."""

    @abstractmethod
    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        """Return the parts whose weighted sum is the integral of one instance, and their weights."""

    @abstractmethod
    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return what writes the contributions of sources (m, n) to an array (n, m), NaN where a source is."""

    @abstractmethod
    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        """Return the parts that rows touch: how many touch each, how many give it weight, and how much in all."""

    @abstractmethod
    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return importance up and down, and interaction up, down and mixed, averaged over the whole measure."""

    @abstractmethod
    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions up, down and mixed, given the mean weight of every part."""

    @abstractmethod
    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        """Return the least and the greatest value of each part that change no fused value, given those in use."""

    def table_columns(self, codes: Ints, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Sequence[Any]]:
        """Return columns of a table: the labels of some parts, and their entries in arrays."""
        labels = {self.columns[0]: [self.label(code) for code in codes.tolist()]}
        return labels | {name: array[codes].tolist() for name, array in arrays.items()}

    def count_use(self, planes: Planes, n_jobs: int | None = None) -> Use:
        """Count how the instances without NaN use each part; O(n m^2)."""
        size = len(self.values)

        def run(chunk: slice) -> tuple[int, tuple[Ints, Ints, Ints, Floats]]:
            rows = planes.stacked(chunk).T
            rows = rows[~np.isnan(rows).any(axis=1)]
            return len(rows), self.use(rows)

        total = Use(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size), 0)
        n_instances = 0
        for n, (met, touched, weighted, weight) in run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs)):
            total.touched[met] += touched
            total.weighted[met] += weighted
            total.weight[met] += weight
            n_instances += n
        return total._replace(n_instances=n_instances)

    def summarise(
        self, planes: Planes, n_jobs: int | None, summary: Callable[[NDArray[Any], Floats], Result]
    ) -> list[Result]:
        """Return a summary of each chunk, given its instances without NaN and their contributions."""
        contribute = self.contributor()

        def run(chunk: slice) -> Result:
            sources = planes.stacked(chunk)
            made = np.empty((sources.shape[1], planes.n_sources))
            contribute(sources, made)
            kept = ~np.isnan(made[:, 0])
            return summary(sources.T[kept], made[kept])

        return run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
