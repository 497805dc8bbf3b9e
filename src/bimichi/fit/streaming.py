"""Learning from data in parts: scenes that are read one at a time, or blocks of a Dask array; see docs/design.md."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._progress import progress_bar
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.fit.cluster import ClusterExecutor, array_parts
from bimichi.fit.direction import LEAST
from bimichi.fit.objectives import Objective
from bimichi.fit.parts import (
    Executor,
    Keep,
    PartSummary,
    ReductionPlan,
    Totals,
    read_part,
    read_scene,
    reduce_part,
    summarise,
)
from bimichi.fit.problem import IN_MEMORY, InMemory, Problem, Summed, needs_of
from bimichi.fit.spaces.base import Usage
from bimichi.fit.train import GROUPS, Training, check_training
from bimichi.integral.planes import check_n_jobs, in_threads as in_threads
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import Sample, Scale
from bimichi.scenes.scene import Scenes


class PartitionedTraining(Training):
    """Bags in parts, as `bimichi.fit.parts.read_part` takes them; read twice, first for ranges, if `scaled`."""

    def __init__(
        self, executor: Executor, items: Sequence[Any], plan: ReductionPlan, scaled: bool, verbose: int = 0
    ) -> None:
        self._executor, self._items, self._plan, self._verbose = executor, items, plan, verbose
        self._problem: Problem | None = None
        self._totals = self._added_up(executor.summarise(items), "measuring") if scaled else self._reduced(None)
        self.n_sources, self.offers = self._totals.n_sources, executor.offers

    def ranges(self) -> tuple[Floats, Floats]:
        return self._totals.low, self._totals.high

    def scaled(self, scale: Scale) -> "PartitionedTraining":
        if self._items:  # which are released once they are reduced
            self._totals = self._reduced(scale)
        return self

    def samples(self) -> list[Sample]:
        return self._totals.samples

    def problem(self, objective: Objective, n_jobs: int | None = None) -> Problem | Summed:
        totals = self._totals
        if totals.gram is not None:
            return Summed(totals.gram, totals.bags.labels, totals.bags.weights, objective, totals.n_sources)
        if self._problem is None:
            self._problem = self._executor.problem(totals, self._plan, n_jobs)
        return self._problem

    def usage(self, objective: Objective, n_jobs: int | None = None) -> Usage:
        assert self._totals.usage is not None  # or there would be no bags to learn from
        return self._totals.usage

    def _reduced(self, scale: Scale | None) -> Totals:
        totals = self._added_up(self._executor.reduce(self._items, self._plan, scale), "reading")
        in_range = totals.low.min() >= -1 and totals.high.max() <= 1  # else the caller, who checks them, raises
        labels = totals.bags.labels
        if in_range and (labels.all() or not labels.any()):
            raise InvalidInputError(
                "All bags are of one class. Learning needs at least one bag of each class.", code="one-class"
            )
        self._items = ()
        return totals

    def _added_up(self, summaries: Iterator[PartSummary], what: str) -> Totals:
        with progress_bar(what, len(self._items), self._verbose) as advance:

            def counted() -> Iterator[PartSummary]:
                for one in summaries:
                    yield one
                    advance(1, None)

            totals = Totals(counted())
        if np.isinf(totals.low).all():
            raise InvalidInputError(
                "None of the scenes has a labelled bag. Label some segments of each class.", code="bags-missing"
            )
        return totals


class LocalExecutor(Executor):
    """Reads parts in threads of this process, one part per thread at a time."""

    offers = IN_MEMORY

    def __init__(self, n_jobs: int | None) -> None:
        self._jobs = check_n_jobs(n_jobs)
        self._kept: list[Bags | None] = []

    def summarise(self, items: Sequence[Any]) -> Iterator[PartSummary]:
        return in_threads(summarise, items, self._jobs)

    def reduce(self, items: Sequence[Any], plan: ReductionPlan, scale: Scale | None) -> Iterator[PartSummary]:
        each = max(1, self._jobs // max(1, len(items)))  # threads for one part
        for summary, kept in in_threads(lambda item: reduce_part(item, plan, scale, each), items, self._jobs):
            self._kept.append(kept)
            yield summary

    def problem(self, totals: Totals, plan: ReductionPlan, n_jobs: int | None) -> InMemory:
        parts = deque((start, bags) for start, bags in zip(totals.starts, self._kept, strict=False) if bags is not None)
        self._kept = []
        return InMemory(_joined(parts), plan.objective, n_jobs, reduce=plan.keep != "relevant")


def _joined(parts: deque[tuple[int, Bags]]) -> Bags:
    """Join bags, each with the number of instances before it; a part is released when it has been copied."""
    sizes = [np.diff(bags.offsets) for _, bags in parts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    n, m = int(offsets[-1]), parts[0][1].n_sources
    X = np.empty((n, m), np.result_type(*{bags.X.dtype for _, bags in parts}))
    counts, instance = np.empty(n), np.empty(n, np.int64)
    labels, weights = (np.concatenate([getattr(bags, name) for _, bags in parts]) for name in ("labels", "weights"))
    ids = [name for _, bags in parts for name in bags.ids]
    at = 0
    while parts:
        start, bags = parts.popleft()
        rows = slice(at, at + len(bags.X))
        X[rows], counts[rows], instance[rows] = bags.X, bags.counts, bags.instance + start
        at = rows.stop
    return Bags(X, offsets, labels, weights, counts, instance, ids)


def joined_bags(parts: Sequence[Bags]) -> Bags:
    """Join bags of several parts; their instances are numbered consecutively."""
    starts = np.concatenate([[0], np.cumsum([len(bags.instance) for bags in parts])])
    return _joined(deque(zip(starts.tolist(), parts, strict=False)))


def lazy_training(
    X: Any,
    y: Any,
    bags: Any,
    sample_weight: Any,
    objective: Objective,
    solver: Any,
    *,
    polarity: str = "given",
    scaled: bool = False,
    nan: str = "raise",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[NDArray[Any], PartitionedTraining]:
    """Return the classes, and the parts of a Dask array with labels or of a list of scenes.

    Arguments are those of `BiMIChI.fit` and of `bimichi.fit.train.fit_measure`, which decide what is kept of each
    part, and whether a scale will be learned (`scaled`). Scenes are `Scene` objects, Dask delayed ones, functions that
    return one, or paths of files of `Scene.save`. Rows of a bag of an array must be contiguous; labels, ids of bags and
    weights are held in memory here.
    """
    client = _client()
    executor: Executor = LocalExecutor(n_jobs) if client is None else ClusterExecutor(client)
    check_training(objective, solver, polarity, executor.offers)
    items: Sequence[Any]
    if isinstance(X, Scenes | list | tuple):
        classes, items = np.array([0, 1]), scene_items(X, y, bags, sample_weight, nan)
    else:
        classes, items = array_parts(X, y, bags, sample_weight, nan)
    needs, groups = needs_of(solver, objective), 0 if polarity != "learn" else 1 if len(items) >= LEAST else GROUPS
    keep: Keep = "merged" if groups else "relevant"  # as little as the solver needs
    keep = "all" if "in memory" in needs else keep if "rows" in needs else "sums"
    plan = ReductionPlan(objective, keep, groups)
    return classes, PartitionedTraining(executor, items, plan, scaled, verbose)


def scene_items(X: Any, y: Any, bags: Any, sample_weight: Any, nan: str = "raise") -> Sequence[Any]:
    """Return scenes as `bimichi.fit.parts.read_part` takes them; nothing else may be given to `fit`."""
    if y is not None or bags is not None or sample_weight is not None:
        raise InvalidInputError(
            "Scenes have labels and bags of their own; give fit no y, bags or sample_weight.", code="bags-with-labels"
        )
    items = [partial(read_scene, X, name) for name in X.names] if isinstance(X, Scenes) else X
    return [partial(read_part, item, "drop") for item in items] if nan == "drop" else items


def _client() -> Any:
    """The active client of dask.distributed; there is none if it has not been imported."""
    with suppress(ValueError):  # raised where there is none
        distributed = sys.modules.get("distributed")  # None, too, where its import is blocked
        return None if distributed is None else distributed.get_client()
    return None
