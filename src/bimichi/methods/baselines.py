"""Fusions without a measure of interactions: one source, a constant, the smallest, the largest, means, and classifiers.

Of classifiers of scikit-learn, the probability of the target is the confidence.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import NORMALISED_MEAN
from bimichi.fit.problem import Solution
from bimichi.fit.solvers import ConvexSolver
from bimichi.fit.spaces.base import POLISH, Program
from bimichi.fit.train import FitResult
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.lattice import random_generator
from bimichi.methods.base import FusionClassifier, Needs, NormalisedFusion
from bimichi.methods.measured import MeasureFusion
from bimichi.record import Status
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_weights

Sources = tuple[NDArray[Any], ...]


class _Unlearned(FusionClassifier):
    """A method that learns nothing and needs no labels."""

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Check the parameters and note the number of sources; labels are ignored."""
        if isinstance(X, Bags):
            self.n_features_in_ = X.n_sources
        else:
            self._validated(X)
        self.classes_ = np.array([0, 1]) if y is None else np.unique(y)
        self._names()
        self._check_parameters()
        return self

    def _check_parameters(self) -> None:
        if getattr(self, "source", 0) not in range(self.n_features_in_):
            raise InvalidInputError(
                f"source must be an index in 0..{self.n_features_in_ - 1}, got {self.source!r}.",
                code="source-index",
                argument="source",
                value=self.source,
            )


class _Pointwise(_Unlearned, NormalisedFusion):
    """A function of the sources at each instance; parameters as in `MICI`."""

    function: ClassVar[Callable[..., Any]] = np.add

    def fuse(self, X: Any) -> NDArray[Any]:
        planes = Planes(self._normalised(X))

        def run(chunk: slice) -> None:
            with planes.writing(chunk) as result:
                self._point(planes.contiguous(chunk), result)

        run_chunks(run, planes.chunks(), check_n_jobs(self.n_jobs))
        return planes.out

    def _point(self, sources: Sources, out: NDArray[Any]) -> None:
        """Write the confidence of some instances: `function` of the sources, one after another."""
        out[:] = sources[0]
        for source in sources[1:]:
            self.function(out, source, out=out)


def _copy_nan(sources: Iterable[NDArray[Any]], out: NDArray[Any]) -> None:
    for source in sources:
        out[np.isnan(source)] = np.nan


class MinFusion(_Pointwise):
    """The smallest source: all must agree."""

    function = np.minimum


class MaxFusion(_Pointwise):
    """The largest source: one is enough."""

    function = np.maximum


class MeanFusion(_Pointwise):
    """The mean of the sources."""

    def _point(self, sources: Sources, out: NDArray[Any]) -> None:
        super()._point(sources, out)
        out /= len(sources)


@dataclass(eq=False, repr=False)
class SingleSource(_Pointwise):
    """One source as it is: what the others have to beat.

    Parameters
    ----------
    source : int, default=0
        Its index.
    bipolar_input, source_names, n_jobs
        As in `MICI`.
    """

    source: int = 0

    def _point(self, sources: Sources, out: NDArray[Any]) -> None:
        out[:] = sources[self.source]
        _copy_nan(sources, out)


@dataclass(eq=False, repr=False)
class SignedSource(_Unlearned):
    """One source in [-1, 1] as it is, or inverted.

    Parameters
    ----------
    source : int, default=0
        Its index.
    sign : {1, -1}, default=1
        -1 inverts it.
    """

    _range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    source: int = 0
    sign: int = 1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.sign not in (1, -1):
            raise InvalidInputError(
                f"sign must be 1 or -1, got {self.sign!r}.", code="sign", argument="sign", value=self.sign
            )

    def fuse(self, X: Any) -> NDArray[Any]:
        planes = self._split(X)
        fused: NDArray[Any] = np.multiply(planes[self.source], self.sign)
        _copy_nan(planes, fused)
        return fused


