"""What candidates learn from, made once per unit and added up over those that are not left out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.candidates import Candidate
from bimichi.fit.objectives import Objective
from bimichi.fit.parts import Part, read_part
from bimichi.fit.problem import IN_MEMORY, InMemory, Problem, Summed
from bimichi.fit.spaces.base import Sums, Usage
from bimichi.fit.spaces.terms import TermSpace
from bimichi.fit.streaming import in_threads, joined_bags
from bimichi.fit.train import Training
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import (
    Sample,
    Scale,
    bag_groups,
    grouped_bags,
    grouped_pixels,
    pixel_labels,
    scaled_sample,
    select_bags,
    strips,
)

KEPT = 1 << 30  # bytes of scenes that stay in memory

PlaneScale = Callable[[NDArray[Any]], NDArray[Any]]
"""Makes a source of a plane by comparing the values of the scene, such as `bimichi.sources.rarity`."""


@dataclass(eq=False)
class Unit:
    """A scene, or a group of bags, that is left out as a whole.

    Attributes
    ----------
    name : str
        Of the scene, and of the group in it.
    sample : Sample
        Rows to score by, with sources as given.
    rarity : Sample, optional
        The same rows, each value by how rare it is.
    bags : Bags, optional
        Labelled bags, if there are any.
    prepared : dict
        What candidates learn from, by candidate.
    """

    name: str
    sample: Sample
    rarity: Sample | None = None
    bags: Bags | None = None
    prepared: dict[Any, Any] = field(default_factory=dict)


class Signed(NamedTuple):
    """How sources enter: learned scale, if any, and signs."""

    scale: Scale | None
    signs: Floats


class Material:
    """Training data that can be read again.

    Parameters
    ----------
    items : sequence
        `Bags`, or scenes in any form that `bimichi.fit.parts.read_part` takes.
    n_groups : int
        Into how many groups of neighbouring bags single scenes are divided; 1 if there are several scenes.
    groups : sequence, optional
        Of `Bags`: the group of every bag.
    nan : {"raise", "drop"}
        Whether instances with NaN are an error.
    n_jobs : int
        Number of threads.
    """

    def __init__(self, items: Sequence[Any], n_groups: int, groups: Any, nan: Any, n_jobs: int) -> None:
        self._items, self._n_groups, self._groups, self._nan, self._n_jobs = items, n_groups, groups, nan, n_jobs
        self._kept: dict[int, Part] = {}
        self._left = KEPT

    def __len__(self) -> int:
        return len(self._items)

    def parts(self, function: Callable[[Part], Any]) -> Iterator[Any]:
        """Read all parts, in order, and yield what the function makes of each."""

        def run(k: int) -> tuple[int, Part, Any]:
            item = self._items[k]
            whole = Part(item, len(item.X), item.n_sources) if isinstance(item, Bags) else None
            part = self._kept.get(k) or whole or read_part(item, self._nan)
            return k, part, function(part)

        for k, part, made in in_threads(run, range(len(self._items)), self._n_jobs):
            size = _size(part)
            if k not in self._kept and size <= self._left:
                self._kept[k] = part
                self._left -= size
            yield made

    def regions(self, part: Part) -> tuple[Ints | None, Ints | None]:
        """Return the group of every pixel, and that of every bag, of a part; None where all are in one."""
        if part.scene is None:
            assert part.bags is not None
            found = bag_groups(part.bags, self._groups, self._n_groups)
            return None, found
        if self._n_groups < 2 or len(part.scene.shape) != 2:
            return None, None
        region = strips(part.scene, self._n_groups)
        if part.bags is None:
            return region, None
        middles = (part.bags.offsets[:-1] + part.bags.offsets[1:]) // 2
        return region, region.ravel()[part.bags.instance[middles]]


def samples_of(part: Part, material: Material, how: Signed, room: int, rare: PlaneScale | None = None) -> list[Sample]:
    """Return a sample for each group of a part, with sources as given, or by how rare their values are."""
    region, group = material.regions(part)
    labels = None if part.scene is None else pixel_labels(part.scene)
    if part.scene is None or labels is None:
        if part.bags is None:
            none = np.empty((0, part.n_sources))
            return [Sample(part.name, none, none)]
        return grouped_bags(part.name, entered(part.bags, how), group)
    if rare is None:
        found = grouped_pixels(part.scene, part.scene.sources, labels, region, room)
        scaled = found if how.scale is None else [scaled_sample(one, how.scale) for one in found]
        return [one.with_signs(how.signs) for one in scaled]
    planes = zip(np.moveaxis(part.scene.sources, -1, 0), how.signs, strict=True)
    rows = np.stack([rare(plane if sign > 0 else -plane) for plane, sign in planes], axis=-1)
    return grouped_pixels(part.scene, rows, labels, region, room)


def units_of(
    part: Part, material: Material, how: Signed, room: int, rare: PlaneScale | None, keep_bags: bool
) -> list[Unit]:
    """Return the units of a part: samples, and, if candidates learn from them, bags."""
    samples = samples_of(part, material, how, room)
    scarce = [None] * len(samples)
    if rare is not None and samples[0].offsets is None:
        scarce = list(samples_of(part, material, how, room, rare))  # type: ignore[arg-type]
    units = [Unit(one.name, one, other) for one, other in zip(samples, scarce, strict=True)]
    if keep_bags and part.bags is not None:
        bags, group = entered(part.bags, how), material.regions(part)[1]
        if group is None:
            units[0].bags = bags
        else:
            for unit, g in zip(units, np.unique(group) if part.scene is None else range(len(units)), strict=True):
                chosen = select_bags(bags, group == g)
                unit.bags = chosen if len(chosen) else None
    return units


def entered(bags: Bags, how: Signed) -> Bags:
    """Return bags as they enter the integral: scaled, and inverted."""
    return (bags if how.scale is None else how.scale.bags(bags)).with_signs(how.signs)


def _size(part: Part) -> int:
    bags, scene = part.bags, part.scene
    arrays = [] if bags is None else [bags.X, bags.counts, bags.instance]
    if scene is not None:
        arrays += [scene.sources] + ([] if scene.segments is None else [scene.segments])
    return sum(array.nbytes for array in arrays)


@dataclass(frozen=True, eq=False)
class TermForm:
    """The mean over each bag of squared distances to targets, as a quadratic form in all terms."""

    matrix: Floats
    slope: Floats  # half of the gradient where all terms are zero
    constant: float

    def __add__(self, other: "TermForm") -> "TermForm":
        """Return the sum over the instances of both."""
        return TermForm(self.matrix + other.matrix, self.slope + other.slope, self.constant + other.constant)


class SummedTerms(Sums):
    """A problem of least squares in terms, of which the quadratic form alone is held; as `Summed` for elements."""

    offers = frozenset({"rows"})  # of which least squares ask for none

    def __init__(self, form: TermForm, labels: Flags, weights: Floats, objective: Objective, n_sources: int) -> None:
        self.space, self.objective = objective.space(n_sources), objective
        self.labels, self.weights, self._form = labels, weights, form

    def with_signs(self, signs: Floats) -> "SummedTerms":
        """Return the problem itself: signs have been applied."""
        if not (signs == 1).all():
            raise InvalidInputError("Signs must be applied before squares are added up.", code="signs-order")
        return self

    def value(self, values: Floats) -> float:
        """Return J at these terms."""
        form = self._form
        return float(values @ form.matrix @ values + 2 * form.slope @ values + form.constant)

    def total(self, question: str, **arguments: Any) -> Floats:
        if question == "squares":
            columns: Ints = arguments["columns"]
            return np.asarray(self._form.matrix[np.ix_(columns, columns)])
        return np.asarray(self._form.matrix @ arguments["values"] + self._form.slope)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What one unit contributes to learning by one candidate."""

    labels: Flags  # of its bags
    weights: Floats
    usage: Usage
    content: Any  # a quadratic form, or bags


