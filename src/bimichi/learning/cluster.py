"""Learning on the workers of a Dask cluster: data stay there, reduced to what learning needs.

The data are parts that hold whole bags. What a solver asks is asked of every part: the values of the measure go out,
one row a bag comes back. Dask computes a part again whose worker died.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.learning.bags import Bags, check_weights
from bimichi.learning.gram import Gram
from bimichi.learning.objectives import Objective
from bimichi.learning.parts import Facts, Part, Plan, Totals, measured, read_part, reduced
from bimichi.learning.problem import Extremes, InMemory
from bimichi.learning.scaling import Scale
from bimichi.learning.term_problem import TermsInMemory
from bimichi.learning.training import in_memory
from bimichi.measures.terms import Terms

__all__ = ["OnCluster", "Partitioned", "PartitionedTerms", "array_parts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BATCH = 64
"""How many answers are fetched at once, so that large ones do not pile up here."""


class OnCluster:
    """The workers of a Dask cluster; see `bimichi.learning.streaming.Place`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._read: list[Any] | None = None
        self._kept: list[Any] = []

    def measure(self, items: Sequence[Any]) -> Iterator[Facts]:
        """Read parts, and keep them on the workers until they are reduced."""
        self._read = self.hold(read_part, self._computing(items))
        return self.ask(measured, self._read)

    def reduce(self, items: Sequence[Any], plan: Plan, scale: Scale | None) -> Iterator[Facts]:
        """Reduce parts to problems, which stay on the workers; or to sums, of which nothing does."""
        given, self._read = self._read or self._computing(items), None
        made = self.hold(_facts if plan.keeps == "sums" else _Kept.of, given, plan=plan, scale=scale)
        del given  # so that workers let go of each part when it is reduced
        if plan.keeps != "sums":
            self._kept, made = made, self.hold(_Kept.known, made)
        yield from self._fetched(made)

    def held(self, totals: Totals, plan: Plan) -> "Remote":
        """Return the problems of the parts that have bags."""
        have = [k for k, n in enumerate(totals.n_bags) if n]
        parts = self.hold(_Kept.solvable, [self._kept[k] for k in have])
        self._kept = []
        return Remote(self, parts, totals, np.array([totals.starts[k] for k in have]))

    def _computing(self, items: Sequence[Any]) -> list[Any]:
        """Let the workers compute what is lazy, in one graph; the rest travels with the tasks that read it."""
        lazy = [k for k, item in enumerate(items) if hasattr(item, "__dask_graph__")]
        computing = dict(zip(lazy, self._client.compute([items[k] for k in lazy]), strict=True))
        return [computing.get(k, item) for k, item in enumerate(items)]

    def hold(self, function: Callable[..., Any], parts: Sequence[Any], **arguments: Any) -> list[Any]:
        """Apply a function to each part; the results stay there, and futures are returned."""
        futures: list[Any] = self._client.map(function, parts, pure=False, **arguments)
        return futures

    def ask(self, function: Callable[..., Any], parts: Sequence[Any], **arguments: Any) -> Iterator[Any]:
        """Apply a function to each part, and yield the results in order."""
        return self._fetched(self.hold(function, parts, **arguments))

    def ask_each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Apply a function to each part with an argument of its own, and return the results."""
        answers: list[Any] = self._client.gather(self._client.map(function, parts, arguments, pure=False))
        return answers

    def _fetched(self, futures: list[Any]) -> Iterator[Any]:
        while futures:
            yield from self._client.gather(futures[:BATCH])
            del futures[:BATCH]


class _Kept(NamedTuple):
    """What stays of a part on its worker."""

    facts: Facts
    problem: InMemory | TermsInMemory | None

    @classmethod
    def of(cls, item: Any, plan: Plan, scale: Scale | None) -> "_Kept":
        facts, bags = reduced(item, plan, scale)
        if bags is None:
            return cls(facts, None)
        return cls(facts, in_memory(bags, plan.objective, n_jobs=1, reduce=plan.keeps != "deciding"))

    def known(self) -> Facts:
        return self.facts

    def solvable(self) -> InMemory | TermsInMemory | None:
        return self.problem


def _facts(item: Any, plan: Plan, scale: Scale | None) -> Facts:
    return reduced(item, plan, scale)[0]


class Remote:
    """Problems on the workers; see `bimichi.learning.streaming.Held`."""

    def __init__(self, place: OnCluster, parts: Sequence[Any], totals: Totals, starts: Ints) -> None:
        self._place, self._parts, self._totals, self._starts = place, parts, totals, starts

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> "Partitioned | PartitionedTerms":
        """What a solver asks, for sources turned by these signs."""
        parts = self._parts
        if (signs < 0).any():
            parts = self._place.hold(_asked, parts, method="turned", signs=signs)
        kind = PartitionedTerms if objective.additivity else Partitioned
        return kind(self._place, parts, objective, self._totals, self._starts)


class _InParts:
    """What is asked of all parts; rows are numbered through them."""

    row_length: int

    def __init__(
        self, place: OnCluster, parts: Sequence[Any], objective: Objective, totals: Totals, starts: Ints
    ) -> None:
        self._place, self._parts = place, parts
        self.objective = objective
        self.labels, self.weights = totals.labels, totals.weights
        self._first = np.concatenate([[0], np.cumsum(list(place.ask(_n_rows, parts)))])
        self.instance = _Instances(self, starts)

    def value(self, values: Floats) -> float:
        """J at these values of the measure."""
        return float(sum(self._place.ask(_asked, self._parts, method="value", values=values)))

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now; one number a bag comes back."""
        found = self._place.ask(_asked, self._parts, method="extremes", values=values)
        moved = [
            Extremes(e.low, e.high, e.low_row + first, e.high_row + first)
            for e, first in zip(found, self._first[:-1], strict=True)
        ]
        return Extremes(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def rows(self, which: Ints) -> tuple[NDArray[np.int32], Floats]:
        """Codes and weights of some rows."""
        shape = (len(which), self.row_length)
        codes, weights = np.empty(shape, np.int32), np.empty(shape)
        for places, _, (some_codes, some_weights) in self._ask_rows(_rows, which):
            codes[places], weights[places] = some_codes, some_weights
        return codes, weights

    def _ask_rows(self, function: Callable[..., Any], which: Ints) -> list[tuple[Ints, int, Any]]:
        """Ask about rows: for each part that has some, their places in `which`, its number, and its answer."""
        owner = np.searchsorted(self._first, which, side="right") - 1
        asked = np.unique(owner)
        places = [np.flatnonzero(owner == p) for p in asked]
        numbers = [which[where] - self._first[p] for p, where in zip(asked, places, strict=True)]
        answers = self._place.ask_each(function, [self._parts[p] for p in asked], numbers)
        return list(zip(places, asked.tolist(), answers, strict=True))


class Partitioned(_InParts):
    """A problem in parts; see `bimichi.learning.problem.Problem`."""

    def __init__(
        self, place: OnCluster, parts: Sequence[Any], objective: Objective, totals: Totals, starts: Ints
    ) -> None:
        super().__init__(place, parts, objective, totals, starts)
        self.lattice = objective.lattice(totals.n_sources)
        self.row_length = totals.n_sources

    def gram(self, targets: tuple[float, float]) -> Gram:
        """Add up the quadratic forms of the parts."""
        forms: Iterator[Gram] = self._place.ask(_asked, self._parts, method="gram", targets=targets)
        total = next(forms)
        for form in forms:
            total = total.plus(form)
        return total


class PartitionedTerms(_InParts):
    """A problem in parts whose measure is told by terms; see `bimichi.learning.term_problem.TermProblem`."""

    def __init__(
        self, place: OnCluster, parts: Sequence[Any], objective: Objective, totals: Totals, starts: Ints
    ) -> None:
        super().__init__(place, parts, objective, totals, starts)
        self.terms = Terms(totals.n_sources, objective.additivity == 2)
        self.row_length = self.terms.row_length

    def squares(self, columns: Ints) -> Floats:
        """Add up the quadratic forms of the parts."""
        found: Floats = sum(self._place.ask(_asked, self._parts, method="squares", columns=columns))
        return found

    def slope(self, targets: tuple[float, float], values: Floats) -> Floats:
        """Add up the gradients of the parts."""
        found: Floats = sum(self._place.ask(_asked, self._parts, method="slope", targets=targets, values=values))
        return found


class _Instances:
    """Where rows stood in what the user gave; asked for, not kept."""

    def __init__(self, problem: _InParts, starts: Ints) -> None:
        self._problem, self._starts = problem, starts

    def __getitem__(self, which: Ints) -> Ints:
        found = np.empty(len(which), np.int64)
        for places, part, numbers in self._problem._ask_rows(_instances, which):
            found[places] = numbers + self._starts[part]
        return found


def _asked(problem: Any, method: str, **arguments: Any) -> Any:
    return getattr(problem, method)(**arguments)


def _rows(problem: InMemory | TermsInMemory, which: Ints) -> tuple[NDArray[np.int32], Floats]:
    return problem.rows(which)


def _n_rows(problem: InMemory | TermsInMemory) -> int:
    return len(problem.instance)


def _instances(problem: InMemory | TermsInMemory, rows: Ints) -> Ints:
    return problem.instance[rows]


class _BagsOfRows(NamedTuple):
    """The bags that follow upon each other in some rows: how long each is, its label and its weight."""

    lengths: Ints
    labels: NDArray[Any]
    weights: Floats

    @classmethod
    def of(cls, n: int, y: Any, bags: Any, sample_weight: Any) -> "_BagsOfRows":
        """Check what was given for n rows, and take what each bag needs of it."""
        if y is None:
            raise InvalidInputError("y is missing: the label of its bag, for every instance.")
        given = {"y": np.asarray(y), "bags": np.arange(n) if bags is None else np.asarray(bags)}
        if sample_weight is not None:
            given["sample_weight"] = np.asarray(sample_weight, dtype=np.float64)
        for what, column in given.items():
            if column.shape != (n,):
                raise InvalidInputError(
                    f"{what} has shape {column.shape}; it must have one entry for each of {n:,} rows."
                )
        ids = given.pop("bags")
        begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        if len(begins) != len(np.unique(ids[begins])):
            raise InvalidInputError(
                "Rows of a bag must stand together in a Dask array. Sort X, y and bags by bag first."
            )
        lengths = np.diff(np.append(begins, n))
        for what, column in given.items():
            wrong = np.flatnonzero(column != np.repeat(column[begins], lengths))
            if wrong.size:
                raise InvalidInputError(
                    f"{what} must be the same for all rows of a bag; in {ids[wrong[0]]!r} it is not."
                )
        weights = given["sample_weight"][begins] if "sample_weight" in given else None
        return cls(lengths, given["y"][begins], check_weights(weights, len(begins)))

    def some(self, a: int, b: int) -> "_BagsOfRows":
        return _BagsOfRows(self.lengths[a:b], self.labels[a:b], self.weights[a:b])


def array_parts(X: Any, y: Any, bags: Any, sample_weight: Any, nan: str) -> tuple[NDArray[Any], list[Any]]:
    """Cut a Dask array where its chunks end, or, if that is inside a bag, where the bag begins.

    Returns the two classes, and lazy parts. Of labels, ids and weights only what a bag needs goes to the workers.
    """
    from dask.delayed import delayed

    if X.ndim != 2 or not all(np.isfinite(size) for size in X.shape):
        raise InvalidInputError(f"X must be a Dask array of known shape (n_instances, n_sources), got {X!r}.")
    whole = _BagsOfRows.of(X.shape[0], y, bags, sample_weight)
    classes = np.unique(whole.labels)
    if len(classes) != 2:
        raise InvalidInputError(f"y must have two classes, got {len(classes)}.")
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
        made = Bags(X, offsets, bags.labels, bags.weights, np.ones(n), np.arange(n), range(len(bags.lengths)))
        return Part(made, n, m)
    ids = np.repeat(np.arange(len(bags.lengths)), bags.lengths)
    left_out = np.isnan(X).any(axis=1) if nan == "drop" else np.zeros(n, dtype=bool)
    if (left_out | (bags.weights[ids] == 0)).all():
        return Part(None, n, m)
    return Part(Bags.from_instances(X, bags.labels[ids], ids, bags.weights[ids], nan, one_class=True), n, m)
