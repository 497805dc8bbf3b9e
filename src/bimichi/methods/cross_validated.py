"""`BiMIChICV`, the fusion among several that holds best on scenes it has not seen; fits to scenes; `SceneKFold`."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import check_choice, check_integer
from bimichi._types import Ints
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.fit.choose import Chosen, Selection, choose
from bimichi.fit.engine import How
from bimichi.fit.solvers import ConvexSolver
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.lattice import random_generator
from bimichi.methods.base import Fusion, FusionClassifier
from bimichi.methods.baselines import SignedSource
from bimichi.methods.bimichi import BiMIChI
from bimichi.methods.measured import BagFusion
from bimichi.record import SourceInput
from bimichi.rule import FusionRule
from bimichi.scenes.bags import Bags
from bimichi.scenes.checks import check_constant, group, one_per
from bimichi.scenes.dataset import Dataset, is_lazy
from bimichi.scenes.sample import rank
from bimichi.scenes.scene import Scene
from bimichi.sources.operators import rarity
from bimichi.sources.recipes import AS_IS, make_plane


@dataclass(eq=False, repr=False)
class BiMIChICV(FusionClassifier, BagFusion):
    """Sensor fusion whose objective, additivity, polarity and use of rarity are chosen by cross-validation over scenes.

    No setting is best everywhere, so several are learned from some scenes and scored on others: by the average
    precision with which they rank the innermost part of targets above non-target pixels; see
    `bimichi.scenes.labels`. Every source alone takes part. The best one is learned again from all scenes, and
    calibrated on the outputs for left-out scenes, so that `fuse` returns the probability of a target.

    Parameters
    ----------
    candidates : list of dict, optional
        What to compare, each with "objective", "additivity", "sources" ("given" or "rarity"), "labels" ("bags" or
        "cores") and "averaged" (whether log-odds are averaged with those of the best single sources); see
        `bimichi.fit.candidates.Candidate`. By default "mean" and "logistic", 1- and 2-additive, the latter from
        cores of boxes, also with rarity-scaled sources where images are at hand, and each with and without the
        average; and the paper's "bipolar" and "magnitude" up to eight sources.
    n_folds : int, default=5
        In how many turns scenes are left out: blocks of neighbouring scenes, each with targets. With a single scene
        these are parts of it, with arrays groups of neighbouring bags, or those given as `groups`.
    polarity : {"learn", "given"}
        "learn" inverts a source if that clearly raises the average precision on left-out scenes, of the source alone
        and of a fusion; if the source alone gains much, the fusion must only not become worse. With fewer than three
        scenes (or groups), none is inverted.
    calibrate : bool, default=True
        Whether the output is made a probability by Platt's method, on outputs for scenes that were left out.
    additivity : {None, 1, 2}
        Of the default candidates, only those of this additivity; all by default.
    scale, source_names, n_jobs, random_state, verbose, nan
        As in `BiMIChI`.

    Attributes
    ----------
    rule_ : FusionRule
        What was learned. If sources are ranked by rarity, its `recipes` say so, and `rule_.fuse` takes ranked sources,
        while `fuse` of this object ranks the sources of each scene that it is given.
    best_params_, best_score_, best_index_ : dict, float, int
        The parameters of the winner, its mean average precision on left-out scenes, and its place in `cv_results_`.
    best_estimator_ : BiMIChI or SignedSource
        The winner, learned from all scenes, before it is calibrated. Its measure is the average if the winner is one.
    cv_results_ : dict of arrays
        "candidate" and "params" of all contenders; "mean_test_ap", "std_test_ap" and "error_test_ap" (the standard
        error of the mean) over left-out scenes, the same for "auc"; "split0_test_ap" and so on for each fold; and
        "rank_test_ap". Candidates that are clearly behind after two folds have scores of these only, NaN for others.
    selection_ : Selection
        The same as a table and sentences.
    polarity_, measure_, solution_, usage_, classes_, n_features_in_, feature_names_in_
        As in `BiMIChI`.

    Notes
    -----
    The winner has the largest mean average precision, or is simpler and as good: of all candidates whose mean
    difference to it, scene by scene, is within one standard error, those with sources as given come first, of these
    those of the lowest additivity, of these "logistic", and of these the best. A source alone is chosen only if its
    mean is the largest. Where the lead over the best source is within its standard error, `selection_.warning()` says
    so.

    Scenes are read once if they fit into 1 GiB. Least squares of a fold are sums over scenes, bags are reduced once,
    and "logistic" learns from up to 100,000 pixels outside boxes, drawn evenly.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    >>> bags = np.repeat(np.arange(80), 5)
    >>> y = (np.maximum.reduceat(X[:, 0], np.arange(0, 400, 5)) > 0.8).astype(int)[bags]
    >>> model = BiMIChICV(random_state=0).fit(X, y, bags=bags)
    >>> bool(model.best_score_ > 0.7)
    True
    """

    candidates: Sequence[Any] | None = None
    n_folds: int = 5
    polarity: Literal["given", "learn"] = "learn"
    calibrate: bool = True
    scale: Literal["minmax", "maxabs"] | None = None
    additivity: int | None = None

    @property
    def output_range(self) -> tuple[float, float]:
        """Range of `fuse`: (0, 1), unless nothing was calibrated."""
        return self.rule_.output_range if hasattr(self, "rule_") else (0.0, 1.0)

    def _has_link(self) -> bool:
        return super()._has_link() if hasattr(self, "rule_") else bool(self.calibrate)

    def fit(self, X: Any, y: Any = None, bags: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Choose and learn.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources), Bags, or scenes
            As in `BiMIChI.fit`; scenes with boxes are best, since it is then known which pixels are targets.
        y, bags, sample_weight
            As in `BiMIChI.fit`.
        groups : array-like of shape (n_instances,), or (n_bags,) with `Bags`, optional
            What is left out together, such as the scene of each instance; the same within a bag.
        """
        check_integer(self.n_folds, "n_folds", 2)
        check_choice(self.polarity, "polarity", ("given", "learn"))
        check_choice(self.additivity, "additivity", (None, 1, 2))
        data, groups = self._data(X, y, bags, groups, sample_weight)
        how = How(
            self.candidates,
            int(self.n_folds),
            self.polarity,
            bool(self.calibrate),
            self.scale,
            self._names_of(X),
            int(random_generator(self.random_state).integers(2**31)),
            check_n_jobs(self.n_jobs),
            rarity if is_lazy(X) or isinstance(X, Scene) else None,
            partial(logging.getLogger("bimichi").info, "%s") if self.verbose else None,
            self.additivity,
        )
        chosen = choose(data, how, groups)
        self.n_features_in_ = len(chosen.signs.signs)
        return self._set_chosen(chosen)

    def _data(self, X: Any, y: Any, bags: Any, groups: Any, sample_weight: Any) -> tuple[Dataset, Sequence[Any] | None]:
        """Return the dataset of scenes, or of one `Bags`, and the group of each bag."""
        if isinstance(X, Scene):
            X = [X]
        if hasattr(X, "__dask_graph__"):
            raise InvalidInputError(
                "BiMIChICV takes no Dask arrays; pass X.compute(), or a list of scenes.", code="dask-unsupported"
            )
        if is_lazy(X):
            if groups is not None:
                raise InvalidInputError(
                    "Scenes are left out as a whole; give fit no groups with them.", code="scenes-with-groups"
                )
            return self._take_scenes(X, y, bags, sample_weight), None
        rows = self._take_bags(X, y, bags, sample_weight)
        data = Dataset.of([rows])
        if groups is None:
            return data, None
        if isinstance(X, Bags):
            return data, one_per(groups, len(rows), "groups").tolist()
        named = one_per(groups, len(X), "groups")[rows.instance]
        check_constant(named, rows.offsets, rows.ids, "groups")
        return data, named[rows.offsets[:-1]].tolist()

    def _names_of(self, X: Any) -> Sequence[str] | None:
        if self.source_names is not None or hasattr(self, "feature_names_in_"):
            return self._names() if hasattr(self, "n_features_in_") else self.source_names
        first = X if isinstance(X, Scene) else X[0] if isinstance(X, list | tuple | Dataset) and len(X) else None
        return first.source_names if isinstance(first, Scene) else None

    def _set_chosen(self, chosen: Chosen) -> Self:
        entering = {"centre": chosen.scale.centre, "factor": chosen.scale.factor, "scale": self.scale}
        if chosen.rare:
            entering = {}
        self._set_rule(chosen.result, chosen.objective, ConvexSolver(), **entering)
        plain = self.rule_
        signs = chosen.signs.signs if chosen.rare else ()
        recipes = tuple(f"{AS_IS}|rarity" if sign > 0 else f"{AS_IS}|inverted|rarity" for sign in signs) or None
        assert plain.training is not None  # as it was learned just now
        record = replace(plain.training, selection=chosen.selection.to_dict())
        self.rule_ = replace(plain, link=chosen.link, recipes=recipes, training=record)
        self.selection_, self.best_index_ = chosen.selection, chosen.selection.chosen
        self.best_score_ = chosen.selection.winner.score.mean
        self.best_params_ = dict(chosen.rows[self.best_index_].parameters)
        self.best_estimator_ = self._winner(chosen, plain)
        self.cv_results_ = cv_results(chosen)
        return self

    def _winner(self, chosen: Chosen, rule: FusionRule) -> Fusion:
        """Return the winner as an estimator of its own."""
        model: Any
        if chosen.candidate is None:
            model = SignedSource(**self.best_params_)
        else:
            options = {name: getattr(self, name) for name in ("source_names", "n_jobs", "random_state", "nan")}
            model = BiMIChI(
                chosen.candidate.objective, scale=self.scale, additivity=chosen.candidate.additivity, **options
            )
            model.rule_, model.solution_ = rule, self.solution_
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        found: Fusion = model
        return found

    def _split(self, X: Any) -> list[NDArray[Any]]:
        planes = super()._split(X)
        recipes = self.rule_.recipes
        if recipes is None or not recipes[0].startswith(f"{AS_IS}|"):  # others are about images, not sources
            return planes
        flat = [np.asarray(plane, np.float32).reshape(-1, plane.shape[-1] if plane.ndim > 1 else 1) for plane in planes]
        ranked = [make_plane(image, recipe, image.dtype) for image, recipe in zip(flat, recipes, strict=True)]
        return [image.reshape(plane.shape) for image, plane in zip(ranked, planes, strict=True)]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the log-odds of a target, or without calibration the confidence in [-1, 1]; above 0 for targets."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self.rule_.link is None:
            return super().decision_function(X)
        return np.asarray(self.rule_.log_odds(self._split(X), self.n_jobs))

    def _restored(self, rule: FusionRule) -> Self:
        super()._restored(rule)
        kept = None if rule.training is None else rule.training.selection
        if kept is not None:
            self.selection_ = Selection.from_dict(kept)
            self.best_index_, self.best_score_ = self.selection_.chosen, self.selection_.winner.score.mean
        return self

    def _recorded_parameters(self) -> dict[str, Any]:
        kept = super()._recorded_parameters()
        if self.candidates is not None:
            kept["candidates"] = [getattr(candidate, "parameters", candidate) for candidate in self.candidates]
        return kept