@dataclass(eq=False, repr=False)
class ConstantFusion(_Pointwise):
    """The same confidence everywhere; 0, the empty map, by default. Where targets are rare, its RMSE is good already.

    Parameters
    ----------
    value : float, default=0.0
        The confidence, in [0, 1].
    bipolar_input, source_names, n_jobs
        As in `MICI`.
    """

    value: float = 0.0

    def _check_parameters(self) -> None:
        check_number(self.value, "value", 0, 1)

    def _point(self, sources: Sources, out: NDArray[Any]) -> None:
        out[:] = self.value
        _copy_nan(sources, out)


@dataclass(eq=False, repr=False)
class WeightedMeanFusion(FusionClassifier, MeasureFusion, NormalisedFusion):
    """A weighted mean, its weights by least squares to instance labels.

    Weights are not negative and add up to 1, so that the output is a confidence in [0, 1].

    Parameters
    ----------
    bipolar_input, source_names, n_jobs
        As in `MICI`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_sources,)
        The learned weights; `rule_` has them as an additive measure.
    objective_value_ : float
        The weighted mean of squared errors.
    """

    needs: ClassVar[Needs] = "instances"
    fuzzy: ClassVar[bool] = False

    @property
    def weights_(self) -> Floats:
        """The weight of each source."""
        return np.asarray(self.rule_.measure.values[: self.rule_.n_sources])

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
        pull = (share * positive) @ rows.astype(np.float64, copy=False)
        weights = _minimum(square, pull)
        value = float(weights @ square @ weights - 2 * pull @ weights + share @ positive)
        terms = np.concatenate([weights, -weights, np.zeros(2 * m * m - 2 * m)])
        solution = Solution(terms, value, Status.CONVERGED, 1, np.array([value]), lower_bound=value)
        result = FitResult(AdditiveBiCapacity(terms, self._names(), order=1), np.ones(m), solution, {})
        objective = replace(NORMALISED_MEAN, name="least squares")
        return self._set_rule(result, objective, ConvexSolver(), **self._unit_scale())


def _minimum(square: Floats, pull: Floats) -> Floats:
    """Return weights w, not negative and of sum 1, that minimise w'Sw - 2 p'w."""
    m = len(pull)
    program = Program(m)
    program.equal(np.ones(1), (np.zeros(m, np.int64), np.arange(m), 1.0))
    program.below(np.zeros(m), (np.arange(m), np.arange(m), -1.0))
    P, q = sp.csc_matrix(np.triu(2 * square)), -2 * pull
    solved = program.solve(P, q, POLISH) or program.solve(P, q)
    if solved is None:
        raise InvalidInputError(
            "The weights could not be found: the sources of X are not valid numbers.", code="weights-unfound"
        )
    weights = np.maximum(solved[0], 0.0)
    return np.asarray(weights / weights.sum())


CHUNK = 1 << 16


class _Classifier(FusionClassifier):
    """A classifier of instances whose probability of the target is the confidence.

    If there are more than `max_samples` training instances, that many are drawn without replacement, the same share of
    each class, but at least `min_per_class` of the rarer one if there are so many. Equal instances,
    which are most of those of 8-bit images, are classified once.
    """

    needs: ClassVar[Needs] = "instances"
    max_samples: int | None
    min_per_class: ClassVar[int] = 1000
    random_state: Any

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Learn from instances and their labels; two classes. `bags` are ignored."""
        limit = None if self.max_samples is None else check_integer(self.max_samples, "max_samples", 2)
        X, positive = self._take(X, y)
        self.n_samples_ = len(positive)
        if limit is not None and limit < len(positive):
            chosen = self._subsample(positive, limit)
            X, positive, self.n_samples_ = X[chosen], positive[chosen], limit
        self.classifier_ = self._train(X, positive)
        return self

    def _subsample(self, positive: Flags, limit: int) -> Ints:
        rng = random_generator(self.random_state)
        rare = bool(positive.mean() < 0.5)
        few, many = np.flatnonzero(positive == rare), np.flatnonzero(positive != rare)
        wanted = round(limit * len(few) / len(positive))
        wanted = min(len(few), max(wanted, min(self.min_per_class, limit // 2)))
        picked = [rng.choice(few, wanted, replace=False), rng.choice(many, limit - wanted, replace=False)]
        return np.sort(np.concatenate(picked))

    @abstractmethod
    def _train(self, X: NDArray[Any], positive: Flags) -> Any:
        """Return the fitted classifier."""

    def fuse(self, X: Any) -> NDArray[Any]:
        planes = self._split(X)
        rows = np.stack([plane.ravel() for plane in planes], axis=1).astype(np.float64)
        fused = np.full(len(rows), np.nan)
        whole = ~np.isnan(rows).any(axis=1)
        distinct, where = _distinct(rows[whole])
        parts = [self.classifier_.predict_proba(distinct[k : k + CHUNK])[:, 1] for k in range(0, len(distinct), CHUNK)]
        if parts:
            fused[whole] = np.concatenate(parts)[where]
        narrow = all(plane.dtype in (np.float16, np.float32) for plane in planes)
        return fused.reshape(planes[0].shape).astype(np.float32 if narrow else np.float64)


def _distinct(rows: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows, and which of them each row is; quicker than `np.unique` along an axis."""
    order = np.lexsort(rows.T)
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    where = np.empty(len(rows), np.int64)
    where[order] = np.cumsum(new) - 1
    return rows[order[new]], where


