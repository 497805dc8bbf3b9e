"""What candidates learn from, made once per unit and added up over those that are not left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.learning.abilities import IN_MEMORY
from bimichi.learning.bags import Bags
from bimichi.learning.objectives import Objective
from bimichi.learning.problem import InMemory, Problem, Summed
from bimichi.learning.samples import Sample
from bimichi.learning.scaling import Scale
from bimichi.learning.selection.candidates import Candidate
from bimichi.learning.selection.units import Unit
from bimichi.learning.spaces.base import Sums, Usage
from bimichi.learning.spaces.terms import TermSpace
from bimichi.learning.streaming import joined_bags
from bimichi.learning.training import Training


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
            raise InvalidInputError("Signs must be applied before squares are added up.")
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
