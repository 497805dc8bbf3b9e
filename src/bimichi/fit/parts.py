"""Parts of the training data, such as scenes: each is read, reduced to what learning needs, and released."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

import bimichi.scenes.sample as sampling
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.fit.direction import ROWS as POLARITY_ROWS
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import InMemory, Problem
from bimichi.fit.spaces.base import Usage
from bimichi.fit.spaces.sums import Gram
from bimichi.fit.train import BagLabels
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import Scale
from bimichi.scenes.scene import Scene, Scenes, check_joins, join_bags

Keep = Literal["sums", "relevant", "merged", "all"]
"""Of a part: the quadratic form, the instances that may decide a bag, those that differ, or all."""


class Part(NamedTuple):
    """Whole bags (None if no instance is in a labelled one), and where they come from."""

    bags: Bags | None
    n_given: int  # number of instances, including those that were left out
    n_sources: int
    source_names: tuple[str, ...] = ()
    name: str = ""  # of the scene; rows of an array have none
    scene: Scene | None = None


class ReductionPlan(NamedTuple):
    """What to keep of each part."""

    objective: Objective
    keep: Keep
    groups: int = 0  # of neighbouring bags of which samples are drawn, to learn signs; 0 for none


class PartSummary(NamedTuple):
    """Summary statistics of one part."""

    part: Part  # without its bags and its scene
    low: Floats  # the least and the greatest value of each source
    high: Floats
    bags: BagLabels
    usage: Usage | None = None
    gram: Gram | None = None
    samples: tuple[sampling.Sample, ...] = ()


class Remembered:
    """A part that has been read, and what it was reduced to: for learning again and again while other parts change."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._reduced: dict[ReductionPlan, tuple[PartSummary, Bags | None]] = {}

    def __call__(self) -> Part:
        """Return the part, as `read_part` asks for it."""
        return self._part

    def reduced(self, plan: ReductionPlan, n_jobs: int | None) -> tuple[PartSummary, Bags | None]:
        """Return what `reduce_part` makes of it, made once for each plan."""
        if plan not in self._reduced:
            self._reduced[plan] = reduce_part(self._part, plan, None, n_jobs)
        return self._reduced[plan]


def read_scene(scenes: Scenes, name: str) -> Scene:
    """Read one scene of a lazy sequence; an error names it."""
    try:
        return scenes[name]
    except InvalidInputError as error:
        if repr(name) in str(error):
            raise
        raise InvalidInputError(
            f"Scene {name!r}: {error}", code=error.code, argument=error.argument, value=error.value
        ) from error


def read_part(item: Any, nan: Literal["raise", "drop"] = "raise") -> Part:
    """Return a part from a part, a scene, a path, or a lazy form of these; its bags may be of one class."""
    if hasattr(item, "__dask_graph__"):
        item = item.compute(scheduler="threads")
    scene = item() if callable(item) else Scene.load(item) if isinstance(item, str | PathLike) else item
    if isinstance(scene, Part):
        return scene
    if not isinstance(scene, Scene):
        raise InvalidInputError(
            f"A scene must be a Scene, its path, or a function that returns it, got {type(scene).__name__}.",
            code="scene-kind",
            value=scene,
        )
    bags = join_bags([scene], one_class=True, nan=nan) if scene.labels is None or len(scene.labels) else None
    return Part(bags, int(np.prod(scene.shape)), scene.n_sources, scene.source_names, scene.name, scene)


def summarise(item: Any) -> PartSummary:
    """Read a part for its size and the range of its sources alone."""
    part = read_part(item)
    low, high = np.full(part.n_sources, np.inf), np.full(part.n_sources, -np.inf)
    if part.bags is not None:
        low, high = (np.array([of(column) for column in part.bags.X.T], dtype=float) for of in (np.min, np.max))
    return PartSummary(part._replace(bags=None, scene=None), low, high, BagLabels(np.empty(0, bool), np.empty(0)))


