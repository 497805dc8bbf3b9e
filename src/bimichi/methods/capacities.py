"""Other measures that are learned: `MICI`, `BinaryMICI` and `MICIRegressor`, `ChoquetQP` and `BiCapacityQP`.

Those of MICI are normalised, and learned from labelled bags; the last two are fitted to the label of every instance, by
one quadratic program.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import is_xarray
from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import CAPACITY_OBJECTIVES, MEAN, NORMALISED_MEAN, Objective, get_objective
from bimichi.fit.objectives.mici import MIN_MAX, REGRESSION
from bimichi.fit.problem import Summed
from bimichi.fit.solvers import BinarySolver, ConvexSolver, get_solver
from bimichi.fit.solvers.convex import solve_least_squares
from bimichi.fit.train import FitResult, problem_in_memory
from bimichi.integral.planes import Planes
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.methods.base import FusionClassifier, Needs, NormalisedFusion, check_alone
from bimichi.methods.measured import BagFusion, MeasureFusion, View
from bimichi.record import Status
from bimichi.rule import FusionRule
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_weights


@dataclass(eq=False, repr=False)
class _MeasureFromBags(BagFusion, NormalisedFusion):
    """The base of all three: bags in, a `Capacity` out."""

    capacity_ = View[Capacity]("measure", "The learned measure.")

    def _learn(self, bags: Bags, objective: Objective, solver: Any) -> Self:
        bags.X = self._normalised_rows(bags.X)
        return self._fit(problem_in_memory(bags, objective, self.n_jobs), solver, **self._unit_scale())


@dataclass(eq=False, repr=False)
class MICI(FusionClassifier, _MeasureFromBags):
    """Multiple-instance Choquet integral: a normalised measure learned from labels of bags [1]_, [2]_.

    Parameters
    ----------
    objective : {"noisy-or", "min-max", "generalized-mean", "mean"}
        What is minimised. "noisy-or" [1]_ treats instances as independent chances; it is flat near its optimum (C = 0.5
        of a negative costs 4e-6), so that very different measures reach nearly the same J: on MICI's own demonstration,
        J below 1e-6 leaves an RMSE of 0.1 to 0.2 to the true fusion. "min-max" and "generalized-mean" [2]_ use the most
        target-like instance of each bag, sharply and softly; "mean" uses all instances.
    solver : {"auto", "convex", "evolutionary"} or solver object
        "auto" is convex where the objective has a convex form ("min-max", "mean"), else evolutionary.
    mu, sigma : float, default=1.0, 0.1
        Of "noisy-or": the mean and the standard deviation of a target's C.
    p1, p2 : float, default=10.0, -10.0
        Of "generalized-mean": the powers for negative bags (near a maximum when large) and for positive ones (near a
        minimum when far below zero).
    bipolar_input : bool, default=False
        Sources lie in [0, 1]; with True they lie in [-1, 1] and are mapped.
    source_names, n_jobs, random_state, verbose, nan
        As in `BiMIChI`.

    Attributes
    ----------
    capacity_ : Capacity
        The learned measure.
    rule_, objective_value_, history_, n_iter_, solution_, usage_, classes_
        As in `BiMIChI`.

    References
    ----------
    .. [1] X. Du, A. Zare, J. M. Keller and D. T. Anderson, "Multiple Instance Choquet Integral for Classifier Fusion",
       IEEE CEC 2016.
    .. [2] X. Du and A. Zare, "Multiple Instance Choquet Integral Classifier Fusion and Regression for Remote Sensing
       Applications", IEEE Transactions on Geoscience and Remote Sensing 57(5), 2019.

    Examples
    --------
    >>> X = [[0.9, 0.2], [0.1, 0.3], [0.2, 0.9], [0.1, 0.2]]
    >>> model = MICI("min-max").fit(X, [1, 1, 0, 0], bags=["a", "a", "b", "b"])
    >>> round(model.capacity_[{0}], 3)
    1.0
    """

    objective: str = "noisy-or"
    solver: Any = "auto"
    mu: float = 1.0
    sigma: float = 0.1
    p1: float = 10.0
    p2: float = -10.0

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure; parameters as in `BiMIChI.fit`."""
        objective = get_objective(self.objective, CAPACITY_OBJECTIVES, settings=self.get_params())
        return self._learn(self._take_bags(X, y, bags, sample_weight), objective, get_solver(self.solver, objective))