@dataclass(eq=False, repr=False)
class KNNFusion(_Classifier):
    """The share of targets among the nearest training instances (scikit-learn's `KNeighborsClassifier`).

    Parameters
    ----------
    n_neighbors : int, default=100
        How many neighbours; fewer if there are fewer training instances.
    max_samples : int, default=100_000
        The largest number of training instances. The same share of each class is drawn, but at least 1,000 of the rarer
        one, if there are so many.
    n_jobs, random_state
        As in `BiMIChI`; `random_state` draws the training instances.

    Attributes
    ----------
    classifier_ : KNeighborsClassifier
        Fitted to `n_samples_` instances.
    """

    n_neighbors: int = 100
    max_samples: int = 100_000
    n_jobs: int | None = None
    random_state: Any = 0

    def _train(self, X: NDArray[Any], positive: Flags) -> Any:
        neighbours = min(self.n_neighbors, len(X))
        return KNeighborsClassifier(neighbours, n_jobs=-1 if self.n_jobs is None else self.n_jobs).fit(X, positive)


@dataclass(eq=False, repr=False)
class SVMFusion(_Classifier):
    """A support vector machine with Gaussian kernel (scikit-learn's `SVC`), its margin turned into a probability.

    Parameters
    ----------
    C : float, default=1.0
        What an error costs.
    gamma, class_weight
        As in `SVC`.
    max_samples : int, default=5_000
        As in `KNNFusion`; training time grows with its square.
    n_jobs, random_state
        As in `KNNFusion`.

    Attributes
    ----------
    classifier_ : CalibratedClassifierCV
        The machine, with Platt's sigmoid fitted to margins of three-fold cross-validation; from `n_samples_` instances.
    """

    C: float = 1.0
    gamma: Any = "scale"
    class_weight: Any = "balanced"
    max_samples: int = 5_000
    n_jobs: int | None = None
    random_state: Any = 0

    def _train(self, X: NDArray[Any], positive: Flags) -> Any:
        folds = min(3, int(min(positive.sum(), (~positive).sum())))
        if folds < 2:
            raise InvalidInputError("SVMFusion needs at least two instances of each class.", code="instances-few")
        machine = SVC(C=self.C, gamma=self.gamma, class_weight=self.class_weight)
        return CalibratedClassifierCV(machine, method="sigmoid", cv=folds, ensemble=False).fit(X, positive)


@dataclass(eq=False, repr=False)
class GradientBoosting(_Classifier):
    """Gradient-boosted trees on all training instances (scikit-learn's `HistGradientBoostingClassifier`).

    Parameters
    ----------
    random_state : int, default=0
        Seed of the instances that are held out to decide when to stop.

    Attributes
    ----------
    classifier_ : HistGradientBoostingClassifier
        Fitted to all instances.
    """

    max_samples = None  # no parameter

    random_state: Any = 0

    def _train(self, X: NDArray[Any], positive: Flags) -> Any:
        return HistGradientBoostingClassifier(random_state=self.random_state).fit(X, positive)
