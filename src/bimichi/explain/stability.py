"""Refits, and the bootstrap: how a learned measure varies with the bags that were labelled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number
from bimichi._html import Cell, Table
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.indices import Indices, indices, indices_of
from bimichi.explain.parts import Explanation, parts_of
from bimichi.fit.candidates import source_links, with_sources
from bimichi.fit.objectives import MEAN, NORMALISED_MEAN, REGISTRY, Objective, get_objective
from bimichi.fit.problem import Solution
from bimichi.fit.solvers import solver_from_record
from bimichi.fit.solvers.convex import solve_least_squares
from bimichi.fit.train import fit_measure, problem_in_memory
from bimichi.integral.planes import Planes, check_n_jobs, in_threads
from bimichi.link import Link
from bimichi.measures.base import Measure
from bimichi.measures.lattice import random_generator
from bimichi.record import TrainingRecord
from bimichi.rule import FusionRule, as_rule
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_weights
from bimichi.scenes.sample import select_bags

LEAST_SQUARES = "least squares"
"""The objective in the records of methods that learn from the label of every instance."""


def training_bags(rule: FusionRule, X: Any, y: Any, bags: Any, sample_weight: Any) -> Bags:
    """Return the training data as it enters the integral: in bags, scaled and inverted."""
    record = _record(rule)
    if isinstance(X, Bags):
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError(
                "Bags have labels and weights of their own; pass no y, bags or sample_weight.", code="bags-with-labels"
            )
        data = X
    else:
        if y is None:
            raise InvalidInputError(
                "y must be given with rows: the labels that the model was fitted to.",
                code="labels-missing",
                argument="y",
            )
        if record.objective == LEAST_SQUARES:  # every instance has its own label
            bags, sample_weight = None, _class_weighted(record, np.asarray(y), sample_weight)
        nan = record.parameters.get("nan", "raise")
        data = Bags.from_instances(X, _labels(record, y), bags, sample_weight, nan, real_labels=not len(record.classes))
    entered = np.stack(rule.enter(data.X), axis=1)
    return Bags(entered, data.offsets, data.labels, data.weights, data.counts, data.instance, data.ids)


def refit(rule: FusionRule, bags: Bags, seed: int) -> Solution:
    """Learn from bags that are as they enter the integral; scale and polarity stay as they are."""
    record, objective = _record(rule), recorded_objective(rule)
    problem = problem_in_memory(bags, objective, n_jobs=1)
    if record.objective == LEAST_SQUARES and not objective.additivity:
        return solve_least_squares(problem, completion="highest")
    solver = solver_from_record(record.solver, dict(record.solver_options))
    quiet = -1 if objective.links else 0  # what the log-odds of a refit reach is shown by its spread
    result = fit_measure(problem, solver, random_state=seed, n_jobs=1, verbose=quiet)
    if record.averaged:
        result = with_sources(result, objective, source_links([bags], record.averaged))
    solution = result.solution
    if record.objective != LEAST_SQUARES:
        return solution
    # A weighted mean of sources that are never below zero: the terms below mirror those above.
    up, rest = solution.values[: rule.n_sources], solution.values[2 * rule.n_sources :]
    return replace(solution, values=np.concatenate([up, -up, rest]))


def recorded_objective(rule: FusionRule) -> Objective:
    """Return the objective that was minimised."""
    record, kind = _record(rule), rule.measure.kind
    parameters = record.parameters
    if record.objective != LEAST_SQUARES:
        measure = "capacity" if kind == "capacity" else "bicapacity"
        among = {objective.name: objective for objective in REGISTRY.values() if objective.measure == measure}
        additivity = getattr(rule.measure, "order", None)  # which may have been chosen, and is then no parameter
        return get_objective(record.objective, among, additivity, parameters, bool(parameters.get("free_scale")))
    if kind == "bicapacity":
        targets = parameters.get("targets", MEAN.parameters)
        return replace(MEAN, zero_bound=bool(parameters.get("zero_bound")), parameters=tuple(targets))
    additive = replace(MEAN.with_additivity(1), parameters=NORMALISED_MEAN.parameters)
    return NORMALISED_MEAN if kind == "capacity" else additive


def _record(rule: FusionRule) -> TrainingRecord:
    if rule.training is None:
        raise InvalidInputError(
            "bootstrap refits, but this rule has no training record. Pass a fitted model.", code="training-missing"
        )
    return rule.training


def _labels(record: TrainingRecord, y: Any) -> NDArray[Any]:
    if not len(record.classes):
        return np.asarray(y)
    unknown = np.setdiff1d(y, np.asarray(record.classes))
    if unknown.size:
        raise InvalidInputError(
            f"y has the label {unknown.tolist()[0]!r}; the model knows {list(record.classes)}.",
            code="label-unknown",
            argument="y",
        )
    return np.asarray(np.asarray(y) == record.classes[1])


def _class_weighted(record: TrainingRecord, y: NDArray[Any], sample_weight: Any) -> Floats:
    """Return weights of instances times those of their classes, which stay as fitted."""
    weights, class_weight = check_weights(sample_weight, len(y)), record.parameters.get("class_weight")
    for label in record.classes:
        own = y == label
        if isinstance(class_weight, Mapping):
            weights = np.where(own, weights * class_weight.get(str(label), 1.0), weights)
        elif class_weight == "balanced":
            weights = np.where(own, weights * len(y) / (2 * max(1, own.sum())), weights)
    return weights


@dataclass(frozen=True, eq=False, repr=False)
class Stability(Explanation):
    """Percentile intervals of a model's elements or terms, and of its indices, over refits to resampled bags.

    Attributes
    ----------
    measure, indices : Measure and Indices
        Those of the model.
    lower, upper : ndarray
        The interval of each element, or term, in the order of the measure's values.
    indices_lower, indices_upper : Indices
        The interval of each index.
    values : ndarray of shape (n_resamples, n_values)
        The elements, or terms, of all refits.
    open : ndarray of bool
        Elements, or terms, that no instance gives weight. Their interval shows how the solver completes a measure, not
        what the data determine; see `identifiability`.
    level : float
        The share of refits that an interval holds.
    redrawn : int
        How many resamples were drawn again because they lacked positive, or negative, bags.
    converged : int
        How many refits came to an end of their own.
    links : tuple of (Link or None)
        One per refit: learned with it if the objective gives probabilities, otherwise that of the model.
    """

    measure: Measure
    lower: Floats
    upper: Floats
    indices: Indices
    indices_lower: Indices
    indices_upper: Indices
    values: Floats
    open: Flags
    level: float
    redrawn: int
    converged: int
    links: tuple[Link | None, ...] = ()

    def refits(self) -> Iterator[tuple[Measure, Link | None]]:
        """Yield the measure and the link of each refit."""
        for values, link in zip(self.values, self.links, strict=True):
            yield self.measure.with_values(values), link

    def to_table(self) -> Table:
        """Return the importance of each source with its interval as a table."""
        return _with_intervals(super().to_table())

    def element_table(self) -> Table:
        """Return the elements, or terms, that the data uses with their intervals as a table."""
        parts = parts_of(self.measure)
        arrays = {parts.columns[2]: parts.values, "lower": self.lower, "upper": self.upper}
        columns = parts.table_columns(parts.listed[~self.open[parts.listed]], arrays)
        return _with_intervals(self._tabulated(columns, "Read .lower and .upper by code instead."))

    def _head(self) -> str:
        return f"Stability over {len(self.values)} resamples: {self.level:.0%} intervals"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {"source": self.measure.source_names}
        for name in ("up", "down", "shapley"):
            three = {"": self.indices, " lower": self.indices_lower, " upper": self.indices_upper}
            title = name.replace("shapley", "Shapley")
            columns |= {title + end: getattr(of, name).tolist() for end, of in three.items()}
        return columns


def bootstrap(
    model: Any,
    X: Any,
    y: Any = None,
    bags: Any = None,
    sample_weight: Any = None,
    *,
    n_resamples: int = 100,
    level: float = 0.9,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Stability:
    """Refit a model to bags drawn with replacement, and report how its elements and indices vary.

    Parameters
    ----------
    model : FusionRule with a training record, or fitted estimator that has a measure
        What to refit; on a lattice, of at most 12 sources. Its scale and polarity stay as fitted.
    X, y, bags, sample_weight
        The training data, as for the estimator's `fit`: rows with labels and ids, or `Bags` alone. Methods that learn
        from the label of every instance draw instances instead of bags.
    n_resamples : int, default=100
        How many refits.
    level : float, default=0.9
        The share of refits that an interval holds, between its percentiles (1 - level) / 2 and (1 + level) / 2.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of the resamples and of the refits.
    n_jobs
        As in `contributions`.

    Notes
    -----
    A bag that is drawn k times counts with k times its weight. Instances that cannot decide their bag are dropped
    once, before all refits. Memory is O(n_resamples 3^m), or O(n_resamples m^2) for an additive measure.
    """
    rule = as_rule(model)
    check_integer(n_resamples, "n_resamples")
    check_number(level, "level", 0, 1, exclusive=True)
    jobs = check_n_jobs(n_jobs)
    streams = random_generator(random_state).spawn(n_resamples)
    own = indices(rule)  # which checks the number of sources
    data = training_bags(rule, X, y, bags, sample_weight)
    parts = parts_of(rule.measure)
    used = parts.count_use(Planes(data.X), jobs).weighted > 0
    used[list(getattr(rule.measure.space, "fixed", ()))] = True  # the boundary of a lattice
    objective = recorded_objective(rule)
    data = data.reduced(objective.relevant, objective.zero_bound)
    drawn = [_draw(data.labels, stream) for stream in streams]

    def refit_one(which: int) -> tuple[Floats, Indices, bool, Link | None]:
        solution = refit(rule, _resampled(data, drawn[which][0]), int(streams[which].integers(2**31)))
        refitted = indices_of(replace(parts, values=solution.values), own.kind)
        converged = solution.status.complete
        return solution.values, refitted, converged, solution.link if objective.links else rule.link

    refits = in_threads(refit_one, range(n_resamples), jobs)
    values, others, converged, links = zip(*refits, strict=True)
    low, high = (1 - level) / 2, (1 + level) / 2
    return Stability(
        measure=rule.measure,
        lower=np.quantile(values, low, axis=0),
        upper=np.quantile(values, high, axis=0),
        indices=own,
        indices_lower=_percentile(own, others, low),
        indices_upper=_percentile(own, others, high),
        values=np.stack(values),
        open=~used,
        level=float(level),
        redrawn=sum(again for _, again in drawn),
        converged=sum(converged),
        links=tuple(links),
    )


def _draw(labels: NDArray[Any], rng: np.random.Generator) -> tuple[Ints, int]:
    """Return how often each bag is drawn, both kinds at least once; and how many draws were discarded."""
    again = 0
    while True:
        counts = np.bincount(rng.integers(len(labels), size=len(labels)), minlength=len(labels))
        if labels.dtype != bool or (counts[labels].any() and counts[~labels].any()):
            return counts, again
        again += 1


def _resampled(bags: Bags, counts: Ints) -> Bags:
    """Return the bags that were drawn, their weights times how often."""
    drawn = counts > 0
    return replace(select_bags(bags, drawn), weights=(bags.weights * counts)[drawn])


def _percentile(own: Indices, others: Sequence[Indices], share: float) -> Indices:
    arrays = [part.name for part in fields(Indices) if isinstance(getattr(own, part.name), np.ndarray)]
    return replace(own, **{name: np.quantile([getattr(of, name) for of in others], share, axis=0) for name in arrays})


def _with_intervals(table: Table) -> Table:
    """Return a table in which every three columns (value, lower and upper end) are one."""
    rows = []
    for name, *cells in table.rows:
        triples = zip(cells[::3], cells[1::3], cells[2::3], strict=True)
        rows.append([name, *(Cell(f"{value.text} ({low.text} .. {high.text})") for value, low, high in triples)])
    return Table([table.header[0], *table.header[1::3]], rows)
