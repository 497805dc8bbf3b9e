"""Interface of every method: ``fit(X, y, bags=None)``, ``fuse(X)``, `needs` (labels or input) and `output_range`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bimichi._checks import is_xarray, refuse_masked
from bimichi._extras import import_optional
from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import to_common_scale
from bimichi.integral.labelled import aligned, fuse_array, unlabelled
from bimichi.integral.planes import Planes, split_planes
from bimichi.link import probability_of
from bimichi.measures.base import check_names
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import group
from bimichi.scenes.dataset import Dataset

Needs = Literal["bags", "instances", "image"] | None
FLOATS = [np.float64, np.float32]


def check_alone(*others: Any) -> None:
    """Raise if `fit` was given anything besides `Bags`."""
    if any(other is not None for other in others):
        raise InvalidInputError(
            "Bags have labels and weights of their own; pass fit nothing else.", code="bags-with-labels"
        )


def takes_xarray(method: Callable[..., NDArray[Any]]) -> Callable[..., Any]:
    """Let a method that fuses arrays accept those of xarray as well."""

    @wraps(method)
    def either(self: "Fusion", X: Any, *arguments: Any, **named: Any) -> Any:
        if self.needs != "image" and is_xarray(X):
            return fuse_array(self, X, method=method.__name__)
        return method(self, X, *arguments, **named)

    return either


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a `fit` that fails or is interrupted leave the estimator, and what it had learned before, as it was.

    It learns in a copy that has the parameters alone, whose attributes are taken over in one assignment.
    """
    names = list(signature(fit).parameters)[1:]

    @wraps(fit)
    def fit_copy(self: "Fusion", *arguments: Any, **named: Any) -> Any:
        for name, value in [*zip(names, arguments, strict=False), *named.items()]:
            refuse_masked(value, name)
        fresh = object.__new__(type(self))
        learned = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        fresh.__dict__ = {name: value for name, value in vars(self).items() if name not in learned}
        fit(fresh, *arguments, **named)
        self.__dict__ = fresh.__dict__
        return self

    return fit_copy


