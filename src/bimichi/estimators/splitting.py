"""For scikit-learn's own tools: folds that keep scenes together, and scores of bags instead of repeated labels."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.model_selection import BaseCrossValidator

from bimichi._checks import check_choice, check_integer
from bimichi._types import Ints
from bimichi.errors import InvalidInputError
from bimichi.learning.inputs import group, one_per
from bimichi.learning.ranking import rank


class SceneKFold(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn is untyped
    """Folds of neighbouring scenes (or bags), each kept together, with both classes in every fold.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds; at most as many as there are groups with targets.

    Examples
    --------
    >>> y, scenes = [1, 0, 1, 0, 0, 0], ["a", "a", "b", "b", "c", "c"]
    >>> [test.tolist() for _, test in SceneKFold(2).split(y, y, scenes)]
    [[0, 1, 4, 5], [2, 3]]
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}  # scikit-learn routes groups here

    def __init__(self, n_splits: int = 5) -> None:
        self.n_splits = n_splits

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def _iter_test_indices(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Ints]:
        check_integer(self.n_splits, "n_splits", 2)
        if groups is None or y is None:
            raise InvalidInputError("SceneKFold needs y, and groups: the scene, or the bag, of every instance.")
        labels = one_per(y, len(y), "y")
        classes = np.unique(labels)
        if len(classes) != 2:
            raise InvalidInputError(f"y must have two classes, got {len(classes)}.")
        order, offsets, _ = group(groups, len(labels))
        held = [order[start:stop] for start, stop in pairwise(offsets)]
        positive = [rows for rows in held if (labels[rows] == classes[1]).any()]
        negative = [rows for rows in held if not (labels[rows] == classes[1]).any()]
        if len(positive) < self.n_splits:
            raise InvalidInputError(
                f"n_splits is {self.n_splits}, but only {len(positive)} groups have targets; use n_splits="
                f"{max(2, len(positive))}, or label more."
            )
        for k in range(self.n_splits):
            chosen = [(some, np.array_split(np.arange(len(some)), self.n_splits)[k]) for some in (positive, negative)]
            test = np.sort(np.concatenate([some[j] for some, block in chosen for j in block]))
            if (labels[test] == classes[1]).all():
                raise InvalidInputError(
                    "A fold has only targets: groups of targets alone need as many groups without; use fewer n_splits."
                )
            yield test


def make_bag_scorer(score: Literal["average_precision", "auc"] = "average_precision") -> Any:
    """Return a scorer for `GridSearchCV` and the like that ranks bags by their largest output.

    The label of a positive bag is true of one of its instances, not of all: scored against repeated labels, a perfect
    model may have an AUC of 0.6. The scorer needs `bags`, which scikit-learn passes on by metadata routing.

    Parameters
    ----------
    score : {"average_precision", "auc"}
        How well positive bags rank above negative ones.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from bimichi import BiMIChI
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(
    ...         BiMIChI("mean").set_fit_request(bags=True),
    ...         {"additivity": [1, 2]},
    ...         scoring=make_bag_scorer().set_score_request(bags=True),
    ...         cv=SceneKFold(3),
    ...     )
    ...     X, bags = np.random.default_rng(0).uniform(-1, 1, (120, 2)), np.arange(120) // 4
    ...     best = search.fit(X, bags % 3 == 0, bags=bags, groups=bags).best_params_
    """
    check_choice(score, "score", ("average_precision", "auc"))

    def of_bags(y: Any, fused: Any, bags: Any = None) -> float:
        if bags is None:
            raise InvalidInputError(
                "The scorer of bags was not given bags. Use sklearn.set_config(enable_metadata_routing=True), and call "
                "set_score_request(bags=True) on the scorer and set_fit_request(bags=True) on the estimator."
            )
        labels, values = np.asarray(y), np.asarray(fused)
        order, offsets, _ = group(bags, len(values), y=labels)
        most = np.maximum.reduceat(values[order], offsets[:-1])
        positive = labels[order][offsets[:-1]] == np.unique(labels)[-1]
        found = rank(most[positive], most[~positive])
        return found.ap if score == "average_precision" else found.auc

    return make_scorer(of_bags, response_method="decision_function")
