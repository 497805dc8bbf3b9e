"""Learning from data that come in parts: scenes that are read one at a time, or blocks of a Dask array.

In this process, what is kept of the parts is joined, and learned from as if all data had been given at once;
`bimichi.learning.cluster` leaves it on the workers of a Dask cluster.
"""

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bimichi._progress import progress_bar
from bimichi.errors import InvalidInputError
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.bags import Bags
from bimichi.learning.learned import chosen_objective
from bimichi.learning.objectives import Objective
from bimichi.learning.parts import Dropping, Facts, Named, Plan, Totals, measured, reduced
from bimichi.learning.problem import InMemory, Problem
from bimichi.learning.scaling import Scale
from bimichi.learning.scene import Scenes
from bimichi.learning.solvers import ConvexSolver, get_solver
from bimichi.learning.squares import Summed
from bimichi.learning.term_problem import TermProblem, TermsInMemory
from bimichi.learning.training import BagRanges, in_memory

__all__ = ["Held", "Here", "Place", "Streamed", "training_from"]

Floats = NDArray[np.float64]


class Held(Protocol):
    """What is kept of the parts, wherever it is."""

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> Problem | TermProblem:
        """What a solver asks, for sources turned by these signs."""
        ...


class Place(Protocol):
    """Where parts are read and reduced."""

    def measure(self, items: Sequence[Any]) -> Iterator[Facts]:
        """Read parts for their ranges; those that would be costly to read again are kept from now on."""
        ...

    def reduce(self, items: Sequence[Any], plan: Plan, scale: Scale | None) -> Iterator[Facts]:
        """Read and reduce parts, and keep what the plan says."""
        ...

    def held(self, totals: Totals, plan: Plan) -> Held:
        """Return what `reduce` kept."""
        ...


