"""Executors: data are read and learned from in this process, or on the workers of a Dask cluster."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from copy import copy
from functools import reduce
from itertools import pairwise
from operator import add, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Codes, Floats, Ints
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import ON_CLUSTER, Extremes, InMemory, Problem, Summed
from bimichi.fit.spaces.base import Usage
from bimichi.fit.train import Executor, Plan, Reduced, Training, reduce_part, summarise
from bimichi.link import Link
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_constant, check_weights, one_per
from bimichi.scenes.dataset import Dataset, Part, read_part
from bimichi.scenes.sample import Scale

BATCH = 64  # how many answers are fetched at once, so that large ones do not pile up here
PATIENCE = 2.0  # seconds between looks at the workers while waiting for answers
LOSSES = 8  # lost workers that a fit survives, for each worker of the cluster
ABSENCES = 60  # looks in a row that may find no worker
REMEDY = "Look at their logs; if they run out of memory, give them more, or make the parts smaller."


def get_executor(n_jobs: int | None) -> Executor:
    """Return where data are read: the workers of the active Dask client, or threads of this process."""
    with suppress(ValueError):  # raised where there is no client
        distributed = sys.modules.get("distributed")  # None, too, where its import is blocked
        if distributed is not None:
            return ClusterExecutor(distributed.get_client())
    return Executor(n_jobs)


class ClusterExecutor(Executor):
    """Reads parts on the workers of a Dask cluster, where what is kept of them stays."""

    offers = ON_CLUSTER

    def __init__(self, client: Any) -> None:
        self._client = client
        self._read: list[Any] | None = None
        self._kept: list[Any] = []
        self._alive: set[str] = set()
        self._lost, self._without, self._most = 0, 0, 0

    def _summarised(self, data: Dataset) -> Iterator[Reduced]:
        self._read = self.hold(read_part, self._computing(data.items))
        return self.ask(summarise, self._read)

    def _reduced(self, data: Dataset, plan: Plan, scale: Scale | None) -> Iterator[Reduced]:
        items, self._read = self._read or self._computing(data.items), None
        results = self.hold(_reduced_and_problem, items, plan=plan, scale=scale)
        del items  # so that workers release each part when it is reduced
        parts = self.hold(itemgetter(0), results)
        if plan.keep != "sums":
            self._kept = results  # problems stay on the workers
        del results
        yield from self._fetched(parts)

    def problem(self, training: Training, plan: Plan, n_jobs: int | None = None) -> Problem | Summed:
        if plan.keep == "sums":
            return training.problem(plan.objective, plan.keep)
        have = [k for k, n in enumerate(training.n_bags) if n]
        parts = self.hold(itemgetter(1), [self._kept[k] for k in have])
        self._kept = []
        return Partitioned(self, parts, plan.objective, training, np.array([training.starts[k] for k in have]))

    def _computing(self, items: Sequence[Any]) -> list[Any]:
        """Let the workers compute lazy items, in one graph; others are sent along with the tasks that read them."""
        lazy = [k for k, item in enumerate(items) if hasattr(item, "__dask_graph__")]
        computing = dict(zip(lazy, self._client.compute([items[k] for k in lazy]), strict=True))
        return [computing.get(k, item) for k, item in enumerate(items)]

    def hold(self, function: Callable[..., Any], parts: Sequence[Any], **arguments: Any) -> list[Any]:
        """Apply a function to each part; results stay on the workers, and their futures are returned."""
        return list(self._client.map(function, parts, pure=False, **arguments))

    def ask(self, function: Callable[..., Any], parts: Sequence[Any], **arguments: Any) -> Iterator[Any]:
        """Apply a function to each part, and yield the results in order."""
        return self._fetched(self.hold(function, parts, **arguments))

    def ask_each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Apply a function to each part with an argument of its own, and return the results."""
        return self._gathered(self._client.map(function, parts, arguments, pure=False))

    def _fetched(self, futures: list[Any]) -> Iterator[Any]:
        while futures:
            yield from self._gathered(futures[:BATCH])
            del futures[:BATCH]

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Wait for answers, as long as workers are alive; without a bound, Dask would go on computing lost parts."""
        from distributed import KilledWorker, wait

        try:
            while True:
                with suppress(TimeoutError):
                    wait(futures, timeout=PATIENCE)  # type: ignore[no-untyped-call]
                    return list(self._client.gather(futures))
                self._watch()
        except (KilledWorker, CancelledError) as error:
            raise BimichiError(
                f"The workers of the cluster do not stay alive: {error} {REMEDY}", code="workers-lost"
            ) from error

    def _watch(self) -> None:
        """Raise an error if too many workers were lost, or none has been there for long."""
        alive = set(self._client.nthreads())
        self._lost += len(self._alive - alive)
        self._without = 0 if alive else self._without + 1
        self._most, self._alive = max(self._most, len(alive)), alive
        if self._lost > LOSSES * max(1, self._most):
            raise BimichiError(
                f"{self._lost} workers of the cluster were lost during this fit. {REMEDY}", code="workers-lost"
            )
        if self._without > ABSENCES:
            raise BimichiError(
                f"The cluster has had no workers for {ABSENCES * PATIENCE:.0f} s. {REMEDY}", code="workers-missing"
            )


def _reduced_and_problem(item: Any, plan: Plan, scale: Scale | None) -> tuple[Reduced, InMemory | None]:
    part = reduce_part(read_part(item), plan, scale)
    if plan.keep == "sums" or part.content is None:
        return part, None
    problem = InMemory(part.content, plan.objective, n_jobs=1, reduce=plan.keep != "relevant")
    return part._replace(content=None), problem


class Partitioned(Problem):
    """A problem in parts on the workers, whose rows are numbered consecutively through all of them."""

    offers = ON_CLUSTER

    def __init__(
        self, executor: ClusterExecutor, parts: Sequence[Any], objective: Objective, training: Training, starts: Ints
    ) -> None:
        self.objective, self.space = objective, objective.space(training.n_sources)
        self.labels, self.weights, self._usage = training.labels, training.weights, training.usage
        self._executor, self._starts = executor, starts
        self._take(parts)

    def _take(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        self._first = np.concatenate([[0], np.cumsum(list(self._ask("total", question="n_rows")))])

    @property
    def usage(self) -> Usage:
        assert self._usage is not None  # or there would be no bags to learn from
        return self._usage

    def with_signs(self, signs: Floats) -> "Partitioned":
        if (signs == 1).all():
            return self
        other = copy(self)
        other._take(self._executor.hold(_asked, self._parts, method="with_signs", signs=signs))
        return other

    def value(self, values: Floats, link: Link | None = None) -> float:
        return float(sum(self._ask("value", values=values, link=link)))

    def total(self, question: str, **arguments: Any) -> Any:
        return reduce(add, self._ask("total", question=question, **arguments))

    def extremes(self, values: Floats) -> Extremes:
        moved = [
            Extremes(e.low, e.high, e.low_row + first, e.high_row + first)
            for e, first in zip(self._ask("extremes", values=values), self._first[:-1], strict=True)
        ]
        return Extremes(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        shape = (len(which), self.space.row_length)
        codes, weights = np.empty(shape, np.int32), np.empty(shape)
        for places, _, (some_codes, some_weights) in self._ask_rows(InMemory.rows, which):
            codes[places], weights[places] = some_codes, some_weights
        return codes, weights

    def instances(self, which: Ints) -> Ints:
        instances = np.empty(len(which), np.int64)
        for places, part, numbers in self._ask_rows(InMemory.instances, which):
            instances[places] = numbers + self._starts[part]
        return instances

    def _ask(self, method: str, **arguments: Any) -> Iterator[Any]:
        """Ask every part, and yield the answers in order."""
        return self._executor.ask(_asked, self._parts, method=method, **arguments)

    def _ask_rows(self, function: Callable[..., Any], which: Ints) -> list[tuple[Ints, int, Any]]:
        """Ask about rows: for each part that has some, their places in `which`, its number, and its answer."""
        owner = np.searchsorted(self._first, which, side="right") - 1
        asked = np.unique(owner)
        places = [np.flatnonzero(owner == p) for p in asked]
        numbers = [which[where] - self._first[p] for p, where in zip(asked, places, strict=True)]
        answers = self._executor.ask_each(function, [self._parts[p] for p in asked], numbers)
        return list(zip(places, asked.tolist(), answers, strict=True))


def _asked(problem: InMemory, method: str, **arguments: Any) -> Any:
    return getattr(problem, method)(**arguments)


class _BagsOfRows(NamedTuple):
    """Consecutive bags of rows: the length, the label and the weight of each."""

    lengths: Ints
    labels: NDArray[Any]
    weights: Floats

    @classmethod
    def of(cls, n: int, y: Any, bags: Any, sample_weight: Any) -> "_BagsOfRows":
        """Check labels, ids and weights of n rows, and take those of the bags."""
        if y is None:
            raise InvalidInputError(
                "y is missing: the label of its bag, for every instance.", code="labels-missing", argument="y"
            )
        labels, ids = one_per(y, n, "y"), np.arange(n) if bags is None else one_per(bags, n, "bags")
        begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        if len(begins) != len(np.unique(ids[begins])):
            raise InvalidInputError(
                "Rows of a bag must be contiguous. Sort X, y and bags by bag first.", code="bags-contiguous"
            )
        offsets, names = np.append(begins, n), ids[begins].tolist()
        check_constant(labels, offsets, names, "y")
        weights = np.ones(len(begins))
        if sample_weight is not None:
            repeated = check_weights(sample_weight, n)
            check_constant(repeated, offsets, names, "sample_weight")
            weights = repeated[begins]
        return cls(np.diff(offsets), labels[begins], weights)

    def some(self, a: int, b: int) -> "_BagsOfRows":
        return _BagsOfRows(self.lengths[a:b], self.labels[a:b], self.weights[a:b])


def array_dataset(X: Any, y: Any, bags: Any, sample_weight: Any, nan: str) -> tuple[NDArray[Any], Dataset]:
    """Cut a Dask array where its chunks end, or, if that is inside a bag, where the bag begins.

    Returns the two classes, and the dataset of these parts. Rows of a bag must be contiguous; labels, ids of bags and
    weights are held in memory here, and workers get one label and one weight per bag.
    """
    from dask.delayed import delayed

    if X.ndim != 2 or not all(np.isfinite(size) for size in X.shape):
        raise InvalidInputError(
            f"X must be a Dask array of known shape (n_instances, n_sources), got {X!r}.",
            code="dask-shape",
            argument="X",
            value=X,
        )
    whole = _BagsOfRows.of(X.shape[0], y, bags, sample_weight)
    classes = np.unique(whole.labels)
    if len(classes) != 2:
        raise InvalidInputError(f"y must have two classes, got {len(classes)}.", code="two-classes", argument="y")
    whole = whole._replace(labels=whole.labels == classes[1])
    rows = np.concatenate([[0], np.cumsum(whole.lengths)])  # where bags begin, and the end
    cuts = np.unique(np.searchsorted(rows, [0, *np.cumsum(X.chunks[0])], side="right") - 1)  # in bags
    sizes = tuple(np.diff(rows[cuts]).tolist())
    blocks = X.rechunk((sizes, -1), method="tasks").to_delayed().ravel()  # blocks that fit are not copied
    make = delayed(_row_part, pure=False)
    parts = [make(block, whole.some(a, b), nan) for block, (a, b) in zip(blocks, pairwise(cuts), strict=True)]
    return classes, Dataset.of(parts)


def _row_part(X: NDArray[Any], bags: _BagsOfRows, nan: Any) -> Part:
    n, m = X.shape
    if np.isfinite(X).all() and (bags.weights > 0).all():  # nothing is left out, and rows are sorted by bag
        X = X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
        offsets = np.concatenate([[0], np.cumsum(bags.lengths)])
        whole = Bags(X, offsets, bags.labels, bags.weights, np.ones(n), np.arange(n), [*range(len(bags.lengths))])
        return Part(whole, n, m)
    ids = np.repeat(np.arange(len(bags.lengths)), bags.lengths)
    left_out = np.isnan(X).any(axis=1) if nan == "drop" else np.zeros(n, dtype=bool)
    if (left_out | (bags.weights[ids] == 0)).all():
        return Part(None, n, m)
    return Part(Bags.from_instances(X, bags.labels[ids], ids, bags.weights[ids], nan, one_class=True), n, m)
