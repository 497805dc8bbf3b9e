"""Problems that are sums of squares, and need no rows: `Squares`, of labelled instances; `Summed`, added up before."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.integral.integrals import choquet
from bimichi.integral.linear import linear_form
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.gram import CHUNK, Gram, RowsOfSquares, gram
from bimichi.learning.objectives import Objective
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity

__all__ = ["Squares", "Summed"]

Floats = NDArray[np.float64]


class Squares:
    """The sum over instances of weight times (C - target)^2, for least squares.

    Its quadratic form is gathered in one pass, chunk by chunk, so that no row of the linear form is kept: memory
    does not grow with the number of instances.

    Parameters
    ----------
    X : ndarray of shape (n_instances, n_sources)
        Instances, in the range of the objective's measure.
    positive : ndarray of bool
        Their labels; the objective's parameters are the targets of the two classes.
    weights : ndarray of float64
        How much each counts.
    objective : Objective
        One whose convex form is "mean".
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self,
        X: NDArray[Any],
        positive: NDArray[np.bool_],
        weights: Floats,
        objective: Objective,
        n_jobs: int | None = None,
    ) -> None:
        self.lattice = objective.lattice(X.shape[1])
        self.objective = objective
        self.labels = positive
        self.weights = weights
        self._X = X
        self._n_jobs = check_n_jobs(n_jobs)

    def gram(self, targets: tuple[float, float]) -> Gram:
        """Return the sum for these targets of the two classes as a quadratic form; O(n m^2)."""
        measure = self.objective.measure

        def rows(chunk: slice) -> RowsOfSquares:
            codes, weights = linear_form(self._X[chunk], measure, check_range=False, n_jobs=1)
            return RowsOfSquares(codes, weights, self.weights[chunk], self._at(chunk, targets))

        return gram(self.lattice, len(self._X), rows, self._n_jobs)

    def value(self, values: Floats) -> float:
        """J at these values of the measure; O(n m)."""
        g = (
            Capacity(values)
            if self.objective.measure == "capacity"
            else BiCapacity(values, None, self.lattice.zero_bound)
        )
        total = 0.0
        for start in range(0, len(self._X), 8 * CHUNK):
            chunk = slice(start, start + 8 * CHUNK)
            fused = choquet(self._X[chunk], g, check_range=False, n_jobs=self._n_jobs)
            total += float(self.weights[chunk] @ (fused - self._at(chunk, self.objective.parameters)) ** 2)
        return total

    def _at(self, chunk: slice, targets: tuple[float, float]) -> Floats:
        return np.where(self.labels[chunk], targets[1], targets[0])


class Summed:
    """A bi-capacity's problem of which the quadratic form alone is known.

    Parameters
    ----------
    form : Gram
        For the targets that the objective's parameters name.
    labels, weights : ndarray
        Of the bags.
    objective : Objective
        One whose convex form is "mean".
    signs : ndarray of float64, shape (n_sources,)
        By which the sources are multiplied.
    """

    def __init__(
        self, form: Gram, labels: NDArray[np.bool_], weights: Floats, objective: Objective, signs: Floats
    ) -> None:
        self.lattice = objective.lattice(len(signs))
        self.objective, self.labels, self.weights = objective, labels, weights
        self._form = form if (signs > 0).all() else form.turned(self.lattice.turned(signs))

    def gram(self, targets: tuple[float, float]) -> Gram:
        """Return the form, if it is that of these targets."""
        if targets != self.objective.parameters:
            raise InvalidInputError(f"Only the targets {self.objective.parameters} were added up, not {targets}.")
        return self._form

    def value(self, values: Floats) -> float:
        """J at these values of the measure."""
        return float(values @ (self._form.matrix @ values) - 2 * self._form.linear @ values + self._form.constant)