class Streamed:
    """Bags in parts; see `bimichi.learning.training.Training`.

    Parameters
    ----------
    place : Place
        Where parts are read.
    items : sequence
        The parts, as `bimichi.learning.parts.read_part` takes them.
    plan : Plan
        What is kept of them.
    scaled : bool
        Whether a scale will be learned. Parts then are read twice, first for their ranges.
    verbose : int, default=0
        Above 0, a progress bar is shown on a terminal.
    """

    def __init__(self, place: Place, items: Sequence[Any], plan: Plan, scaled: bool, verbose: int = 0) -> None:
        self._place, self._items, self._plan, self._verbose = place, items, plan, verbose
        self._held: Held | None = None
        self._totals = self._added_up(place.measure(items), "measuring") if scaled else self._reduced(None)
        self._scaled = not scaled
        self.n_sources = self._totals.n_sources

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each source."""
        return self._totals.low, self._totals.high

    def scaled(self, scale: Scale) -> "Streamed":
        """The same bags with sources mapped."""
        if not self._scaled:
            self._totals, self._scaled = self._reduced(scale), True
        return self

    def bag_ranges(self) -> BagRanges:
        """The extremes of each source in each bag."""
        totals = self._totals
        return BagRanges(totals.bag_low, totals.bag_high, totals.labels, totals.weights)

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> Any:
        """What a solver asks, for sources turned by these signs; sums of squares, if it asks for no more."""
        totals = self._totals
        if totals.gram is not None:
            return Summed(totals.gram, totals.labels, totals.weights, objective, signs)
        if self._held is None:
            self._held = self._place.held(totals, self._plan)
        return self._held.problem(objective, signs, n_jobs)

    def usage(self, objective: Objective, signs: Floats, weighted: bool, n_jobs: int | None) -> NDArray[np.int64]:
        """How many instances use each element, or term."""
        counted = self._totals.usage
        assert counted is not None  # or there would be no bags to learn from
        return counted.counts(signs, weighted)

    def _reduced(self, scale: Scale | None) -> Totals:
        totals = self._added_up(self._place.reduce(self._items, self._plan, scale), "reading")
        in_range = totals.low.min() >= -1 and totals.high.max() <= 1  # if not, who asks for the ranges raises
        if in_range and (totals.labels.all() or not totals.labels.any()):
            raise InvalidInputError("All bags are of one class. Learning needs at least one bag of each class.")
        self._items = ()
        return totals

    def _added_up(self, facts: Iterator[Facts], what: str) -> Totals:
        with progress_bar(what, len(self._items), self._verbose) as advance:

            def told() -> Iterator[Facts]:
                for one in facts:
                    yield one
                    advance(1, None)

            totals = Totals(told())
        if np.isinf(totals.low).all():
            raise InvalidInputError("None of the scenes has a labelled bag. Label some segments of each class.")
        return totals


class Here:
    """Where this process runs: parts are read in its threads, no more at once than these."""

    def __init__(self, n_jobs: int | None) -> None:
        self._jobs = check_n_jobs(n_jobs)
        self._kept: list[Bags | None] = []

    def measure(self, items: Sequence[Any]) -> Iterator[Facts]:
        """Read parts for their ranges; they are read again later."""
        return in_threads(measured, items, self._jobs)

    def reduce(self, items: Sequence[Any], plan: Plan, scale: Scale | None) -> Iterator[Facts]:
        """Read and reduce parts."""
        each = max(1, self._jobs // max(1, len(items)))  # threads for one part
        for facts, kept in in_threads(lambda item: reduced(item, plan, scale, each), items, self._jobs):
            self._kept.append(kept)
            yield facts

    def held(self, totals: Totals, plan: Plan) -> "Joined":
        """Join what was kept."""
        parts = deque((start, bags) for start, bags in zip(totals.starts, self._kept, strict=False) if bags is not None)
        self._kept = []
        return Joined(_joined(parts), plan)


class Joined:
    """What was kept of all parts, as bags in memory."""

    def __init__(self, bags: Bags, plan: Plan) -> None:
        self._bags, self._plan = bags, plan
        self._known: InMemory | TermsInMemory | None = None

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> InMemory | TermsInMemory:
        """What a solver asks, for sources turned by these signs."""
        if self._known is None:
            self._known = in_memory(self._bags, objective, n_jobs, reduce=self._plan.keeps != "deciding")
        return self._known.turned(signs)


def _joined(parts: deque[tuple[int, Bags]]) -> Bags:
    """Join bags whose instances stood behind so many others; each part is let go when it has been copied."""
    sizes = [np.diff(bags.offsets) for _, bags in parts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    n, m = int(offsets[-1]), parts[0][1].n_sources
    X = np.empty((n, m), np.result_type(*{bags.X.dtype for _, bags in parts}))
    counts, instance = np.empty(n), np.empty(n, np.int64)
    labels, weights = [], []
    ids: list[Hashable] = []
    at = 0
    while parts:
        start, bags = parts.popleft()
        rows = slice(at, at + len(bags.X))
        X[rows], counts[rows], instance[rows] = bags.X, bags.counts, bags.instance + start
        labels.append(bags.labels)
        weights.append(bags.weights)
        ids += bags.ids
        at = rows.stop
    return Bags(X, offsets, np.concatenate(labels), np.concatenate(weights), counts, instance, ids)


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], n_jobs: int) -> Iterator[Any]:
    """Yield ``function(item)`` for every item, in order, with few results in wait; an error stops the rest."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def training_from(model: Any, X: Any, y: Any, bags: Any, sample_weight: Any) -> Streamed:
    """Return the parts of a Dask array with labels, or of a list of scenes, for a model's `fit`.

    Parameters
    ----------
    model : BiMIChI
        Gets `classes_` and `n_features_in_`.
    X : dask.array.Array of shape (n_instances, n_sources), Scenes, or list of scenes
        Scenes are `Scene` objects, Dask delayed ones, functions that return one, or paths of files of `Scene.save`.
    y, bags, sample_weight : array-like of shape (n_instances,)
        As in `BiMIChI.fit`, for arrays; they are held in memory here. Rows of a bag must stand together.
    """
    solver, signs = get_solver(model.solver), model.polarity == "learn"
    client = _client()
    place: Place = Here(model.n_jobs)
    if client is not None:
        from bimichi.learning.cluster import OnCluster

        place = OnCluster(client)
    items: Sequence[Any]
    if isinstance(X, Scenes | list | tuple):
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError("Scenes bring labels and bags; give fit nothing besides.")
        model.classes_ = np.array([0, 1])
        items = [Named(X, name) for name in X.names] if isinstance(X, Scenes) else X
        items = [Dropping(item) for item in items] if model.nan == "drop" else items
    else:
        from bimichi.learning.cluster import array_parts

        model.classes_, items = array_parts(X, y, bags, sample_weight, model.nan)
    plan = _plan(chosen_objective(model.objective, model.additivity), solver, signs)
    training = Streamed(place, items, plan, model.scale is not None, model.verbose)
    model.n_features_in_ = training.n_sources
    return training


def _plan(objective: Objective, solver: Any, signs: bool) -> Plan:
    """Keep as little as the solver can do with; a solver of the user's may ask for anything."""
    if type(solver) is ConvexSolver and objective.convex == "mean" and not objective.additivity:
        return Plan(objective, "sums", signs)
    if isinstance(solver, ConvexSolver):
        return Plan(objective, "merged" if signs else "deciding", signs)
    return Plan(objective, "all", signs)


def _client() -> Any:
    """The active client of dask.distributed; there is none if nobody has imported it."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
