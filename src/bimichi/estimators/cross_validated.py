"""`BiMIChICV`: the fusion, among several, that holds best on scenes it has not seen."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import check_choice, check_integer
from bimichi.errors import InvalidInputError
from bimichi.estimators.averages import SignedSource
from bimichi.estimators.base import Fusion, FusionClassifier
from bimichi.estimators.bimichi import BiMIChI
from bimichi.estimators.measured import BagFusion
from bimichi.imaging.recipes import AS_IS, make_plane
from bimichi.imaging.scales import rarity
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.bags import Bags
from bimichi.learning.inputs import check_constant, one_per
from bimichi.learning.scene import Scene, Scenes
from bimichi.learning.selection import Selection
from bimichi.learning.selection.choosing import Chosen, How, choose
from bimichi.learning.solvers import ConvexSolver
from bimichi.learning.streaming import scene_items
from bimichi.learning.training import is_lazy
from bimichi.measures.sampling import random_generator
from bimichi.rule import FusionRule


@dataclass(eq=False, repr=False)
class BiMIChICV(FusionClassifier, BagFusion):
    """Sensor fusion whose objective, additivity, polarity and use of rarity are chosen by cross-validation over scenes.

    No setting is best everywhere, so several are learned from some scenes and scored on others: by the average
    precision with which they rank pixels in the middle of boxes above those outside. Every source alone takes part. The
    best one is learned again from all scenes, and calibrated on the outputs for left-out scenes, so that `fuse` returns
    the probability of a target.

    Parameters
    ----------
    candidates : list of dict, optional
        What to compare, each with "objective", "additivity", "sources" ("given" or "rarity"), "labels" ("bags" or
        "cores") and "averaged" (whether log-odds are averaged with those of the best single sources); see
        `bimichi.learning.selection.Candidate`. By default "mean" and "logistic", 1- and 2-additive, the latter from
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
        items, groups, images = self._items(X, y, bags, groups, sample_weight)
        how = How(
            self.candidates,
            int(self.n_folds),
            self.polarity,
            bool(self.calibrate),
            self.scale,
            self._names_of(X),
            int(random_generator(self.random_state).integers(2**31)),
            check_n_jobs(self.n_jobs),
            rarity if images else None,
            partial(logging.getLogger("bimichi").info, "%s") if self.verbose else None,
            self.additivity,
        )
        chosen = choose(items, how, groups, self.nan)
        self.n_features_in_ = len(chosen.signs.signs)
        return self._set_chosen(chosen)

    def _items(
        self, X: Any, y: Any, bags: Any, groups: Any, sample_weight: Any
    ) -> tuple[Sequence[Any], Sequence[Any] | None, bool]:
        """Return bags or scenes, the group of each bag, and whether they are scenes."""
        if isinstance(X, Scene):
            X = [X]
        if hasattr(X, "__dask_graph__"):
            raise InvalidInputError("BiMIChICV takes no Dask arrays; pass X.compute(), or a list of scenes.")
        if is_lazy(X):
            if groups is not None:
                raise InvalidInputError("Scenes are left out as a whole; give fit no groups with them.")
            self.classes_ = np.array([0, 1])
            return scene_items(X, y, bags, sample_weight, self.nan), None, True
        given = X if isinstance(X, Bags) else None
        found = self._take_bags(X, y, bags, sample_weight)
        if groups is None:
            return [found], None, False
        if given is not None:
            return [found], one_per(groups, len(found), "groups").tolist(), False
        named = one_per(groups, len(X), "groups")[found.instance]
        check_constant(named, found.offsets, found.ids, "groups")
        return [found], named[found.offsets[:-1]].tolist(), False

    def _names_of(self, X: Any) -> Sequence[str] | None:
        if self.source_names is not None or hasattr(self, "feature_names_in_"):
            return self._names() if hasattr(self, "n_features_in_") else self.source_names
        first = X if isinstance(X, Scene) else X[0] if isinstance(X, list | tuple | Scenes) and len(X) else None
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
        made = [make_plane(one, recipe, one.dtype) for one, recipe in zip(flat, recipes, strict=True)]
        return [one.reshape(plane.shape) for one, plane in zip(made, planes, strict=True)]

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
            kept["candidates"] = [getattr(one, "parameters", one) for one in self.candidates]
        return kept


def cv_results(chosen: Chosen) -> dict[str, Any]:
    """Return scores of all contenders as scikit-learn arranges them."""
    rows = chosen.rows
    found: dict[str, Any] = {
        "candidate": np.array([row.name for row in rows], dtype=object),
        "params": [dict(row.parameters) for row in rows],
    }
    for score in ("ap", "auc"):
        values = [getattr(row, score) for row in rows]
        found[f"mean_test_{score}"] = np.array([v.mean() if len(v) else np.nan for v in values])
        found[f"std_test_{score}"] = np.array([v.std() if len(v) else np.nan for v in values])
        found[f"error_test_{score}"] = found[f"std_test_{score}"] / np.sqrt([max(1, len(v) - 1) for v in values])
        start = 0
        for k, block in enumerate(chosen.folds):
            part = slice(start, start + len(block))
            found[f"split{k}_test_{score}"] = np.array([v[part].mean() if len(v[part]) else np.nan for v in values])
            start += len(block)
    order = np.argsort(-np.nan_to_num(found["mean_test_ap"], nan=-1), kind="stable")
    found["rank_test_ap"] = np.empty(len(rows), np.int32)
    found["rank_test_ap"][order] = np.arange(1, len(rows) + 1)
    return found
