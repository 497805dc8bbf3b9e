"""Learning on the workers of a Dask cluster, which hold parts of whole bags, reduced to what learning needs."""

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
from bimichi.fit.parts import Executor, Part, PartSummary, ReductionPlan, Totals, read_part, reduce_part, summarise
from bimichi.fit.problem import ON_CLUSTER, Extremes, InMemory, Problem
from bimichi.link import Link
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_constant, check_weights, one_per
from bimichi.scenes.sample import Scale

BATCH = 64  # how many answers are fetched at once, so that large ones do not pile up here
PATIENCE = 2.0  # seconds between looks at the workers while waiting for answers
LOSSES = 8  # lost workers that a fit survives, for each worker of the cluster
ABSENCES = 60  # looks in a row that may find no worker
REMEDY = "Look at their logs; if they run out of memory, give them more, or make the parts smaller."


class ClusterExecutor(Executor):
    """The workers of a Dask cluster."""

    offers = ON_CLUSTER

    def __init__(self, client: Any) -> None:
        self._client = client
        self._read: list[Any] | None = None
        self._kept: list[Any] = []
        self._alive: set[str] = set()
        self._lost, self._without, self._most = 0, 0, 0

    def summarise(self, items: Sequence[Any]) -> Iterator[PartSummary]:
        self._read = self.hold(read_part, self._computing(items))
        return self.ask(summarise, self._read)

    def reduce(self, items: Sequence[Any], plan: ReductionPlan, scale: Scale | None) -> Iterator[PartSummary]:
        given, self._read = self._read or self._computing(items), None
        made = self.hold(_summary_and_problem, given, plan=plan, scale=scale)
        del given  # so that workers release each part when it is reduced
        summaries = self.hold(itemgetter(0), made)
        if plan.keep != "sums":
            self._kept = made  # problems stay on the workers
        del made
        yield from self._fetched(summaries)

    def problem(self, totals: Totals, plan: ReductionPlan, n_jobs: int | None) -> "Partitioned":
        have = [k for k, n in enumerate(totals.n_bags) if n]
        parts = self.hold(itemgetter(1), [self._kept[k] for k in have])
        self._kept = []
        return Partitioned(self, parts, plan, totals, np.array([totals.starts[k] for k in have]))

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


def _summary_and_problem(item: Any, plan: ReductionPlan, scale: Scale | None) -> tuple[PartSummary, InMemory | None]:
    summary, bags = reduce_part(item, plan, scale)
    problem = None if bags is None else InMemory(bags, plan.objective, n_jobs=1, reduce=plan.keep != "relevant")
    return summary, problem


class Partitioned(Problem):
    """A problem in parts on the workers, whose rows are numbered consecutively through all of them."""

    offers = ON_CLUSTER

    def __init__(
        self, executor: ClusterExecutor, parts: Sequence[Any], plan: ReductionPlan, totals: Totals, starts: Ints
    ) -> None:
        self.objective, self.space = plan.objective, plan.objective.space(totals.n_sources)
        self.labels, self.weights = totals.bags.labels, totals.bags.weights
        self._executor, self._starts = executor, starts
        self._take(parts)

    def _take(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        self._first = np.concatenate([[0], np.cumsum(list(self._ask("total", question="n_rows")))])

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
        found = np.empty(len(which), np.int64)
        for places, part, numbers in self._ask_rows(InMemory.instances, which):
            found[places] = numbers + self._starts[part]
        return found

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
            given = check_weights(sample_weight, n)
            check_constant(given, offsets, names, "sample_weight")
            weights = given[begins]
        return cls(np.diff(offsets), labels[begins], weights)

    def some(self, a: int, b: int) -> "_BagsOfRows":
        return _BagsOfRows(self.lengths[a:b], self.labels[a:b], self.weights[a:b])


def array_parts(X: Any, y: Any, bags: Any, sample_weight: Any, nan: str) -> tuple[NDArray[Any], list[Any]]:
    """Cut a Dask array where its chunks end, or, if that is inside a bag, where the bag begins.

    Returns the two classes, and lazy parts; workers get one label and one weight per bag.
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
    return classes, [make(block, whole.some(a, b), nan) for block, (a, b) in zip(blocks, pairwise(cuts), strict=True)]


def _row_part(X: NDArray[Any], bags: _BagsOfRows, nan: Any) -> Part:
    n, m = X.shape
    if np.isfinite(X).all() and (bags.weights > 0).all():  # nothing is left out, and rows are sorted by bag
        X = X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
        offsets = np.concatenate([[0], np.cumsum(bags.lengths)])
        made = Bags(X, offsets, bags.labels, bags.weights, np.ones(n), np.arange(n), [*range(len(bags.lengths))])
        return Part(made, n, m)
    ids = np.repeat(np.arange(len(bags.lengths)), bags.lengths)
    left_out = np.isnan(X).any(axis=1) if nan == "drop" else np.zeros(n, dtype=bool)
    if (left_out | (bags.weights[ids] == 0)).all():
        return Part(None, n, m)
    return Part(Bags.from_instances(X, bags.labels[ids], ids, bags.weights[ids], nan, one_class=True), n, m)
