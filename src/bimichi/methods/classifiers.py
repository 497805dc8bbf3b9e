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

from bimichi._checks import check_integer
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import random_generator
from bimichi.methods.base import FusionClassifier, Needs

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