@dataclass(eq=False, repr=False)
class BinaryMICI(FusionClassifier, _MeasureFromBags):
    """MICI with a binary measure (MICI-BFM [1]_): every set of sources either decides or does not.

    The objective is min-max. Up to five sources, all binary measures are compared, which is exact (there are 7,579 for
    five); above, a local search is restarted `n_restarts` times.

    Parameters
    ----------
    n_restarts : int, default=100
        Number of local searches.
    bipolar_input, source_names, n_jobs, random_state, nan
        As in `MICI`.

    Attributes
    ----------
    exact_ : bool
        Whether no binary measure is better; see also `solution_.status`.
    capacity_, rule_, objective_value_, history_, n_iter_, solution_, usage_, classes_
        As in `MICI`; the history is over the measures compared.

    References
    ----------
    .. [1] X. Du, A. Zare and D. T. Anderson, "Multiple Instance Choquet Integral with Binary Fuzzy Measures for Remote
       Sensing Classifier Fusion with Imprecise Labels", IEEE SSCI 2019.

    Examples
    --------
    >>> X = [[0.9, 0.2], [0.1, 0.3], [0.2, 0.9], [0.1, 0.2]]
    >>> model = BinaryMICI().fit(X, [1, 1, 0, 0], bags=["a", "a", "b", "b"])
    >>> model.capacity_[{0}], model.exact_
    (1.0, True)
    """

    n_restarts: int = 100

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure; parameters as in `BiMIChI.fit`."""
        return self._learn(self._take_bags(X, y, bags, sample_weight), MIN_MAX, BinarySolver(self.n_restarts))

    @property
    def exact_(self) -> bool:
        """Return whether no binary measure is better."""
        return self._record.status is Status.EXACT


@dataclass(eq=False, repr=False)
class MICIRegressor(RegressorMixin, _MeasureFromBags):  # type: ignore[misc]  # scikit-learn is untyped
    """Multiple-instance Choquet integral for regression: bags with real labels in [0, 1].

    Of each bag, the instance whose C is nearest to the bag's label counts: J is the sum of min (C - label)^2.

    Parameters
    ----------
    solver : {"evolutionary"} or EvolutionarySolver
        J has no convex form.
    bipolar_input, source_names, n_jobs, random_state, verbose, nan
        As in `MICI`.

    Attributes
    ----------
    capacity_, rule_, objective_value_, history_, n_iter_, solution_, usage_
        As in `MICI`.

    Examples
    --------
    >>> X = [[0.9, 0.2], [0.1, 0.3], [0.2, 0.9], [0.1, 0.2]]
    >>> model = MICIRegressor(random_state=0).fit(X, [0.9, 0.9, 0.2, 0.2], bags=["a", "a", "b", "b"])
    >>> model.predict([[0.8, 0.1]]).round(2)
    array([0.8])
    """

    solver: Any = "evolutionary"

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources), or Bags
            Instances of all bags. `Bags` with real labels bring them.
        y : array-like of shape (n_instances,)
            Labels of the bags in [0, 1], repeated for each of their instances.
        bags, sample_weight
            As in `BiMIChI.fit`.
        """
        if isinstance(X, Bags):
            check_alone(y, bags, sample_weight)
            collected, self.n_features_in_ = X.with_signs(np.ones(X.n_sources)), X.n_sources
        else:
            X, y = self._validated(X, y, y_numeric=True)
            collected = Bags.from_instances(X, y, bags, sample_weight, self.nan, real_labels=True)
        outside = collected.labels[(collected.labels < 0) | (collected.labels > 1)]
        if outside.size:
            raise InvalidInputError(
                f"y reaches {float(outside[0])!r}; labels must lie in [0, 1], where the integral lies. Rescale them.",
                code="labels-range",
                argument="y",
            )
        return self._learn(collected, REGRESSION, get_solver(self.solver))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the integral of every instance."""
        check_is_fitted(self)
        return self.fuse(X if is_xarray(X) else self._validated(X, reset=False))


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
