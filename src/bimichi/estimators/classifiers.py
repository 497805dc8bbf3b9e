"""Classifiers of scikit-learn, their probability of the target as the confidence."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from bimichi.errors import InvalidInputError
from bimichi.estimators.base import FusionClassifier, Needs
from bimichi.measures.sampling import random_generator

__all__ = ["GradientBoosting", "KNNFusion", "SVMFusion"]

CHUNK = 1 << 16


class _Classifier(FusionClassifier):
    """A classifier of instances whose probability of the target is the confidence.

    Training: if there are more than `max_samples` instances, so many are drawn, of each class the same share (but as
    many of the rarer one as there are, up to `min_per_class`), and none twice. Fusing: equal instances are asked for
    once, which on images of 8 bits a channel are most.
    """

    needs: ClassVar[Needs] = "instances"
    max_samples: int
    min_per_class: ClassVar[int] = 1000
    random_state: Any

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Learn from instances and their labels; two classes. `bags` are ignored."""
        if isinstance(self.max_samples, bool) or not isinstance(self.max_samples, int) or self.max_samples < 2:
            raise InvalidInputError(f"max_samples must be a whole number of at least 2, got {self.max_samples!r}.")
        X, positive = self._take(X, y)
        chosen = self._subsample(positive)
        self.n_samples_ = len(chosen)
        self.classifier_ = self._train(X[chosen], positive[chosen])
        return self

    def _subsample(self, positive: NDArray[np.bool_]) -> NDArray[np.int64]:
        n = len(positive)
        if n <= self.max_samples:
            return np.arange(n)
        rng = random_generator(self.random_state)
        rare = bool(positive.mean() < 0.5)
        few, many = np.flatnonzero(positive == rare), np.flatnonzero(positive != rare)
        wanted = round(self.max_samples * len(few) / n)
        wanted = min(len(few), max(wanted, min(self.min_per_class, self.max_samples // 2)))
        picked = [rng.choice(few, wanted, replace=False), rng.choice(many, self.max_samples - wanted, replace=False)]
        return np.sort(np.concatenate(picked))

    @abstractmethod
    def _train(self, X: NDArray[Any], positive: NDArray[np.bool_]) -> Any:
        """Return the fitted classifier."""

    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the probability of the target at every instance; rows, an image or planes. NaN gives NaN."""
        check_is_fitted(self)
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


def _distinct(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distinct rows, and which of them each row is."""
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
        From how many instances to learn at most. Of each class the same share is drawn, but at least 1,000 of the rarer
        one, if there are so many.
    n_jobs, random_state
        As in `BiMIChI`; `random_state` draws the training instances.

    Attributes
    ----------
    classifier_ : KNeighborsClassifier
        What was learned, from `n_samples_` instances.
    """

    n_neighbors: int = 100
    max_samples: int = 100_000
    n_jobs: int | None = None
    random_state: Any = 0

    def _train(self, X: NDArray[Any], positive: NDArray[np.bool_]) -> Any:
        neighbours = min(self.n_neighbors, len(X))
        return KNeighborsClassifier(neighbours, n_jobs=-1 if self.n_jobs is None else self.n_jobs).fit(X, positive)


@dataclass(eq=False, repr=False)
class SVMFusion(_Classifier):
    """A support vector machine with Gaussian kernel (scikit-learn's `SVC`), its margin turned into a probability.

    Parameters
    ----------
    C : float, default=1.0
        What an error costs.
    gamma : {"scale", "auto"} or float
        Of the kernel.
    class_weight : mapping, "balanced" or None
        As in `SVC`.
    max_samples : int, default=5_000
        As in `KNNFusion`; training takes time with the square of this.
    n_jobs, random_state
        As in `KNNFusion`.

    Attributes
    ----------
    classifier_ : CalibratedClassifierCV
        What was learned, from `n_samples_` instances: the machine, and Platt's sigmoid fitted to margins of
        three-fold cross-validation.
    """

    C: float = 1.0
    gamma: Any = "scale"
    class_weight: Any = "balanced"
    max_samples: int = 5_000
    n_jobs: int | None = None
    random_state: Any = 0

    def _train(self, X: NDArray[Any], positive: NDArray[np.bool_]) -> Any:
        folds = min(3, int(min(positive.sum(), (~positive).sum())))
        if folds < 2:
            raise InvalidInputError("SVMFusion needs at least two instances of each class.")
        machine = SVC(C=self.C, gamma=self.gamma, class_weight=self.class_weight)
        return CalibratedClassifierCV(machine, method="sigmoid", cv=folds, ensemble=False).fit(X, positive)


@dataclass(eq=False, repr=False)
class GradientBoosting(_Classifier):
    """Gradient-boosted trees on all training instances (scikit-learn's `HistGradientBoostingClassifier`).

    Parameters
    ----------
    random_state : int, default=0
        Seed of the instances that are held back to find out when to stop.

    Attributes
    ----------
    classifier_ : HistGradientBoostingClassifier
        What was learned.
    """

    random_state: Any = 0

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Learn from instances and their labels; two classes. `bags` are ignored."""
        self.classifier_ = self._train(*self._take(X, y))
        return self

    def _train(self, X: NDArray[Any], positive: NDArray[np.bool_]) -> Any:
        return HistGradientBoostingClassifier(random_state=self.random_state).fit(X, positive)
