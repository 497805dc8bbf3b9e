"""`MICI`, `BinaryMICI` and `MICIRegressor`: normalised measures learned from labelled bags."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import is_xarray
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import CAPACITY_OBJECTIVES, Objective, get_objective
from bimichi.fit.objectives.mici import MIN_MAX, REGRESSION
from bimichi.fit.solvers import BinarySolver, get_solver
from bimichi.fit.train import problem_in_memory
from bimichi.measures.capacity import Capacity
from bimichi.methods.base import FusionClassifier, NormalisedFusion, check_alone
from bimichi.methods.measured import BagFusion, View
from bimichi.record import Status
from bimichi.scenes.bags import Bags


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
