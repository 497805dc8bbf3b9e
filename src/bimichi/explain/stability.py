"""How much of a learned measure would survive other bags: the bootstrap."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import check_integer, check_number
from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.estimators import BiMIChI
from bimichi.explain.indices import MAX_SOURCES, Indices, indices
from bimichi.explain.inputs import check_elements
from bimichi.integral.linear import usage_counts
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.bags import Bags
from bimichi.learning.objectives import get_objective
from bimichi.learning.solvers import get_solver
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.sampling import random_generator

__all__ = ["Stability", "bootstrap"]

Floats = NDArray[np.float64]

TABLE_LIMIT = 3**5


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """Percentile intervals of a model's elements and indices over refits to resampled bags.

    Attributes
    ----------
    measure : BiCapacity
        The model's own.
    lower, upper : ndarray of shape (3^m,)
        The interval of each element, in code order.
    indices : Indices
        The model's own.
    indices_lower, indices_upper : Indices
        The interval of each of them.
    values : ndarray of shape (n_resamples, 3^m)
        The elements of all refits.
    open : ndarray of bool, shape (3^m,)
        Elements that no instance gives weight. Their interval shows how the solver completes a measure, not
        what the data says; see `identifiability`.
    level : float
        The share of refits that an interval holds.
    redrawn : int
        How many resamples were drawn anew because they lacked positive, or negative, bags.
    converged : int
        How many refits ended with the status "converged".
    """

    measure: BiCapacity
    lower: Floats
    upper: Floats
    indices: Indices
    indices_lower: Indices
    indices_upper: Indices
    values: Floats
    open: NDArray[np.bool_]
    level: float
    redrawn: int
    converged: int

    def to_table(self) -> Table:
        """Return the importance of each source with its interval as a table."""
        names = {"up": "up", "down": "down", "shapley": "Shapley"}
        three = (self.indices, self.indices_lower, self.indices_upper)
        rows = [
            [Cell(source), *(_with_interval(*(getattr(of, name)[k] for of in three)) for name in names)]
            for k, source in enumerate(self.measure.source_names)
        ]
        return Table(["source", *names.values()], rows)

    def element_table(self) -> Table:
        """Return the elements that the data uses with their intervals as a table."""
        shown = np.flatnonzero(~self.open)
        shown = shown[(shown > 0) | self.measure.zero_bound]
        if len(shown) > TABLE_LIMIT:
            raise InvalidInputError(
                f"{len(shown):,} elements are used; tables are offered up to {TABLE_LIMIT} rows. "
                "Read .lower and .upper by code instead."
            )
        label, names = self.measure.lattice.label, self.measure.source_names
        rows = [
            [
                Cell(label(int(code), names)),
                _with_interval(self.measure.values[code], self.lower[code], self.upper[code]),
            ]
            for code in shown
        ]
        return Table(["element", "value"], rows)

    def __repr__(self) -> str:
        head = f"Stability over {len(self.values)} resamples: {self.level:.0%} intervals"
        return f"{head}\n{self.to_table().to_text()}"

    def _repr_html_(self) -> str:
        return self.to_table().to_html()


def bootstrap(
    model: BiMIChI,
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
    """Refit a model to bags drawn with replacement, and tell how its elements and indices vary.

    Parameters
    ----------
    model : fitted BiMIChI
        What to refit, of at most 12 sources. Its scale and polarity stay as fitted, since elements of differently
        turned sources cannot be compared: the intervals are those of the measure, given the polarity.
    X, y, bags, sample_weight
        The training data, as for `BiMIChI.fit`: rows with labels and ids, or `Bags` alone.
    n_resamples : int, default=100
        How many refits.
    level : float, default=0.9
        The share of refits that an interval holds, between its percentiles (1 - level) / 2 and (1 + level) / 2.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of the resamples and of the refits.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Notes
    -----
    A bag that is drawn k times counts with k times its weight. Instances that cannot decide their bag are dropped
    once, before all refits. Memory is O(n_resamples 3^m).
    """
    if not isinstance(model, BiMIChI):
        raise InvalidInputError(f"model must be a fitted BiMIChI, got {type(model).__name__}.")
    _check(model, n_resamples, level)
    objective = get_objective(model.objective)
    jobs = check_n_jobs(n_jobs)
    bags = _as_entered(model, X, y, bags, sample_weight)
    used = usage_counts(bags.X, weighted=True, n_jobs=jobs) > 0
    used[list(model.bicapacity_.lattice.fixed)] = True
    bags = bags.reduced(objective.relevant, objective.zero_bound)
    streams = random_generator(random_state).spawn(n_resamples)
    drawn = [_draw(bags.labels, stream) for stream in streams]

    def refit(which: int) -> tuple[Floats, Indices, bool]:
        seed = int(streams[which].integers(2**31))
        fitted = _unfitted(model, seed).fit(_resampled(bags, drawn[which][0]))
        return fitted.bicapacity_.values, indices(fitted), fitted.solution_.status == "converged"

    with ThreadPoolExecutor(jobs) as pool:
        parts, others, converged = zip(*pool.map(refit, range(n_resamples)), strict=True)
    values, own = np.stack(parts), indices(model)
    low, high = (1 - level) / 2, (1 + level) / 2
    return Stability(
        measure=model.bicapacity_,
        lower=np.quantile(values, low, axis=0),
        upper=np.quantile(values, high, axis=0),
        indices=own,
        indices_lower=_percentile(own, others, low),
        indices_upper=_percentile(own, others, high),
        values=values,
        open=~used,
        level=float(level),
        redrawn=sum(again for _, again in drawn),
        converged=sum(converged),
    )


def _check(model: BiMIChI, n_resamples: int, level: float) -> None:
    check_is_fitted(model)
    check_elements(model, "bootstrap")
    if model.n_features_in_ > MAX_SOURCES:
        raise InvalidInputError(
            f"The model has {model.n_features_in_} sources; the bootstrap is offered up to {MAX_SOURCES}."
        )
    check_integer(n_resamples, "n_resamples")
    check_number(level, "level", 0, 1, exclusive=True)


def _as_entered(model: BiMIChI, X: Any, y: Any, bags: Any, sample_weight: Any) -> Bags:
    """Return the training data as it enters the integral: in bags, scaled and turned."""
    if isinstance(X, Bags):
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError("Bags bring labels and weights; give bootstrap nothing besides.")
        found = X
    else:
        if y is None:
            raise InvalidInputError("y must be given with rows: the labels that the model was fitted to.")
        unknown = np.setdiff1d(y, model.classes_)
        if unknown.size:
            raise InvalidInputError(
                f"y has the label {unknown.tolist()[0]!r}; the model knows {model.classes_.tolist()}."
            )
        found = Bags.from_instances(X, np.asarray(y) == model.classes_[1], bags, sample_weight, model.nan)
    entered = np.stack(model.rule_.enter(found.X), axis=1)
    return Bags(entered, found.offsets, found.labels, found.weights, found.counts, found.instance, found.ids)


def _draw(labels: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.int64], int]:
    """How often each bag is drawn, both kinds at least once; and how many draws that took besides."""
    again = 0
    while True:
        counts = np.bincount(rng.integers(len(labels), size=len(labels)), minlength=len(labels))
        if counts[labels].any() and counts[~labels].any():
            return counts, again
        again += 1


def _resampled(bags: Bags, counts: NDArray[np.int64]) -> Bags:
    """Return the bags that were drawn, each weighing as often as it was."""
    drawn, sizes = counts > 0, np.diff(bags.offsets)
    rows = np.repeat(drawn, sizes)
    return Bags(
        bags.X[rows],
        np.concatenate([[0], np.cumsum(sizes[drawn])]),
        bags.labels[drawn],
        (bags.weights * counts)[drawn],
        bags.counts[rows],
        bags.instance[rows],
        [name for name, one in zip(bags.ids, drawn, strict=True) if one],
    )


def _unfitted(model: BiMIChI, seed: int) -> BiMIChI:
    """Return a model with the same objective and solver, for sources that are scaled and turned already."""
    solver = get_solver(model.solver)
    if getattr(solver, "checkpoint", None) is not None or getattr(solver, "callback", None) is not None:
        solver = replace(solver, checkpoint=None, callback=None)  # which belong to the one search
    names = model.bicapacity_.source_names
    return BiMIChI(model.objective, solver, source_names=names, n_jobs=1, random_state=seed)


def _percentile(own: Indices, others: Sequence[Indices], share: float) -> Indices:
    arrays = [part.name for part in fields(Indices) if isinstance(getattr(own, part.name), np.ndarray)]
    return replace(own, **{name: np.quantile([getattr(of, name) for of in others], share, axis=0) for name in arrays})


def _with_interval(value: float, lower: float, upper: float) -> Cell:
    return Cell(f"{number(value)} ({number(lower)} .. {number(upper)})")
