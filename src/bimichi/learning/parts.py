"""Parts of the training data, such as scenes: each is read, reduced to what learning needs, and released."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.learning.bags import Bags
from bimichi.learning.objectives import Objective
from bimichi.learning.problem import InMemory
from bimichi.learning.scaling import Scale
from bimichi.learning.scene import Scene, Scenes, join_bags
from bimichi.learning.spaces.base import Usage
from bimichi.learning.spaces.gram import Gram
from bimichi.learning.training import bag_ranges

__all__ = ["LazyScene", "Part", "PartSummary", "ReductionPlan", "Totals", "read_part", "reduce_part", "summarise"]


class Part(NamedTuple):
    """Whole bags (None if no instance is in a labelled one), and what they are of."""

    bags: Bags | None
    n_given: int  # instances, left out ones included
    n_sources: int
    source_names: tuple[str, ...] = ()
    name: str = ""  # of the scene; rows of an array have none


class ReductionPlan(NamedTuple):
    """What to keep of each part.

    Attributes
    ----------
    objective : Objective
        What is minimised.
    keep : {"sums", "relevant", "merged", "all"}
        The quadratic form alone; instances that can decide their bags; all that differ; or all.
    bag_ranges : bool
        Whether the extremes of each source in each bag are asked for, to learn signs.
    """

    objective: Objective
    keep: Literal["sums", "relevant", "merged", "all"]
    bag_ranges: bool


class PartSummary(NamedTuple):
    """What is known of a part once it has been read; small, whatever its size."""

    part: Part  # without its bags
    low: Floats  # the least and the greatest value of each source
    high: Floats
    labels: Flags  # of bags
    weights: Floats
    bag_low: Floats  # the same of each bag, if signs are learned
    bag_high: Floats
    usage: Usage | None = None
    gram: Gram | None = None


class LazyScene:
    """One scene of a lazy sequence, to be read where it is used."""

    def __init__(self, scenes: Scenes, name: str) -> None:
        self._scenes, self._name = scenes, name

    def __call__(self) -> Scene:
        """Read it; an error names it."""
        try:
            return self._scenes[self._name]
        except InvalidInputError as error:
            if repr(self._name) in str(error):
                raise
            raise InvalidInputError(f"Scene {self._name!r}: {error}") from error


def read_part(item: Any, nan: Literal["raise", "drop"] = "raise") -> Part:
    """Return a part in whatever form it comes: itself, a scene, or lazily one of them. Its bags may be of one class."""
    if hasattr(item, "__dask_graph__"):
        item = item.compute(scheduler="threads")
    scene = item() if callable(item) else Scene.load(item) if isinstance(item, str | PathLike) else item
    if isinstance(scene, Part):
        return scene
    if not isinstance(scene, Scene):
        raise InvalidInputError(f"A scene must be a Scene, or give one, got {type(scene).__name__}.")
    bags = join_bags([scene], one_class=True, nan=nan) if scene.labels is None or len(scene.labels) else None
    return Part(bags, int(np.prod(scene.shape)), scene.n_sources, scene.source_names, scene.name)


def summarise(item: Any) -> PartSummary:
    """Read a part for its size and the range of its sources alone."""
    part = read_part(item)
    m, none = part.n_sources, np.empty(0)
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    if part.bags is not None:
        low, high = (np.array([of(column) for column in part.bags.X.T], dtype=float) for of in (np.min, np.max))
    ranges = np.empty((0, m))
    return PartSummary(part._replace(bags=None), low, high, none.astype(bool), none, ranges, ranges)


def reduce_part(
    item: Any, plan: ReductionPlan, scale: Scale | None = None, n_jobs: int | None = 1
) -> tuple[PartSummary, Bags | None]:
    """Read a part; return what is known of it, and what is kept of its instances.

    Nothing is kept of one without labelled bags, nor of one that leaves [-1, 1], as its summary shows.

    Parameters
    ----------
    item : Part, scene, or what gives one
        See `read_part`.
    plan : ReductionPlan
        What to keep.
    scale : Scale, optional
        How sources are mapped first.
    n_jobs : int, optional
        Threads.
    """
    part = read_part(item)
    if part.bags is not None and scale is not None:
        part = part._replace(bags=scale.bags(part.bags))
    summary, bags, objective = summarise(part), part.bags, plan.objective
    if bags is None or summary.low.min() < -1 or summary.high.max() > 1:
        return summary, None
    usage = objective.space(bags.n_sources).count_usage(bags.X, n_jobs)
    summary = summary._replace(labels=bags.labels, weights=bags.weights, usage=usage)
    if plan.bag_ranges:
        ranges = bag_ranges(bags)
        summary = summary._replace(bag_low=ranges.low, bag_high=ranges.high)
    if plan.keep == "sums":
        form = InMemory(bags, objective, n_jobs).total("gram", targets=objective.parameters)
        return summary._replace(gram=form), None
    if plan.keep == "all":
        return summary, bags
    kept = bags.merged(n_jobs)
    if plan.keep == "relevant":
        kept = kept.relevant(objective.relevant, objective.zero_bound, n_jobs)
    return summary, kept


class Totals:
    """The summaries of all parts, checked and added up as they come.

    Attributes
    ----------
    starts : list of int
        The number of instances before each part, and of all.
    n_bags : list of int
        Of each part.
    low, high, labels, weights, bag_low, bag_high, usage, gram
        As in `PartSummary`, of all parts.
    """

    def __init__(self, summaries: Iterable[PartSummary]) -> None:
        self.starts: list[int] = [0]
        self.n_bags: list[int] = []
        self.usage: Usage | None = None
        self.gram: Gram | None = None
        first: Part | None = None
        names: set[str] = set()
        columns: list[tuple[NDArray[Any], ...]] = []
        for one in summaries:
            first = first or one.part
            _check_joins(one.part, first, names)
            self.starts.append(self.starts[-1] + one.part.n_given)
            self.n_bags.append(len(one.labels))
            if one.usage is not None:
                self.usage = one.usage if self.usage is None else self.usage + one.usage
            if one.gram is not None:
                self.gram = one.gram if self.gram is None else self.gram + one.gram
            columns.append((one.low, one.high, one.labels, one.weights, one.bag_low, one.bag_high))
        if first is None:
            raise InvalidInputError("There are no scenes to learn from; give at least one.")
        low, high, labels, weights, bag_low, bag_high = zip(*columns, strict=True)
        self.n_sources = first.n_sources
        self.low: Floats = np.min(low, axis=0)
        self.high: Floats = np.max(high, axis=0)
        self.labels: Flags = np.concatenate(labels)
        self.weights: Floats = np.concatenate(weights)
        self.bag_low: Floats = np.concatenate(bag_low)
        self.bag_high: Floats = np.concatenate(bag_high)


def _check_joins(part: Part, first: Part, names: set[str]) -> None:
    """Raise if a part is of other sources than the first, or a scene of its name was there before."""
    if part.n_sources != first.n_sources or part.source_names != first.source_names:
        raise InvalidInputError(
            f"Scene {part.name!r} has {part.n_sources} sources, {', '.join(part.source_names)}, but scene "
            f"{first.name!r} has {first.n_sources}, {', '.join(first.source_names)}; all must have the same."
        )
    if part.name in names:
        raise InvalidInputError(f"Two scenes are named {part.name!r}; names distinguish their bags.")
    if part.name:
        names.add(part.name)
