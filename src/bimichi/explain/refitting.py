"""Learn the measure of a rule once more from other bags, as its training record describes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.learning.bags import Bags
from bimichi.learning.fit import fit_measure
from bimichi.learning.inputs import check_weights
from bimichi.learning.objectives import REGISTRY, Objective, get_objective
from bimichi.learning.objectives.mean import MEAN, NORMALISED_MEAN
from bimichi.learning.problem import Solution
from bimichi.learning.selection.averaging import averaged_with, source_links, with_sources
from bimichi.learning.solvers import solver_from_record
from bimichi.learning.solvers.convex import solve_least_squares
from bimichi.learning.training import BagsInMemory
from bimichi.record import TrainingRecord
from bimichi.rule import FusionRule

LEAST_SQUARES = "least squares"
"""The objective in the records of methods that learn from the label of every instance."""


def training_bags(rule: FusionRule, X: Any, y: Any, bags: Any, sample_weight: Any) -> Bags:
    """Return the training data as it enters the integral: in bags, scaled and inverted."""
    record = _record(rule)
    if isinstance(X, Bags):
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError("Bags have labels and weights of their own; pass no y, bags or sample_weight.")
        found = X
    else:
        if y is None:
            raise InvalidInputError("y must be given with rows: the labels that the model was fitted to.")
        if record.objective == LEAST_SQUARES:  # every instance has its own label
            bags, sample_weight = None, _class_weighted(record, np.asarray(y), sample_weight)
        nan = record.parameters.get("nan", "raise")
        found = Bags.from_instances(
            X, _labels(record, y), bags, sample_weight, nan, real_labels=not len(record.classes)
        )
    entered = np.stack(rule.enter(found.X), axis=1)
    return Bags(entered, found.offsets, found.labels, found.weights, found.counts, found.instance, found.ids)


def refit(rule: FusionRule, bags: Bags, seed: int) -> Solution:
    """Learn from bags that are as they enter the integral; scale and polarity stay as they are."""
    record, objective, training = _record(rule), recorded_objective(rule), BagsInMemory(bags)
    if record.objective == LEAST_SQUARES and not objective.additivity:
        return solve_least_squares(training.problem(objective, n_jobs=1), completion="highest")
    solver = solver_from_record(record.solver, dict(record.solver_options))
    quiet = -1 if objective.links else 0  # what the log-odds of a refit reach is shown by its spread
    result = fit_measure(training, objective, solver, random_state=seed, n_jobs=1, verbose=quiet)
    known = [k for k in averaged_with(record.status) if k < rule.n_sources]
    solution = with_sources(result, objective, source_links([bags], known)).solution if known else result.solution
    if record.objective != LEAST_SQUARES:
        return solution
    # A weighted mean of sources that are never below zero: the terms below mirror those above.
    up, rest = solution.values[: rule.n_sources], solution.values[2 * rule.n_sources :]
    return replace(solution, values=np.concatenate([up, -up, rest]))


def recorded_objective(rule: FusionRule) -> Objective:
    """Return what was minimised."""
    record, kind = _record(rule), rule.measure.kind
    given = record.parameters
    if record.objective != LEAST_SQUARES:
        measure = "capacity" if kind == "capacity" else "bicapacity"
        among = {objective.name: objective for objective in REGISTRY if objective.measure == measure}
        additivity = getattr(rule.measure, "order", None)  # which may have been chosen, and is then no parameter
        return get_objective(record.objective, among, additivity, given, bool(given.get("free_scale")))
    if kind == "bicapacity":
        targets = given.get("targets", MEAN.parameters)
        return replace(MEAN, zero_bound=bool(given.get("zero_bound")), parameters=tuple(targets))
    additive = replace(MEAN.with_additivity(1), parameters=NORMALISED_MEAN.parameters)
    return NORMALISED_MEAN if kind == "capacity" else additive


def _record(rule: FusionRule) -> TrainingRecord:
    if rule.training is None:
        raise InvalidInputError("bootstrap refits, but this rule has no training record. Pass a fitted model.")
    return rule.training


def _labels(record: TrainingRecord, y: Any) -> NDArray[Any]:
    if not len(record.classes):
        return np.asarray(y)
    unknown = np.setdiff1d(y, np.asarray(record.classes))
    if unknown.size:
        raise InvalidInputError(f"y has the label {unknown.tolist()[0]!r}; the model knows {list(record.classes)}.")
    return np.asarray(np.asarray(y) == record.classes[1])


def _class_weighted(record: TrainingRecord, y: NDArray[Any], sample_weight: Any) -> Floats:
    """Weights of instances times those of their classes, which stay as fitted."""
    weights, given = check_weights(sample_weight, len(y)), record.parameters.get("class_weight")
    for label in record.classes:
        own = y == label
        if isinstance(given, Mapping):
            weights = np.where(own, weights * given.get(str(label), 1.0), weights)
        elif given == "balanced":
            weights = np.where(own, weights * len(y) / (2 * max(1, own.sum())), weights)
    return weights
