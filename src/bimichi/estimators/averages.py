"""Fusion without a measure: one source, a constant, the smallest, the largest, and (weighted) means."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from bimichi.errors import InvalidInputError
from bimichi.estimators.base import FLOATS, FusionClassifier, Needs, NormalisedFusion
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.learning.bags import Bags, check_weights
from bimichi.learning.spaces.quadratic import POLISH, Program

__all__ = ["ConstantFusion", "MaxFusion", "MeanFusion", "MinFusion", "SingleSource", "WeightedMeanFusion"]

Plane = NDArray[Any]


class _Pointwise(FusionClassifier, NormalisedFusion):
    """A function of the sources at each instance, which needs no labels.

    Parameters
    ----------
    bipolar_input : bool, default=False
        Sources lie in [0, 1]; with True they lie in [-1, 1] and are mapped.
    source_names : sequence of str, optional
        Names of the sources, for errors.
    n_jobs : int, optional
        Number of threads; all cores by default.
    """

    def __init__(
        self, bipolar_input: bool = False, source_names: Sequence[str] | None = None, n_jobs: int | None = None
    ) -> None:
        self.bipolar_input = bipolar_input
        self.source_names = source_names
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Take note of the number of sources; nothing is learned, and labels are ignored."""
        if isinstance(X, Bags):
            self.n_features_in_ = X.n_sources
        else:
            validate_data(self, X, dtype=FLOATS)
        self.classes_ = np.array([0, 1]) if y is None else np.unique(y)
        self._names()
        return self

    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the confidence of every instance, in [0, 1]; rows, an image or planes. NaN gives NaN."""
        planes = Planes(self._normalised(X))

        def run(chunk: slice) -> None:
            with planes.writing(chunk) as result:
                self._point(planes.contiguous(chunk), result)

        run_chunks(run, planes.chunks(), check_n_jobs(self.n_jobs))
        return planes.out

    @abstractmethod
    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        """Write the confidence of some instances."""


def _fold(function: Callable[..., Plane], sources: tuple[Plane, ...], out: Plane) -> None:
    out[:] = sources[0]
    for source in sources[1:]:
        function(out, source, out=out)


class MinFusion(_Pointwise):
    """The smallest source: all must agree."""

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        _fold(np.minimum, sources, out)


class MaxFusion(_Pointwise):
    """The largest source: one is enough."""

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        _fold(np.maximum, sources, out)


class MeanFusion(_Pointwise):
    """The mean of the sources."""

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        _fold(np.add, sources, out)
        out /= len(sources)


class SingleSource(_Pointwise):
    """One source as it is: what the others have to beat.

    Parameters
    ----------
    source : int, default=0
        Its index.
    bipolar_input, source_names, n_jobs
        As in `MeanFusion`.
    """

    def __init__(
        self,
        source: int = 0,
        bipolar_input: bool = False,
        source_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(bipolar_input, source_names, n_jobs)
        self.source = source

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Check that there is such a source; nothing is learned."""
        super().fit(X, y, bags)
        if self.source not in range(self.n_features_in_):
            raise InvalidInputError(f"source must be an index in 0..{self.n_features_in_ - 1}, got {self.source!r}.")
        return self

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        out[:] = sources[self.source]
        for source in sources:
            out[np.isnan(source)] = np.nan


class ConstantFusion(_Pointwise):
    """The same confidence everywhere; 0, the empty map, by default. Where targets are rare, its RMSE is good already.

    Parameters
    ----------
    value : float, default=0.0
        The confidence, in [0, 1].
    bipolar_input, source_names, n_jobs
        As in `MeanFusion`.
    """

    def __init__(
        self,
        value: float = 0.0,
        bipolar_input: bool = False,
        source_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(bipolar_input, source_names, n_jobs)
        self.value = value

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Check the value; nothing is learned."""
        if not isinstance(self.value, int | float) or not 0 <= self.value <= 1:
            raise InvalidInputError(f"value must lie in [0, 1], got {self.value!r}.")
        return super().fit(X, y, bags)

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        out[:] = self.value
        for source in sources:
            out[np.isnan(source)] = np.nan


class WeightedMeanFusion(_Pointwise):
    """A weighted mean, its weights by least squares to instance labels.

    Weights are not negative and add up to 1, so that the output is a confidence in [0, 1].

    Attributes
    ----------
    weights_ : ndarray of shape (n_sources,)
        What was learned.
    """

    needs: ClassVar[Needs] = "instances"

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the weights from instances and their labels; two classes. `bags` are ignored."""
        X, positive = self._take(X, y)
        rows = self._normalised_rows(X)
        counts = check_weights(sample_weight, len(rows))
        share = counts / counts.sum()
        m = rows.shape[1]
        square = np.zeros((m, m))
        for start in range(0, len(rows), 1 << 17):
            part = rows[start : start + (1 << 17)].astype(np.float64)
            square += part.T @ (part * share[start : start + (1 << 17), None])
        program = Program(m)
        program.equal(np.ones(1), (np.zeros(m, np.int64), np.arange(m), 1.0))
        program.below(np.zeros(m), (np.arange(m), np.arange(m), -1.0))
        P, q = sp.csc_matrix(np.triu(2 * square)), -2 * (share * positive) @ rows.astype(np.float64, copy=False)
        solved = program.solve(P, q, POLISH) or program.solve(P, q)
        if solved is None:
            raise InvalidInputError("The weights could not be found: the sources of X are not valid numbers.")
        weights = np.maximum(solved[0], 0.0)
        self.weights_ = weights / weights.sum()
        return self

    def _point(self, sources: tuple[Plane, ...], out: Plane) -> None:
        out[:] = 0
        for weight, source in zip(self.weights_, sources, strict=True):
            out += out.dtype.type(weight) * source