def cv_results(chosen: Chosen) -> dict[str, Any]:
    """Return scores of all contenders as scikit-learn arranges them."""
    rows = chosen.rows
    results: dict[str, Any] = {
        "candidate": np.array([row.name for row in rows], dtype=object),
        "params": [dict(row.parameters) for row in rows],
    }
    for score in ("ap", "auc"):
        values = [getattr(row, score) for row in rows]
        results[f"mean_test_{score}"] = np.array([v.mean() if len(v) else np.nan for v in values])
        results[f"std_test_{score}"] = np.array([v.std() if len(v) else np.nan for v in values])
        results[f"error_test_{score}"] = results[f"std_test_{score}"] / np.sqrt([max(1, len(v) - 1) for v in values])
        start = 0
        for k, block in enumerate(chosen.folds):
            part = slice(start, start + len(block))
            results[f"split{k}_test_{score}"] = np.array([v[part].mean() if len(v[part]) else np.nan for v in values])
            start += len(block)
    order = np.argsort(-np.nan_to_num(results["mean_test_ap"], nan=-1), kind="stable")
    results["rank_test_ap"] = np.empty(len(rows), np.int32)
    results["rank_test_ap"][order] = np.arange(1, len(rows) + 1)
    return results


def fit_scenes(model: Any, scenes: Sequence[Scene]) -> Any:
    """Fit to one scene, or to many, which may be read one after another."""
    alone = len(scenes) == 1 and isinstance(model, BiMIChI) and model.polarity == "given"
    return model.fit(scenes[0].bags() if alone else scenes)  # signs are learned from labels of pixels, not of bags


