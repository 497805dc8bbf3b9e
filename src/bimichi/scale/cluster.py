"""Learning from data that stay where they are: on the workers of a Dask cluster, or in parts in this process.

The data are parts that hold whole bags. What a solver asks is asked of every part: the values of the measure go out,
one row a bag comes back. Dask runs a part again whose worker died.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bimichi.bags import Bags
from bimichi.errors import InvalidInputError
from bimichi.gram import Gram
from bimichi.objectives import Objective
from bimichi.planes import check_n_jobs
from bimichi.problem import Extremes, InMemory
from bimichi.scaling import Scale
from bimichi.scene import Scene, Scenes, join_bags
from bimichi.term_problem import TermsInMemory
from bimichi.terms import Terms
from bimichi.training import BagRanges, bag_ranges, in_memory, usage

__all__ = ["Partitioned", "PartitionedTerms", "Parts", "training_from"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Holder(Protocol):
    """Who keeps the parts, and runs functions where they are."""

    def hold(self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> list[Any]:
        """Apply a function to each part; the results stay there, and what stands for them is returned."""
        ...

    def ask(self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> list[Any]:
        """Apply a function to each part, and return the results."""
        ...

    def ask_each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Apply a function to each part with an argument of its own, and return the results."""
        ...


class _Here:
    """Parts in this process, a thread each; lazy ones are computed by Dask's threads."""

    def __init__(self, n_jobs: int | None) -> None:
        self._jobs = check_n_jobs(n_jobs)

    def hold(self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> list[Any]:
        """Apply a function to each part."""
        with ThreadPoolExecutor(self._jobs) as pool:
            return list(pool.map(lambda part: function(_computed(part), *arguments), parts))

    ask = hold

    def ask_each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Apply a function to each part with an argument of its own; these are small questions."""
        return [function(part, argument) for part, argument in zip(parts, arguments, strict=True)]


class _OnCluster:
    """Parts on the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def hold(self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> list[Any]:
        """Apply a function to each part; futures are returned."""
        held = [self._client.compute(part) if hasattr(part, "__dask_graph__") else part for part in parts]
        return [self._client.submit(function, part, *arguments, pure=False) for part in held]

    def ask(self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> list[Any]:
        """Apply a function to each part, and gather the results."""
        found: list[Any] = self._client.gather(self.hold(function, parts, *arguments))
        return found

    def ask_each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Apply a function to each part with an argument of its own, and gather the results."""
        pairs = zip(parts, arguments, strict=True)
        found: list[Any] = self._client.gather(
            [self._client.submit(function, part, argument, pure=False) for part, argument in pairs]
        )
        return found


def _computed(part: Any) -> Any:
    return part.compute(scheduler="threads") if hasattr(part, "__dask_graph__") else part


def _holder(n_jobs: int | None) -> Holder:
    try:
        from distributed import get_client

        return _OnCluster(get_client())
    except (ImportError, ValueError):  # not installed, or no client is active
        return _Here(n_jobs)


class Parts:
    """Bags in parts; see `bimichi.training.Training`."""

    def __init__(self, holder: Holder, parts: Sequence[Any], n_sources: int, starts: Ints) -> None:
        self._holder = holder
        self._parts = parts
        self._starts = starts  # number of instances before each part
        self.n_sources = n_sources
        self._problems: dict[Objective, list[Any]] = {}

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each source."""
        lows, highs = zip(*self._holder.ask(_ranges, self._parts), strict=True)
        return np.min(lows, axis=0).astype(np.float64), np.max(highs, axis=0).astype(np.float64)

    def scaled(self, scale: Scale) -> "Parts":
        """The same bags with sources mapped."""
        return Parts(self._holder, self._holder.hold(_scaled, self._parts, scale), self.n_sources, self._starts)

    def bag_ranges(self) -> BagRanges:
        """The extremes of each source in each bag."""
        return BagRanges(
            *(np.concatenate(column) for column in zip(*self._holder.ask(_bag_ranges, self._parts), strict=True))
        )

    def problem(self, objective: Objective, signs: Floats, n_jobs: int | None) -> "Partitioned | PartitionedTerms":
        """What a solver asks, for sources turned by these signs."""
        if objective not in self._problems:
            self._problems[objective] = self._holder.hold(_problem, self._parts, objective)
        held = self._holder.hold(_turned, self._problems[objective], signs)
        kind = PartitionedTerms if objective.additivity else Partitioned
        return kind(self._holder, held, objective, self.n_sources, self._starts)

    def usage(self, objective: Objective, signs: Floats, weighted: bool, n_jobs: int | None) -> NDArray[np.int64]:
        """How many instances use each element, or term."""
        total: NDArray[np.int64] = np.sum(self._holder.ask(_usage, self._parts, objective, signs, weighted), axis=0)
        return total


class _InParts:
    """What is asked of all parts; rows are numbered through them."""

    def __init__(
        self, holder: Holder, parts: Sequence[Any], objective: Objective, row_length: int, starts: Ints
    ) -> None:
        self._holder = holder
        self._parts = parts
        self.objective = objective
        self._row_length = row_length
        facts = holder.ask(_facts, parts)
        self.labels = np.concatenate([fact.labels for fact in facts])
        self.weights = np.concatenate([fact.weights for fact in facts])
        self._first = np.concatenate([[0], np.cumsum([fact.n_rows for fact in facts])])
        self.instance = _Instances(self, starts)

    def value(self, values: Floats) -> float:
        """J at these values of the measure."""
        return float(sum(self._holder.ask(_value, self._parts, values)))

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, the rows that can decide it now; one number a bag comes back."""
        found = self._holder.ask(_extremes, self._parts, values)
        moved = [
            Extremes(e.low, e.high, e.low_row + first, e.high_row + first)
            for e, first in zip(found, self._first[:-1], strict=True)
        ]
        return Extremes(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def rows(self, which: Ints) -> tuple[NDArray[np.int32], Floats]:
        """Codes and weights of some rows."""
        shape = (len(which), self._row_length)
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
        answers = self._holder.ask_each(function, [self._parts[p] for p in asked], numbers)
        return list(zip(places, asked.tolist(), answers, strict=True))


class Partitioned(_InParts):
    """A problem in parts; see `bimichi.problem.Problem`."""

    def __init__(
        self, holder: Holder, parts: Sequence[Any], objective: Objective, n_sources: int, starts: Ints
    ) -> None:
        self.lattice = objective.lattice(n_sources)
        super().__init__(holder, parts, objective, n_sources, starts)

    def gram(self, targets: tuple[float, float]) -> Gram:
        """Add up the quadratic forms of the parts."""
        forms = self._holder.ask(_gram, self._parts, targets)
        return Gram(
            sum((form.matrix for form in forms[1:]), forms[0].matrix),
            np.sum([form.linear for form in forms], axis=0),
            float(sum(form.constant for form in forms)),
        )


class PartitionedTerms(_InParts):
    """A problem in parts whose measure is 2-additive; see `bimichi.term_problem.TermProblem`."""

    def __init__(
        self, holder: Holder, parts: Sequence[Any], objective: Objective, n_sources: int, starts: Ints
    ) -> None:
        self.terms = Terms(n_sources, objective.additivity == 2)
        super().__init__(holder, parts, objective, self.terms.row_length, starts)

    def squares(self, columns: Ints) -> Floats:
        """Add up the quadratic forms of the parts."""
        return np.asarray(np.sum(self._holder.ask(_squares, self._parts, columns), axis=0))

    def slope(self, targets: tuple[float, float], values: Floats) -> Floats:
        """Add up the gradients of the parts."""
        return np.asarray(np.sum(self._holder.ask(_slope, self._parts, targets, values), axis=0))


class _Instances:
    """Where rows stood in what the user gave; asked for, not kept."""

    def __init__(self, problem: _InParts, starts: Ints) -> None:
        self._problem, self._starts = problem, starts

    def __getitem__(self, which: Ints) -> Ints:
        found = np.empty(len(which), np.int64)
        for places, part, numbers in self._problem._ask_rows(_instances, which):
            found[places] = numbers + self._starts[part]
        return found


class _Part(NamedTuple):
    """Whole bags, and how many instances the user gave for them, left out ones included."""

    bags: Bags
    n_given: int


class _Facts(NamedTuple):
    labels: NDArray[np.bool_]
    weights: Floats
    n_rows: int


Held = InMemory | TermsInMemory


def _facts(problem: Held) -> _Facts:
    return _Facts(problem.labels, problem.weights, len(problem.instance))


def _instances(problem: Held, rows: Ints) -> Ints:
    return problem.instance[rows]


def _turned(problem: Held, signs: Floats) -> Held:
    return problem.turned(signs)


def _value(problem: Held, values: Floats) -> float:
    return problem.value(values)


def _extremes(problem: Held, values: Floats) -> Extremes:
    return problem.extremes(values)


def _rows(problem: Held, which: Ints) -> tuple[NDArray[np.int32], Floats]:
    return problem.rows(which)


def _gram(problem: InMemory, targets: tuple[float, float]) -> Gram:
    return problem.gram(targets)


def _squares(problem: TermsInMemory, columns: Ints) -> Floats:
    return problem.squares(columns)


def _slope(problem: TermsInMemory, targets: tuple[float, float], values: Floats) -> Floats:
    return problem.slope(targets, values)


def _ranges(part: _Part) -> tuple[NDArray[Any], NDArray[Any]]:
    return part.bags.X.min(axis=0), part.bags.X.max(axis=0)


def _scaled(part: _Part, scale: Scale) -> _Part:
    return part._replace(bags=scale.bags(part.bags))


def _bag_ranges(part: _Part) -> BagRanges:
    return bag_ranges(part.bags)


def _problem(part: _Part, objective: Objective) -> Held:
    return in_memory(part.bags, objective, n_jobs=1)


def _usage(part: _Part, objective: Objective, signs: Floats, weighted: bool) -> NDArray[np.int64]:
    return usage(part.bags, objective, signs, weighted, n_jobs=1)


def _shape(part: _Part) -> tuple[int, int, bool, bool]:
    labels = part.bags.labels
    return part.n_given, part.bags.n_sources, bool(labels.any()), bool((~labels).any())


def training_from(model: Any, X: Any, y: Any, bags: Any, sample_weight: Any) -> Parts:
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
    holder = _holder(model.n_jobs)
    if isinstance(X, Scenes | list | tuple):
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError("Scenes bring labels and bags; give fit nothing besides.")
        model.classes_ = np.array([0, 1])
        items = [_Named(X, name) for name in X.names] if isinstance(X, Scenes) else list(X)
        parts = holder.hold(_scene_part, items)
    else:
        parts = _array_parts(model, holder, X, y, bags, sample_weight)
    shapes = holder.ask(_shape, parts)
    widths = {shape[1] for shape in shapes}
    if len(widths) > 1:
        raise InvalidInputError(f"All parts must have the same sources; some have {min(widths)}, some {max(widths)}.")
    if not any(shape[2] for shape in shapes) or not any(shape[3] for shape in shapes):
        raise InvalidInputError("All bags are of one class. Learning needs at least one bag of each class.")
    model.n_features_in_ = widths.pop()
    starts = np.concatenate([[0], np.cumsum([shape[0] for shape in shapes])])
    return Parts(holder, parts, model.n_features_in_, starts)


class _Named:
    """One scene of a lazy sequence, to be read where it is used."""

    def __init__(self, scenes: Scenes, name: str) -> None:
        self._scenes, self._name = scenes, name

    def __call__(self) -> Scene:
        return self._scenes[self._name]


def _scene_part(item: Any) -> _Part:
    """Bags of a scene in any form; bags of one class are fine in a part."""
    scene = item() if callable(item) else Scene.load(item) if isinstance(item, str | PathLike) else item
    if not isinstance(scene, Scene):
        raise InvalidInputError(f"A scene must be a Scene, or give one, got {type(scene).__name__}.")
    return _Part(join_bags([scene], one_class=True), int(np.prod(scene.shape)))


def _array_parts(model: Any, holder: Holder, X: Any, y: Any, bags: Any, sample_weight: Any) -> list[Any]:
    """Cut a Dask array where its chunks end, or, if that is inside a bag, where the bag begins."""
    from dask.delayed import delayed

    if X.ndim != 2 or not all(np.isfinite(size) for size in X.shape):
        raise InvalidInputError(f"X must be a Dask array of known shape (n_instances, n_sources), got {X!r}.")
    if y is None:
        raise InvalidInputError("y is missing: the label of its bag, for every instance.")
    n = X.shape[0]
    y, ids = np.asarray(y), np.arange(n) if bags is None else np.asarray(bags)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    for what, given in (("y", y), ("bags", ids), ("sample_weight", weight)):
        if given.shape != (n,):
            raise InvalidInputError(f"{what} has shape {given.shape}; it must have one entry for each of {n:,} rows.")
    model.classes_ = np.unique(y)
    if len(model.classes_) != 2:
        raise InvalidInputError(f"y must have two classes, got {len(model.classes_)}.")
    begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(begins) != len(np.unique(ids)):
        raise InvalidInputError("Rows of a bag must stand together in a Dask array. Sort X, y and bags by bag first.")
    ends = np.cumsum(X.chunks[0])
    cuts = np.unique(np.concatenate([[0], begins[np.searchsorted(begins, ends[:-1], side="right") - 1], [n]]))
    positive = y == model.classes_[1]
    make = delayed(_row_part, pure=False)
    X = X.rechunk({1: -1})
    return holder.hold(
        _same,
        [make(X[a:b], positive[a:b], ids[a:b], weight[a:b], model.nan) for a, b in pairwise(cuts)],
    )


def _row_part(X: NDArray[Any], y: Any, ids: Any, weight: Any, nan: Any) -> _Part:
    return _Part(Bags.from_instances(X, y, ids, weight, nan, one_class=True), len(X))


def _same(part: Any) -> Any:
    return part
