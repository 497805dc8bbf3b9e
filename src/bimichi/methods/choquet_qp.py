"""`ChoquetQP` and `BiCapacityQP`: measures fitted to the label of every instance, by one quadratic program."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import MEAN, NORMALISED_MEAN, Objective
from bimichi.fit.problem import Summed
from bimichi.fit.solvers import ConvexSolver
from bimichi.fit.solvers.convex import solve_least_squares
from bimichi.fit.train import FitResult
from bimichi.integral.planes import Planes
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.methods.base import FusionClassifier, Needs, NormalisedFusion
from bimichi.methods.measured import MeasureFusion, View
from bimichi.rule import FusionRule
from bimichi.scenes.checks import check_weights

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


class _LeastSquares(FusionClassifier, MeasureFusion):
    """The base of both: a measure fitted to labelled instances."""

    needs: ClassVar[Needs] = "instances"
    class_weight: ClassWeight

    def _learn(self, X: NDArray[Any], positive: Flags, weight: Any, objective: Objective, **entering: Any) -> Self:
        weights = check_weights(weight, len(X))
        if not weights.any():
            raise InvalidInputError(
                "sample_weight is 0 for all instances; at least one must count.",
                code="weights-zero",
                argument="sample_weight",
            )
        if self.class_weight is not None:
            share = compute_class_weight(self.class_weight, classes=np.array([False, True]), y=positive)
            if self.class_weight != "balanced":
                share = np.array([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()])
            with np.errstate(over="ignore"):  # which is refused
                weights = check_weights(weights * np.where(positive, share[1], share[0]), len(X), "class_weight")
        problem = Summed.of_instances(X, positive, weights, objective, self.n_jobs)
        solution = solve_least_squares(problem, completion="highest")
        usage = problem.space.count_usage(X, self.n_jobs)
        result = FitResult.of(problem.space, solution, usage, np.ones(X.shape[1]), self._names())
        return self._set_rule(result, replace(objective, name="least squares"), ConvexSolver(), **entering)

    def _restored(self, rule: FusionRule) -> Self:
        """Restore parameters: JSON has no tuples, and keys of its objects are text."""
        weights = super()._restored(rule).class_weight
        if isinstance(weights, Mapping):
            self.class_weight = {label: weights.get(str(label), 1.0) for label in self.classes_.tolist()}
        if "targets" in self.get_params():
            self.set_params(targets=tuple(self.get_params()["targets"]))
        return self


@dataclass(eq=False, repr=False)
class ChoquetQP(_LeastSquares, NormalisedFusion):
    """CI-QP: a normalised measure by least squares to instance labels, sum (C - y)^2 with y in {0, 1} [1]_.

    One pass gathers the quadratic form, O(n m^2); the QP does not grow with the number of instances. Sets that no
    instance uses take the highest value that the order allows.

    Parameters
    ----------
    class_weight : mapping of class to weight, "balanced" or None
        How much the squares of each class count.
    bipolar_input, source_names, n_jobs
        As in `MICI`.

    Attributes
    ----------
    objective_value_ : float
        The (weighted) sum of squared errors.
    capacity_, rule_, solution_, classes_
        As in `MICI`.

    References
    ----------
    .. [1] M. Grabisch and J.-M. Nicolas, "Classification by fuzzy integral: performance and tests", Fuzzy Sets and
       Systems 65, 1994.
    """

    class_weight: ClassWeight = None

    capacity_ = View[Capacity]("measure", "The learned measure.")

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources)
            Instances.
        y : array-like of shape (n_instances,)
            Their labels; two classes.
        bags : ignored
            Present because other methods need it.
        sample_weight : array-like of shape (n_instances,), optional
            How much each instance counts.
        """
        X, positive = self._take(X, y)
        rows = self._normalised_rows(X)
        return self._learn(rows, positive, sample_weight, NORMALISED_MEAN, **self._unit_scale())


@dataclass(eq=False, repr=False)
class BiCapacityQP(_LeastSquares):
    """A bi-capacity by least squares to instance labels: what `BiMIChI` could reach with the label of every instance.

    Parameters
    ----------
    zero_bound : bool, default=False
        Whether g(empty, empty) = 0 is part of the order.
    targets : tuple of two floats, default=(-1.0, 1.0)
        What C should be for the two classes.
    class_weight, source_names, n_jobs
        As in `ChoquetQP`. Sources lie in [-1, 1].

    Attributes
    ----------
    bicapacity_ : BiCapacity
        The learned measure.
    rule_, objective_value_, solution_, classes_
        As in `ChoquetQP`.
    """

    _range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    zero_bound: bool = False
    targets: tuple[float, float] = (-1.0, 1.0)
    class_weight: ClassWeight = None

    bicapacity_ = View[BiCapacity]("measure", "The learned measure.")

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure; parameters as in `ChoquetQP.fit`."""
        given = np.asarray(self.targets)
        if given.shape != (2,) or given.dtype.kind not in "if" or not -1 <= given[0] < given[1] <= 1:
            raise InvalidInputError(
                f"targets must be two rising numbers in [-1, 1], got {self.targets!r}.",
                code="targets-rising",
                argument="targets",
                value=self.targets,
            )
        X, positive = self._take(X, y)
        Planes(X, names=self._names()).check_range(-1.0, "Rescale it.")
        objective = replace(MEAN, zero_bound=bool(self.zero_bound), parameters=(float(given[0]), float(given[1])))
        return self._learn(X, positive, sample_weight, objective)