def reduce_part(
    item: Any, plan: ReductionPlan, scale: Scale | None = None, n_jobs: int | None = 1
) -> tuple[PartSummary, Bags | None]:
    """Read and scale a part; return its summary, and what the plan keeps of its instances.

    Nothing is kept of one without labelled bags, nor of one that leaves [-1, 1], as its summary shows.
    """
    if isinstance(item, Remembered) and scale is None:
        return item.reduced(plan, n_jobs)
    part = read_part(item)
    if part.bags is not None and scale is not None:
        part = part._replace(bags=scale.bags(part.bags))
    summary, bags, objective = summarise(part), part.bags, plan.objective
    if bags is None or summary.low.min() < -1 or summary.high.max() > 1:
        return summary, None
    usage = objective.space(bags.n_sources).count_usage(bags.X, n_jobs)
    samples = _samples(part, plan.groups, scale) if plan.groups else ()
    summary = summary._replace(bags=BagLabels(bags.labels, bags.weights), usage=usage, samples=samples)
    if plan.keep == "sums":
        form = InMemory(bags, objective, n_jobs).total("gram", targets=objective.parameters)
        return summary._replace(gram=form), None
    if plan.keep == "all":
        return summary, bags
    kept = bags.merged(n_jobs)
    if plan.keep == "relevant":
        kept = kept.relevant(objective.relevant, objective.zero_bound, n_jobs)
    return summary, kept


def _samples(part: Part, n_groups: int, scale: Scale | None) -> tuple[sampling.Sample, ...]:
    """Draw samples of a part whose bags are scaled already."""
    assert part.bags is not None
    labels = None if part.scene is None else sampling.pixel_labels(part.scene)
    if part.scene is None or labels is None:
        return tuple(sampling.grouped_bags(part.name, part.bags, sampling.bag_groups(part.bags, None, n_groups)))
    region = sampling.strips(part.scene, n_groups) if n_groups > 1 else None
    found = sampling.grouped_pixels(part.scene, part.scene.sources, labels, region, POLARITY_ROWS)
    return tuple(one if scale is None else sampling.scaled_sample(one, scale) for one in found)


class Totals:
    """The summaries of all parts, checked and added up as they come: what `PartSummary` has, of all parts."""

    def __init__(self, summaries: Iterable[PartSummary]) -> None:
        self.starts: list[int] = [0]  # the number of instances before each part, and of all
        self.n_bags: list[int] = []  # of each part
        self.usage: Usage | None = None
        self.gram: Gram | None = None
        scenes: dict[str, tuple[str, ...]] = {}
        lows, highs, bags = [], [], []
        samples: list[sampling.Sample] = []
        for one in summaries:
            if one.part.source_names:  # rows of an array have none
                check_joins(one.part, scenes)
            self.starts.append(self.starts[-1] + one.part.n_given)
            self.n_bags.append(len(one.bags.labels))
            if one.usage is not None:
                self.usage = one.usage if self.usage is None else self.usage + one.usage
            if one.gram is not None:
                self.gram = one.gram if self.gram is None else self.gram + one.gram
            lows.append(one.low)
            highs.append(one.high)
            bags.append(one.bags)
            samples += one.samples
        if not bags:
            raise InvalidInputError("There are no scenes to learn from; give at least one.", code="scenes-empty")
        self.low: Floats = np.min(lows, axis=0)
        self.high: Floats = np.max(highs, axis=0)
        self.n_sources = len(self.low)
        self.samples = samples
        self.bags = BagLabels(*(np.concatenate(column) for column in zip(*bags, strict=True)))


class Executor(Protocol):
    """Where parts are read and reduced."""

    offers: frozenset[str]  # what its problems can answer; see `bimichi.fit.problem`

    def summarise(self, items: Sequence[Any]) -> Iterator[PartSummary]:
        """Read parts for their ranges; those that would be costly to read again are kept from now on."""

    def reduce(self, items: Sequence[Any], plan: ReductionPlan, scale: Scale | None) -> Iterator[PartSummary]:
        """Read and reduce parts, and keep what the plan says."""

    def problem(self, totals: Totals, plan: ReductionPlan, n_jobs: int | None) -> Problem:
        """Return the problem of what `reduce` kept."""
