"""What the study compares: single sources, gradient boosting, least squares on pixels, and Bi-MIChI."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from bimichi._checks import check_choice
from bimichi.estimators.averages import ConstantFusion
from bimichi.estimators.base import Fusion, FusionClassifier, Needs
from bimichi.estimators.bimichi import BiMIChI
from bimichi.estimators.choquet_qp import BiCapacityQP, ChoquetQP
from bimichi.learning.objectives import OBJECTIVES

__all__ = ["Candidate", "GradientBoosting", "SignedSource", "candidates"]

Labels = Literal["none", "bags", "pixels"]


class Candidate(NamedTuple):
    """A row of the study.

    Attributes
    ----------
    name : str
        What it is called.
    kind : {"empty", "source", "boosting", "pixels", "bi-michi"}
        What it belongs to.
    labels : {"none", "bags", "pixels"}
        What it learns from. A classifier of instances gives every pixel the label of its bag, if it learns from bags.
    method : Fusion
        Not fitted yet.
    """

    name: str
    kind: Literal["empty", "source", "boosting", "pixels", "bi-michi"]
    labels: Labels
    method: Fusion


class SignedSource(Fusion):
    """One source in [-1, 1] as it is, or turned over.

    Parameters
    ----------
    source : int
        Its index.
    sign : {1, -1}
        -1 turns it over.
    """

    def __init__(self, source: int = 0, sign: int = 1) -> None:
        self.source = source
        self.sign = sign

    @property
    def output_range(self) -> tuple[float, float]:
        """Where `fuse` lies."""
        return (-1.0, 1.0)

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Take note of the number of sources; nothing is learned."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the source, times its sign."""
        return self.sign * self._split(X)[self.source]


class GradientBoosting(FusionClassifier):
    """scikit-learn's gradient boosting on the sources of each pixel; its probability of a target is the confidence.

    Parameters
    ----------
    random_state : int, default=0
        Draws the pixels that tell when to stop.
    """

    needs: ClassVar[Needs] = "instances"

    def __init__(self, random_state: Any = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, bags: Any = None) -> Self:
        """Learn from instances and their labels; `bags` are ignored."""
        X, positive = self._take(X, y)
        self.classifier_ = HistGradientBoostingClassifier(random_state=self.random_state).fit(X, positive)
        return self

    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the probability of the target at every instance; rows, an image or planes."""
        planes = self._split(X)
        rows = np.stack([plane.ravel() for plane in planes], axis=1)
        return np.asarray(self.classifier_.predict_proba(rows)[:, 1].reshape(planes[0].shape))


def candidates(
    source_names: Sequence[str],
    which: Literal["all", "bi-michi"] = "all",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Return the rows of the study, for sources of these names in [-1, 1].

    Parameters
    ----------
    source_names : sequence of str
        Names of the sources.
    which : {"all", "bi-michi"}
        All rows, or those of Bi-MIChI alone.
    random_state, n_jobs
        As in `BiMIChI`.
    """
    check_choice(which, "which", ("all", "bi-michi"))
    names = list(source_names)
    plain: dict[str, Any] = {"bipolar_input": True, "source_names": names, "n_jobs": n_jobs}
    bipolar: dict[str, Any] = {"source_names": names, "n_jobs": n_jobs, "random_state": random_state}
    boosting = GradientBoosting(random_state)
    rows = [Candidate("empty map", "empty", "none", ConstantFusion(**plain))]
    for k, name in enumerate(names):
        rows.append(Candidate(f"source {name}", "source", "none", SignedSource(k)))
        rows.append(Candidate(f"source {name}, turned over", "source", "none", SignedSource(k, -1)))
    rows += [
        Candidate("gradient boosting, pixel labels", "boosting", "pixels", boosting),
        Candidate("gradient boosting, bag labels", "boosting", "bags", boosting),
        Candidate("CI-QP, pixel labels", "pixels", "pixels", ChoquetQP(**plain)),
        Candidate("bi-capacity QP, pixel labels", "pixels", "pixels", BiCapacityQP(source_names=names, n_jobs=n_jobs)),
    ]
    kinds: list[tuple[str, int | None]] = [*((objective, None) for objective in OBJECTIVES), ("mean", 2), ("mean", 1)]
    for objective, additivity in kinds:
        name = f"Bi-MIChI {objective}" + (f", {additivity}-additive" if additivity else "")
        given = BiMIChI(objective, additivity=additivity, **bipolar)
        learned = BiMIChI(objective, additivity=additivity, polarity="learn", **bipolar)
        rows.append(Candidate(f"{name}, polarity given", "bi-michi", "bags", given))
        rows.append(Candidate(f"{name}, polarity learned", "bi-michi", "bags", learned))
    return [row for row in rows if which in ("all", row.kind)]