def fits_xarray(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let `fit` accept arrays and datasets of xarray: every pixel is an instance, sources keep their names.

    Labels, ids of bags and weights may be arrays of xarray with the same coordinates, or plain arrays of the same
    shape. Lazy arrays are computed.
    """

    @wraps(method)
    def either(self: "Fusion", *arguments: Any, **named: Any) -> Any:
        X: Any = arguments[0] if arguments else named.get("X")
        if self.needs == "image" or not is_xarray(X):
            return method(self, *arguments, **named)
        planes, names, like = unlabelled(X)
        rows: Any = np.stack([plane.ravel() for plane in planes], axis=1)
        if names is not None:
            rows = import_optional("pandas").DataFrame(rows, columns=names)
        passed = dict(signature(method).bind(self, *arguments, **named).arguments)
        flat = {
            name: None if array is None else flat_like(array, like, name)
            for name, array in passed.items()
            if name not in ("self", "X")
        }
        return method(self, rows, **flat)

    return either


def flat_like(values: Any, like: Any, what: str) -> NDArray[Any]:
    """Return one entry per pixel of an array of xarray, from an array of its shape, or of as many entries."""
    array = np.asarray(aligned(values, like, what))
    if array.shape not in (like.shape, (like.size,)):
        raise InvalidInputError(
            f"{what} has shape {array.shape}; with X of xarray it must have one entry per pixel, {like.shape}. Labels "
            "of bags by their ids go with Bags.from_image(X, segments, labels).",
            code="entries-per-pixel",
            argument=what,
        )
    return array.ravel()


class Fusion(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A method that turns sources into one confidence map.

    Attributes
    ----------
    needs : {"bags", "instances", "image", None}
        Labels of bags, labels of instances, the RGB image instead of sources, or nothing.
    fuzzy : bool
        Whether the method is built on a (bi-)capacity.
    """

    needs: ClassVar[Needs] = None
    fuzzy: ClassVar[bool] = False
    fit: ClassVar[Callable[..., Any]]
    _range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fuse" in vars(cls):  # here and not class by class, so that none is forgotten
            cls.fuse = takes_xarray(cls.fuse)  # type: ignore[method-assign]
        if "fit" in vars(cls):
            cls.fit = all_or_nothing(fits_xarray(cls.fit))

    @property
    def output_range(self) -> tuple[float, float]:
        """Range of `fuse`: (-1, 1) or (0, 1)."""
        return self._range

    @abstractmethod
    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the confidence of every instance.

        Parameters
        ----------
        X : array-like of shape (..., n_sources), or list of n_sources planes
            Rows, an image, or planes. NaN in a source gives NaN. An array or a dataset of xarray gives an array of
            xarray back; see `bimichi.fuse.fuse_array`.
        """

    def _names(self) -> Sequence[str] | None:
        names = getattr(self, "source_names", None)
        if names is not None:
            return check_names(names, self.n_features_in_)
        columns = getattr(self, "feature_names_in_", None)
        return None if columns is None else [str(name) for name in columns]

    def _validated(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Return X (and y) as scikit-learn checks them, but refuse NaN in words that name what helps here."""
        checked = validate_data(self, X, y, dtype=FLOATS, ensure_all_finite=False, **options)
        rows = checked[0] if isinstance(checked, tuple) else checked
        if np.isinf(rows).any():
            raise InvalidInputError(
                "X contains infinity (inf). Clip such values, or set them to NaN.", code="infinite", argument="X"
            )
        missing = int(np.isnan(rows).any(axis=1).sum())
        if missing and getattr(self, "nan", "raise") != "drop":
            remedy = "leave them out, X[~np.isnan(X).any(axis=1)]"
            if hasattr(self, "nan"):
                remedy = f"pass nan='drop' to {type(self).__name__}, or {remedy}"
            elif options.get("reset") is False:
                remedy = f"use fuse, which returns NaN for them, or {remedy}"
            raise InvalidInputError(
                f"X contains NaN in {missing:,} of {len(rows):,} instances. To go on, {remedy}.",
                code="nan",
                argument="X",
            )
        return checked

    def _split(self, X: Any) -> list[NDArray[Any]]:
        """Return one array per source, from rows, an image, planes or a data frame."""
        check_is_fitted(self)
        if hasattr(X, "columns"):  # a data frame: its columns must be those of fit, in their order
            X = validate_data(self, X, dtype=FLOATS, reset=False, ensure_all_finite="allow-nan")
        return split_planes(X, self.n_features_in_)[1]


class FusionClassifier(ClassifierMixin, Fusion):  # type: ignore[misc]  # scikit-learn is untyped
    """A method that is also a scikit-learn classifier."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # monotone in every source
        tags.input_tags.allow_nan = getattr(self, "nan", "raise") == "drop"
        return tags

    def _take(self, X: Any, y: Any) -> tuple[NDArray[Any], Flags]:
        """Return rows, and whether the label of each is the second class."""
        if y is None and self.needs == "instances":
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it needs the label of every "
                "instance. Methods that learn from labels of bags are BiMIChI, MICI and BinaryMICI.",
                code="labels-missing",
            )
        X, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            shown = ", ".join(map(str, self.classes_[:5]))
            raise InvalidInputError(
                f"Only binary classification is supported: y has {len(self.classes_)} classes, {shown}.",
                code="two-classes",
            )
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y has only one class, {self.classes_[0]!r}; learning needs two.", code="one-class", argument="y"
            )
        return X, np.asarray(y == self.classes_[1])

    def _take_bags(self, X: Any, y: Any, bags: Any, sample_weight: Any) -> Bags:
        """Return labelled bags from the arguments of `fit`."""
        if isinstance(X, Bags):
            check_alone(y, bags, sample_weight)
            if X.labels.dtype != bool:
                raise InvalidInputError(
                    f"{type(self).__name__} needs positive and negative bags, not real labels.", code="labels-real"
                )
            self.classes_, self.n_features_in_ = np.array([0, 1]), X.n_sources
            return copy(X)
        X, positive = self._take(X, y)
        return Bags.from_instances(X, positive, bags, sample_weight, getattr(self, "nan", "raise"))

    def _take_scenes(self, X: Any, y: Any, bags: Any, sample_weight: Any) -> Dataset:
        """Return the dataset of scenes in any form."""
        if y is not None or bags is not None or sample_weight is not None:
            raise InvalidInputError(
                "Scenes have labels and bags of their own; give fit no y, bags or sample_weight.",
                code="bags-with-labels",
            )
        self.classes_ = np.array([0, 1])
        return Dataset.of(X, getattr(self, "nan", "raise"))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the confidence on the scale [-1, 1], or the log-odds of a rule with a link; above 0 for targets."""
        check_is_fitted(self)
        if not is_xarray(X):
            X = self._validated(X, reset=False)
        rule = getattr(self, "rule_", None)
        if rule is not None and rule.link is not None:
            return np.asarray(rule.log_odds(X, getattr(self, "n_jobs", None)))
        return to_common_scale(self.fuse(X), self.output_range)

    @available_if(lambda self: self._has_link())
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the two classes, which add up to 1; for models whose rule has a link."""
        target = probability_of(self.decision_function(X))
        return np.stack([1 - target, target], axis=1)

    def _has_link(self) -> bool:
        """Return whether what `fit` learned, or would learn, gives probabilities."""
        return getattr(getattr(self, "rule_", None), "link", None) is not None

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every instance; one with NaN is not a target."""
        positive = self.decision_function(X) > 0  # which checks that there are classes
        if is_xarray(X):
            named: Any = positive
            return named.copy(data=self.classes_[named.values.astype(int)]).rename("class")  # type: ignore[no-any-return]
        return np.asarray(self.classes_[positive.astype(int)])

    def bag_scores(self, X: Any, bags: Any) -> NDArray[Any]:
        """Return the largest `decision_function` of each bag; bags are in order of first appearance."""
        scores = self.decision_function(X)
        if is_xarray(scores):
            bags, scores = flat_like(bags, scores, "bags"), scores.values.ravel()  # type: ignore[attr-defined]
        order, offsets, _ = group(bags, len(scores))
        return np.asarray(np.maximum.reduceat(scores[order], offsets[:-1]))

    def predict_bags(self, X: Any, bags: Any) -> NDArray[Any]:
        """Return the class of each bag; bags are in order of first appearance."""
        positive = self.bag_scores(X, bags) > 0
        return np.asarray(self.classes_[positive.astype(int)])


@dataclass(eq=False, repr=False)
class NormalisedFusion(Fusion):
    """A method on sources in [0, 1]; with ``bipolar_input=True``, sources in [-1, 1] are mapped to [0, 1] for it."""

    _: KW_ONLY
    bipolar_input: bool = False
    source_names: Sequence[str] | None = None
    n_jobs: int | None = None

    def _normalised(self, X: Any) -> list[NDArray[Any]]:
        """Return one array per source, in [0, 1]."""
        planes = self._split(X)
        low = -1.0 if self.bipolar_input else 0.0
        remedy = "Rescale it." if self.bipolar_input else "Rescale it, or pass bipolar_input=True if it is in [-1, 1]."
        Planes(planes, names=self._names()).check_range(low, remedy)
        if not self.bipolar_input:
            return planes
        kinds = [plane.dtype if plane.dtype.kind == "f" else np.dtype(np.float64) for plane in planes]
        return [(plane + kind.type(1)) * kind.type(0.5) for plane, kind in zip(planes, kinds, strict=True)]

    def _unit_scale(self) -> dict[str, Any]:
        """Return how sources enter a rule: as they are, or from [-1, 1] to [0, 1]."""
        ones = np.ones(self.n_features_in_)
        return {"low": 0.0} | ({"centre": -ones, "factor": ones / 2} if self.bipolar_input else {})

    def _normalised_rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows of `fit` in [0, 1]; copied only if they are mapped."""
        planes = self._normalised(X)
        return np.stack(planes, axis=1) if self.bipolar_input else X