def scene_rule(
    model: Any,
    recipes: Sequence[str],
    inputs: tuple[SourceInput, ...] | None,
    decision: Decision | None = None,
) -> FusionRule:
    """Return what a model has learned from sources that these recipes make from images, for new images."""
    rule: FusionRule = model.rule_
    chains = tuple(followed(*pair) for pair in zip(recipes, rule.recipes or recipes, strict=True))
    return replace(rule, recipes=chains, inputs=inputs, decision=decision)


def followed(recipe: str, own: str) -> str:
    """Return the recipe of an image, followed by what the model does to its source."""
    later = own.removeprefix(f"{AS_IS}|")
    return recipe if own in (recipe, AS_IS) else later if recipe == AS_IS else f"{recipe}|{later}"


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
            raise InvalidInputError(
                "SceneKFold needs y, and groups: the scene, or the bag, of every instance.", code="groups-missing"
            )
        labels = one_per(y, len(y), "y")
        classes = np.unique(labels)
        if len(classes) != 2:
            raise InvalidInputError(f"y must have two classes, got {len(classes)}.", code="two-classes", argument="y")
        order, offsets, _ = group(groups, len(labels))
        held = [order[start:stop] for start, stop in pairwise(offsets)]
        positive = [rows for rows in held if (labels[rows] == classes[1]).any()]
        negative = [rows for rows in held if not (labels[rows] == classes[1]).any()]
        if len(positive) < self.n_splits:
            raise InvalidInputError(
                f"n_splits is {self.n_splits}, but only {len(positive)} groups have targets; use n_splits="
                f"{max(2, len(positive))}, or label more.",
                code="splits-many",
                argument="n_splits",
            )
        for k in range(self.n_splits):
            chosen = [(some, np.array_split(np.arange(len(some)), self.n_splits)[k]) for some in (positive, negative)]
            test = np.sort(np.concatenate([some[j] for some, block in chosen for j in block]))
            if (labels[test] == classes[1]).all():
                raise InvalidInputError(
                    "A fold has only targets: groups of targets alone need as many groups without; use fewer n_splits.",
                    code="splits-many",
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
                "set_score_request(bags=True) on the scorer and set_fit_request(bags=True) on the estimator.",
                code="scorer-bags",
            )
        labels, values = np.asarray(y), np.asarray(fused)
        order, offsets, _ = group(bags, len(values), y=labels)
        most = np.maximum.reduceat(values[order], offsets[:-1])
        positive = labels[order][offsets[:-1]] == np.unique(labels)[-1]
        ranking = rank(most[positive], most[~positive])
        return ranking.ap if score == "average_precision" else ranking.auc

    return make_scorer(of_bags, response_method="decision_function")
