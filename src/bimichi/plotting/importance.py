"""How much each source matters, above and below zero."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._tables import number
from bimichi.errors import InvalidInputError
from bimichi.measures.base import check_names, number_array
from bimichi.plotting._style import DOWN, INK, UP, axes_for, literal, sides_of_zero, signed_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_importance"]

NAME_WIDTH = 28


def plot_importance(
    up: Any,
    down: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    intervals: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the importance of each source: to the left on the down side, to the right on the up side.

    Parameters
    ----------
    up : array-like of shape (n_sources,), or an object with attributes `up`, `down` and `source_names`
        Importance of each source while it is above zero. Indices of a bi-capacity bring the next two along.
    down : array-like of shape (n_sources,)
        Importance of each source while it is below zero.
    names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    intervals : array-like of shape (2, n_sources, 2), optional
        Lower and upper ends of an interval around each value of `up` and of `down`, drawn as a whisker.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    if hasattr(up, "up"):
        up, down, names = up.up, up.down, up.source_names if names is None else names
    right, left = _one_per_source(up, down)
    shown = check_names(names, len(right))
    ends = None if intervals is None else _check_intervals(intervals, len(right))
    ax = axes_for(ax, (5.6, 1.3 + 0.4 * len(right)))
    reach = max(float(np.abs([right, left]).max()), 0.0 if ends is None else float(np.abs(ends).max()))
    for k, (side, values, color) in enumerate(((1, right, UP), (-1, left, DOWN))):
        _draw_side(ax, side, values, color, None if ends is None else ends[k])
    names = [literal(name, NAME_WIDTH) for name in shown]
    sides_of_zero(ax, np.arange(len(right)), names, reach, ("down (below 0)", "up (above 0)"))
    ax.set_xlabel("importance")
    ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    return ax


def _draw_side(
    ax: "Axes", side: int, values: NDArray[np.float64], color: str, ends: NDArray[np.float64] | None
) -> None:
    """Draw the bars of one side, +1 to the right or -1 to the left, with their values and whiskers."""
    places, tips = np.arange(len(values)), np.maximum(values, 0.0)
    if ends is not None:
        tips = np.maximum(tips, ends[:, 1])
        ax.hlines(places, *(side * ends.T), color=INK, linewidth=1.4, zorder=3)
        ax.plot(side * ends, places[:, None].repeat(2, axis=1), "|", color=INK, markersize=6, zorder=3)
    signed_bars(ax, places, side * values, [number(value) for value in values.tolist()], color, side * tips)


def _one_per_source(up: Any, down: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if down is None:
        raise InvalidInputError("down must be given with up, unless up is an object that has both.")
    right, left = number_array(up, "up"), number_array(down, "down")
    if right.ndim != 1 or right.shape != left.shape or right.size == 0:
        raise InvalidInputError(f"up and down must be 1-D and equally long, got {right.shape} and {left.shape}.")
    if not (np.isfinite(right).all() and np.isfinite(left).all()):
        raise InvalidInputError("up and down must be finite.")
    return right, left


def _check_intervals(intervals: ArrayLike, n_sources: int) -> NDArray[np.float64]:
    ends = number_array(intervals, "intervals")
    if ends.shape != (2, n_sources, 2) or not (ends[..., 0] <= ends[..., 1]).all():
        raise InvalidInputError(
            f"intervals must have shape (2, {n_sources}, 2): for up and for down, for each source, a lower and "
            f"an upper end; got shape {ends.shape}{'' if ends.shape != (2, n_sources, 2) else ', ends the wrong way'}."
        )
    return ends
