"""The threshold of a decision, chosen on scores of scenes that a model did not learn from."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.evaluate.metrics import split_classes
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.labels import PixelLabels, scene_labels
from bimichi.scenes.sample import tally
from bimichi.scenes.scene import Scene


class Threshold(NamedTuple):
    """A threshold, and what it reaches on the scores that it was chosen on: pixels at or above it count as found."""

    threshold: float
    recall: float
    precision: float
    f1: float


def choose_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    recall: float | None = None,
    precision: float | None = None,
    ignore: ArrayLike | None = None,
) -> Threshold:
    """Choose a threshold for a wanted recall or precision, or for the best F1 if neither is given.

    A pixel at or above the threshold counts as found, so that equal scores are found together; those that differ by
    rounding alone are equal, as in `auc`.

    Parameters
    ----------
    scores : array-like
        The map, of one or several scenes that the model did not learn from.
    labels : array-like of the same shape
        Whether each pixel is a target: bool, 0/1 or -1/+1. Both classes must occur.
    recall : float in (0, 1], optional
        The highest threshold that finds at least this share of the targets.
    precision : float in (0, 1], optional
        The lowest threshold at which at least this share of what is found are targets.
    ignore : array-like of bool of the same shape, optional
        Pixels that do not count.

    Raises
    ------
    InvalidInputError
        If no threshold reaches the precision; the error says what can be reached.

    Examples
    --------
    >>> choose_threshold([-0.9, 0.2, 0.5, 0.8], [0, 1, 0, 1], recall=0.5)
    Threshold(threshold=0.8, recall=0.5, precision=1.0, f1=0.6666666666666666)
    >>> choose_threshold([-0.9, 0.2, 0.5, 0.8], [0, 1, 0, 1]).threshold
    0.2
    """
    if recall is not None and precision is not None:
        raise InvalidInputError(
            "recall and precision cannot both be wanted; pass one, or none for the best F1.", code="threshold-goals"
        )
    for what, wanted in (("recall", recall), ("precision", precision)):
        if wanted is not None and check_number(wanted, what, 0, 1) == 0:
            raise InvalidInputError(f"{what} must be above 0.", code="above-zero", argument=what)
    targets, others = split_classes(labels, scores, ignore, ("labels", "scores"))
    if not targets.size or not others.size:
        raise InvalidInputError(
            f"labels has one class only: {targets.size:,} targets, {others.size:,} others.",
            code="labels-one-class",
            argument="labels",
        )
    counted = tally(targets, others)
    hits, f1 = counted.hits, counted.f1
    share = hits / (hits + counted.alarms)
    if recall is not None:
        at = int(np.argmax(hits >= recall * targets.size * (1 - 1e-12)))  # which absorbs rounding of the product
    elif precision is not None:
        enough = np.flatnonzero(share >= precision)
        if not enough.size:
            raise InvalidInputError(
                f"No threshold has a precision of {precision:g}; the best is {share.max():.4g}.",
                code="precision-unreachable",
            )
        at = int(enough[-1])
    else:
        at = int(np.argmax(f1))
    return Threshold(float(counted.thresholds[at]), float(hits[at] / targets.size), float(share[at]), float(f1[at]))


def decide(
    model: Any,
    scenes: Dataset | Sequence[Scene],
    *,
    recall: float | None = None,
    precision: float | None = None,
    smooth: tuple[float, float] | None = None,
    min_size: int = 1,
    n_folds: int = 5,
) -> Decision:
    """Choose a threshold on scenes that are left out of learning in turn.

    Pixels in the cores of targets count, whatever their shape, against non-target pixels; see
    `bimichi.scenes.labels`. Where scenes have no labels of pixels, their truth counts. If fewer than two scenes show
    targets, none can be left out, and the threshold is chosen on the scenes that the model learned from, which `chosen`
    says.

    Parameters
    ----------
    model : estimator
        A fitted model; copies of it are fitted to the scenes of each fold.
    scenes : Dataset, or sequence of Scene
        What it learned from.
    recall, precision
        As in `choose_threshold`; neither for the best F1.
    smooth, min_size
        As in `Decision`; the maps are smoothed before the threshold is chosen.
    n_folds : int, default=5
        How many times scenes are left out; fewer if fewer scenes show targets.

    Returns
    -------
    Decision
        For ``replace(model.rule_, decision=...)``.
    """
    check_integer(n_folds, "n_folds", 2)
    wanted = "the best F1"
    if recall is not None or precision is not None:
        wanted = f"a recall of {recall:g}" if precision is None else f"a precision of {precision:g}"
    draft = Decision(None, "", min_size, smooth)
    values, positive = [], []
    folds, counted = _folds(scenes, n_folds), "cores of targets against non-target pixels"
    for rest, left_out in folds or [(None, scenes)]:
        fitted = model if rest is None else clone(model).fit(rest)
        for scene in left_out:
            labels = _known_pixels(scene)
            fused = draft.smoothed(np.asarray(fitted.fuse(scene.sources)))
            kept = (labels != 0) & ~np.isnan(fused)
            values.append(fused[kept])
            positive.append(labels[kept] > 0)
    best = choose_threshold(np.concatenate(values), np.concatenate(positive), recall=recall, precision=precision)
    where = f"scenes left out in {len(folds)} folds" if folds else "the scenes learned from, which is optimistic"
    reached = f"recall {best.recall:.3f}, precision {best.precision:.3f}, F1 {best.f1:.3f} of pixels, {counted}"
    return Decision(best.threshold, f"for {wanted}, on {where}: {reached}", min_size, smooth)


def _known_pixels(scene: Scene) -> PixelLabels:
    """Return the labels of the pixels of a scene, or its truth where it has none."""
    if scene.truth is not None and scene.pixels is None and not len(scene.boxes):
        labels = np.where(scene.truth, np.int8(1), np.int8(-1))
        return labels if scene.ignore is None else np.where(scene.ignore, np.int8(0), labels)
    pixels = scene_labels(scene)
    if pixels is not None:
        return pixels
    raise InvalidInputError(
        f"Scene {scene.name!r} has neither boxes nor a truth, so that no threshold can be chosen on it. Give it boxes "
        "(--boxes), or choose a threshold by choose_threshold.",
        code="truth-missing",
    )


def _folds(scenes: Dataset | Sequence[Scene], n_folds: int) -> list[tuple[Any, Any]]:
    """Return pairs of scenes to learn from and scenes left out; none if fewer than two scenes show targets."""
    shows = [bool(scene.labels and any(scene.labels.values())) for scene in scenes]
    n = min(n_folds, sum(shows))
    if n < 2:
        return []
    order = [k for wanted in (True, False) for k, has_targets in enumerate(shows) if has_targets == wanted]
    fold = np.empty(len(order), np.int64)
    fold[order] = np.arange(len(order)) % n  # those with targets first, so that every fold has some

    def take(which: Flags) -> Sequence[Scene]:
        chosen = np.flatnonzero(which).tolist()
        return scenes.select(chosen) if isinstance(scenes, Dataset) else [scenes[k] for k in chosen]

    return [(take(fold != f), take(fold == f)) for f in range(n)]
