"""`Problem` and `Solution`: what solvers take and return. Read this first.

A problem answers a few questions about labelled bags, listed in its `offers`: `InMemory` from arrays,
`bimichi.fit.cluster.Partitioned` from parts on the workers of a cluster, `Summed` from sums added up before.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi._jit import jit
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import Objective, term_of_bag
from bimichi.fit.spaces import Space
from bimichi.fit.spaces.base import Sums, Usage
from bimichi.fit.spaces.elements import ElementInstances, ElementSpace, Rows
from bimichi.fit.spaces.sums import CHUNK, Gram, RowsOfSquares, gram
from bimichi.fit.spaces.terms import TermForm
from bimichi.integral.integrals import integrate
from bimichi.integral.linear import linear_form
from bimichi.integral.planes import check_n_jobs
from bimichi.link import Link
from bimichi.record import Certificate, Status
from bimichi.scenes.bags import Bags, Relevant


class Extremes(NamedTuple):
    """For each bag, its smallest and its largest integral, and the rows that have them."""

    low: Floats
    high: Floats
    low_row: Ints
    high_row: Ints


class Problem(Sums, Protocol):
    """Labelled bags and an objective, as a solver may ask about them.

    Attributes
    ----------
    space : Space
        What is searched.
    objective : Objective
        What is minimised.
    labels : ndarray of bool, or of float for regression
        Of the bags.
    weights : ndarray of float
        Of the bags.
    usage : Usage
        How many instances, with sources as they are before `with_signs`, use each code of the space.
    offers : frozenset of str
        What it answers besides `value` and `total`: "rows" stands for `extremes`, `rows` and `instances`, "in memory"
        for the attributes of `InMemory` as well.
    """

    space: Space
    objective: Objective
    offers: frozenset[str]

    @property
    def usage(self) -> Usage:
        """Return how often instances use each code."""

    def value(self, values: Floats, link: Link | None = None) -> float:
        """J at these values, and at this slope and offset if the objective has them; one pass over the instances."""

    def with_signs(self, signs: Floats) -> Self:
        """Return the problem whose sources are multiplied by these signs."""

    def extremes(self, values: Floats) -> Extremes:
        """For each bag, its smallest and largest integral, and their rows; one pass over the instances."""

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        """Codes and weights of some rows, each of shape (len(which), space.row_length)."""

    def instances(self, which: Ints) -> Ints:
        """The instances, as the user numbers them, of some rows."""


@dataclass(frozen=True)
class Solution:
    """The minimum that a solver found.

    Attributes
    ----------
    values : ndarray
        Of the measure, monotone and within bounds, as its space orders them.
    objective_value : float
        J at `values`.
    status : Status
        How the search ended; its value will do.
    n_iter : int
        Rounds of witnesses, generations, or measures compared.
    history : ndarray
        J after each of them, never rising.
    witnesses : ndarray of int64, shape (n_positive_bags,), optional
        For each positive bag, its most target-like instance, as numbered by the user. (When every instance is
        its own bag, equal ones are one bag.)
    lower_bound : float, optional
        No measure has a smaller J with these witnesses; only if converged.
    link : Link, optional
        Slope and offset of an objective with a free scale: of the log-odds, or for `mean` of labels -1 and +1.
    starts : ndarray
        J of each start where it ended or came to the witnesses of another; of each member of a population.
    global_bound : float, optional
        No measure at all has a smaller J; only if that was asked for.
    n_nodes : int
        How many parts of all measures were bounded for it.
    certificate : Certificate, optional
        How the proof ended; None if none was asked for.
    averaged : tuple of int
        The sources, from 0, whose own log-odds the result was averaged with.
    """

    values: Floats
    objective_value: float
    status: Status
    n_iter: int
    history: Floats
    witnesses: Ints | None = None
    lower_bound: float | None = None
    starts: Floats = field(default_factory=lambda: np.empty(0))
    link: Link | None = None
    global_bound: float | None = None
    n_nodes: int = 0
    certificate: Certificate | None = None
    averaged: Sequence[int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", check_choice(self.status, "status", tuple(Status)))

    @property
    def gap(self) -> float | None:
        """By how much J may exceed the least possible, relative to J; None without a global bound."""
        if self.global_bound is None:
            return None
        difference = self.objective_value - self.global_bound
        return float(difference / abs(self.objective_value)) if self.objective_value else float(difference)


class InMemory(Problem):
    """A problem whose instances, in [-1, 1] or for a capacity in [0, 1], are arrays.

    Those that cannot decide their bag are dropped (see `Bags.reduced`), unless `reduce` is False; `bags` has the rest.
    `usage` counts that of instances which are not in `bags`, too.
    """

    offers = frozenset({"rows", "in memory"})

    def __init__(
        self,
        bags: Bags,
        objective: Objective,
        n_jobs: int | None = None,
        reduce: bool = True,
        usage: Usage | None = None,
    ) -> None:
        self.space, self.objective = objective.space(bags.n_sources), objective
        self.labels, self.weights = bags.labels, bags.weights
        self._X, self._usage, self._signs, self._n_jobs = bags.X, usage, np.ones(bags.n_sources), n_jobs
        self._relevant: Relevant = objective.relevant if reduce else "all"
        self._merged = bags.merged(n_jobs) if reduce else bags
        self.bags = self._merged.relevant(self._relevant, self.space.zero_bound, n_jobs)
        self._instances = self.space.instances(self.bags, n_jobs)

    def with_signs(self, signs: Floats) -> "InMemory":
        if (signs == 1).all():
            return self
        other = copy(self)  # signs change neither which instances are equal nor, if all are relevant, which are kept
        other._signs = self._signs * signs
        other.bags = self._merged.with_signs(other._signs)
        if self._relevant == "all":
            other._instances = self._instances.with_signs(signs, other.bags)
        else:
            other.bags = other.bags.relevant(self._relevant, self.space.zero_bound, self._n_jobs)
            other._instances = self.space.instances(other.bags, self._n_jobs)
        return other

    def value(self, values: Floats, link: Link | None = None) -> float:
        bags, labels, fused = self.bags, self.labels.astype(np.float64), self._instances.fuse(values)
        if link is not None:  # in place: there may be millions
            fused *= link.slope
            fused += link.offset
        return float(_value(self.objective.term, fused, bags.counts, bags.offsets, labels, self.weights))

    def total(self, question: str, **arguments: Any) -> Any:
        return getattr(self._instances, question)(**arguments)

    def extremes(self, values: Floats) -> Extremes:
        return Extremes(*_extremes(self._instances.fuse(values), self.bags.offsets))

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        return self._instances.rows(which)

    def instances(self, which: Ints) -> Ints:
        return self.bags.instance[which]

    @property
    def table(self) -> Rows:
        """All rows; of an element space alone."""
        return cast(ElementInstances, self._instances).table

    def usage_counts(self, weighted: bool) -> Ints:
        """Return how many instances touch each code, or give it weight; dropped ones count, too."""
        return self.usage.counts(weighted, self._signs)

    @property
    def usage(self) -> Usage:
        return self.space.count_usage(self._X, self._n_jobs) if self._usage is None else self._usage


class Summed(Sums):
    """A problem of least squares of which the quadratic form alone is held: memory does not grow with the data.

    Its objective has the convex form "mean"; `form` is the sum for the targets that are its parameters. `value` may
    give J more exactly than the form does.
    """

    def __init__(
        self,
        form: Gram | TermForm,
        labels: Flags,
        weights: Floats,
        objective: Objective,
        n_sources: int,
        value: Callable[[Floats], float] | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.space = objective.space(n_sources)
        self.objective, self.labels, self.weights, self._usage = objective, labels, weights, usage
        self._form, self.value = form, value or form.at
        self.offers = form.offers

    @classmethod
    def of_instances(
        cls, X: NDArray[Any], positive: Flags, weights: Floats, objective: Objective, n_jobs: int | None = None
    ) -> "Summed":
        """Add up weight * (C - target)^2 over instances, which are `positive` or not, chunk by chunk; O(n m^2)."""
        space, jobs = cast(ElementSpace, objective.space(X.shape[1])), check_n_jobs(n_jobs)
        target = np.where(positive, objective.parameters[1], objective.parameters[0])

        def rows(chunk: slice) -> RowsOfSquares:
            codes, shares = linear_form(X[chunk], objective.measure, check_range=False, n_jobs=1)
            return RowsOfSquares(codes, shares, weights[chunk], target[chunk])

        def value(values: Floats) -> float:
            g, total = space.measure(values), 0.0
            for start in range(0, len(X), 8 * CHUNK):
                chunk = slice(start, start + 8 * CHUNK)
                fused = integrate(X[chunk], g, check_range=False, n_jobs=jobs)
                total += float(weights[chunk] @ (fused - target[chunk]) ** 2)
            return total

        form = gram(space.lattice, len(X), rows, jobs)
        return cls(form, positive, weights, objective, X.shape[1], value)

    @property
    def usage(self) -> Usage:
        """Return how often instances use each code."""
        assert self._usage is not None  # only the squares of arrays are summed without it
        return self._usage

    def with_signs(self, signs: Floats) -> "Summed":
        """Return the problem whose sources are multiplied by these signs."""
        if (signs == 1).all():
            return self
        form = self._form.with_signs(signs)
        return Summed(form, self.labels, self.weights, self.objective, len(signs), usage=self._usage)

    def total(self, question: str, **arguments: Any) -> Any:
        targets = self.objective.parameters
        if not hasattr(self._form, question) or arguments.get("targets", targets) != targets:
            raise InvalidInputError(
                f"Only the squares to {targets} were added up, not {question} of {arguments}.", code="squares-missing"
            )
        return getattr(self._form, question)(**arguments)


@jit
def _value(term, fused, counts, offsets, labels, weights):
    total = 0.0
    for b in range(labels.size):
        bag = slice(offsets[b], offsets[b + 1])
        total += weights[b] * term_of_bag(term, fused[bag], counts[bag], labels[b])
    return total


@jit
def _extremes(fused, offsets):
    n = offsets.size - 1
    low, high = np.empty(n), np.empty(n)
    low_row, high_row = np.empty(n, np.int64), np.empty(n, np.int64)
    for b in range(n):
        bag = fused[offsets[b] : offsets[b + 1]]
        least, most = bag.argmin(), bag.argmax()
        low[b], high[b] = bag[least], bag[most]
        low_row[b], high_row[b] = offsets[b] + least, offsets[b] + most
    return low, high, low_row, high_row


ON_CLUSTER = frozenset({"rows"})  # what data in parts on a cluster offer
IN_MEMORY = ON_CLUSTER | {"in memory"}  # what data in this process offer


def needs_of(solver: Any, objective: Objective) -> frozenset[str]:
    """Return what a solver needs to minimise an objective."""
    needs = frozenset(getattr(solver, "needs", ("in memory",)))
    one_pass = objective.convex == "mean" and not objective.free_scale and "one pass" in objective.offers
    if "convex form" in needs and not one_pass:
        needs |= {"rows"}
    if objective.free_scale and "convex form" not in needs:
        needs |= {"link"}
    return needs


def check_solver(solver: Any, objective: Objective, offers: frozenset[str] = IN_MEMORY) -> None:
    """Refuse a solver that needs more than the objective and the data, of which `offers` is known, have."""
    missing = needs_of(solver, objective) - objective.offers - offers
    if not missing:
        return
    start = f"{type(solver).__name__} cannot minimise {objective.name!r}"
    other = "Use solver='convex'." if objective.convex else "Use solver='evolutionary'."
    if "convex form" in missing:
        raise InvalidInputError(f"{start}: it has no convex form. {other}", code="solver-objective")
    if "link" in missing:
        raise InvalidInputError(
            f"{start} with a free scale: it finds measures, but no slope and offset. Use solver='convex'.",
            code="solver-free-scale",
        )
    if "elements" in missing:
        raise InvalidInputError(
            f"{start} with additivity={objective.additivity}: it changes single elements, and those of an additive "
            "bi-capacity are not independent of each other. Use solver='convex'.",
            code="solver-additive",
        )
    if missing & {"in memory", "rows"}:
        remedy = "Use solver='convex', or fit" if objective.convex else "Fit"
        raise InvalidInputError(
            f"{start} here: it needs its data in memory. {remedy} arrays without a cluster.", code="solver-memory"
        )
    raise InvalidInputError(
        f"{start}: it is made for {', '.join(map(repr, sorted(missing)))} alone. {other}", code="solver-objective"
    )
