"""Receiver operating characteristics of several fused maps."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.measures.base import number_array
from bimichi.plotting._checks import check_labels
from bimichi.plotting._style import axes_for, line_style, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_roc"]

STEPS = 1000
INSIDE_LIMIT = 6
NAME_WIDTH = 28


def plot_roc(
    truth: ArrayLike,
    fused_by_name: Mapping[str, ArrayLike],
    ignore: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the ROC of each map, with its exact area (AUC) in the legend.

    At most 1,001 corners of each curve are drawn, and none of those left out is more than 0.002 away: a scene of
    300,000 pixels would make files large and slow otherwise. O(n log n) for each map.

    Parameters
    ----------
    truth : array-like of bool, shape (...)
        Whether each instance is a target: 0/1, -1/+1 or bool.
    fused_by_name : mapping of name to array-like of shape (...)
        Confidences, larger on targets; only their order matters.
    ignore : array-like of bool, shape (...), optional
        Instances that do not count.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    targets, keep = _check_truth(truth, ignore)
    if not isinstance(fused_by_name, Mapping) or not fused_by_name:
        raise InvalidInputError("fused_by_name must be a mapping of at least one name to its map.")
    scores = {name: _check_scores(fused, keep, name) for name, fused in fused_by_name.items()}
    many = len(scores) > INSIDE_LIMIT
    ax = axes_for(ax, (8.0 if many else 4.6, 4.4))
    for k, (name, score) in enumerate(scores.items()):
        false_rate, true_rate, area = _curve(targets, score)
        label = f"{area:.3f}  {literal(name, NAME_WIDTH)}"
        ax.plot(false_rate, true_rate, **line_style(k), linewidth=1.6, label=label)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", linewidth=0.8, zorder=1)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    key = ax.legend(title="AUC", alignment="left", fontsize="small", title_fontsize="small", loc="lower right")
    if many:
        ax.set_anchor("W")
        key.set_loc("center left")
        key.set_bbox_to_anchor((1.0, 0.5))
    return ax


def _curve(
    targets: NDArray[np.bool_], score: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Rates of false and true positives, thinned, and the area under all of them."""
    from sklearn.metrics import auc, roc_curve

    false_rate, true_rate, _ = roc_curve(targets, score, drop_intermediate=True)
    area = float(auc(false_rate, true_rate))
    # Both rates only rise, so corners at equal steps of their sum leave no gap that is larger.
    corners = np.unique(np.searchsorted(false_rate + true_rate, np.linspace(0, 2, STEPS + 1) - 1e-12))
    return false_rate[corners], true_rate[corners], area


def _check_truth(truth: ArrayLike, ignore: ArrayLike | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    given = np.asarray(truth)
    keep = np.ones(given.shape, dtype=bool) if ignore is None else ~np.asarray(ignore, dtype=bool)
    if keep.shape != given.shape:
        raise InvalidInputError(f"ignore has shape {keep.shape}; it must be that of truth, {given.shape}.")
    targets = check_labels(given[keep], "truth")
    if targets.all() or not targets.any():
        raise InvalidInputError(
            f"truth must show targets and others, but {int(targets.sum()):,} of the {targets.size:,} "
            "instances that count are targets; a ROC needs both."
        )
    return targets, keep


def _check_scores(fused: ArrayLike, keep: NDArray[np.bool_], name: str) -> NDArray[np.float64]:
    given = number_array(fused, f"The map {name!r}")
    if given.shape != keep.shape:
        raise InvalidInputError(f"The map {name!r} has shape {given.shape}; it must be that of truth, {keep.shape}.")
    score = given[keep]
    missing = int((~np.isfinite(score)).sum())
    if missing:
        raise InvalidInputError(
            f"The map {name!r} has {missing:,} values that are NaN or infinite; leave those instances out of all "
            "maps alike, with ignore=~np.isfinite(...)."
        )
    return score