def prepare(unit: Unit, candidate: Candidate, few: int, shared: dict[Any, Any]) -> Prepared | None:
    """Reduce a unit to what a candidate learns from; None if there is nothing.

    `shared` keeps, of one unit, what several candidates need.
    """
    objective = candidate.problem
    bags = _rows(unit, candidate, few)
    if bags is None:
        return None
    space = objective.space(bags.n_sources)
    given = (candidate.labels, candidate.sources)

    def once(what: str, make: Callable[[], Any]) -> Any:
        key = (*given, what)
        if key not in shared:
            shared[key] = make()
        return shared[key]

    kind = "terms" if isinstance(space, TermSpace) else objective.measure
    usage = once(f"usage of {kind}", lambda: space.count_usage(bags.X, 1))
    content: Any = bags
    if objective.convex == "mean" and isinstance(space, TermSpace):
        content = _term_form(once("merged", lambda: bags.merged(1)), objective, space)
    elif objective.convex == "mean":
        content = InMemory(bags, objective, 1).total("gram", targets=objective.parameters)
    elif objective.relevant != "all":
        merged = once("merged", lambda: bags.merged(1))
        content = merged.relevant(objective.relevant, space.zero_bound, 1)
    return Prepared(bags.labels, bags.weights, usage, content)


def _rows(unit: Unit, candidate: Candidate, few: int) -> Bags | None:
    if candidate.labels == "bags":
        return unit.bags
    sample = unit.rarity if candidate.sources == "rarity" else unit.sample
    assert sample is not None  # candidates that need it are not among those compared without
    if not len(sample.targets) + len(sample.others):
        return None
    return sample.few(few).as_bags()


def _term_form(bags: Bags, objective: Objective, space: TermSpace) -> TermForm:
    rows, size = space.instances(bags, 1), space.size
    columns = np.arange(size if space.terms.pairs else 2 * space.n_sources)
    matrix = np.zeros((size, size))
    matrix[np.ix_(columns, columns)] = rows.squares(columns)
    low, high = objective.parameters
    slope = rows.slope((low, high), np.zeros(size))
    return TermForm(matrix, slope, float(bags.weights @ np.where(bags.labels, high, low) ** 2))


class PreparedTraining(Training):
    """Some units, as training data for one candidate."""

    offers = IN_MEMORY

    def __init__(self, parts: Sequence[Prepared], n_sources: int) -> None:
        self._parts, self.n_sources = parts, n_sources

    def ranges(self) -> tuple[Floats, Floats]:
        return -np.ones(self.n_sources), np.ones(self.n_sources)  # checked when they were read

    def scaled(self, scale: Scale) -> "PreparedTraining":
        return self

    def samples(self) -> list[Sample]:
        return []  # signs have been applied

    def problem(self, objective: Objective, n_jobs: int | None = None) -> Problem | Summed:
        labels, weights = (
            np.concatenate([getattr(part, name) for part in self._parts]) for name in ("labels", "weights")
        )
        contents = [part.content for part in self._parts]
        if isinstance(contents[0], Bags):
            bags = joined_bags(contents)
            return InMemory(bags, objective, n_jobs, reduce=objective.relevant == "all")
        form = reduce(add, contents)
        if isinstance(form, TermForm):
            return SummedTerms(form, labels, weights, objective, self.n_sources)  # type: ignore[return-value]
        return Summed(form, labels, weights, objective, self.n_sources)

    def usage(self, objective: Objective, n_jobs: int | None = None) -> Usage:
        found: Usage = reduce(add, [part.usage for part in self._parts])
        return found
