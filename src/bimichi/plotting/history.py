"""How the objective falls during a search."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.measures.base import number_array
from bimichi.plotting._style import INK, axes_for, line_style, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history"]

NAME_WIDTH = 30
LONG = 30
NEGLIGIBLE = 1e-9


def plot_history(history: Any, convex_value: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw J after each generation of a search, beside what the convex solver found.

    Parameters
    ----------
    history : array-like, Solution, rule or fitted model, or mapping of name to such
        J after each generation or round.
    convex_value : float, Solution, rule or fitted model, optional
        J of the convex solver, drawn as a horizontal line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Notes
    -----
    Generations are on a logarithmic axis from 30 on, since most is won early; J is on one if it falls to less than a
    tenth and never below 0; what is then below a billionth of the largest is drawn at 0.
    """
    given = history if isinstance(history, Mapping) else {"search": history}
    if not given:
        raise InvalidInputError("history is an empty mapping; give at least one search.")
    tracks = {name: _check_history(one, name) for name, one in given.items()}
    level = None if convex_value is None else _final_value(convex_value)
    ax = axes_for(ax, (5.6, 3.8))
    for k, (name, track) in enumerate(tracks.items()):
        label = f"J = {track[-1]:.5g}  {literal(name, NAME_WIDTH)}"
        generations = np.arange(1, len(track) + 1)
        marker = "o" if len(track) == 1 else None
        ax.plot(generations, track, drawstyle="steps-post", **line_style(k), linewidth=1.6, marker=marker, label=label)
    if level is not None:
        ax.axhline(level, color=INK, linestyle=(0, (6, 2)), linewidth=1.4, label=f"J = {level:.5g}  convex")
    _scale_axes(ax, [*tracks.values(), np.array([] if level is None else [level])])
    ax.set(xlabel="generation", ylabel="J")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper right", fontsize="small")
    return ax


def _scale_axes(ax: "Axes", tracks: list[NDArray[np.float64]]) -> None:
    from matplotlib.ticker import MaxNLocator

    values = np.concatenate(tracks)
    visible = values[values > NEGLIGIBLE * values.max()]
    if values.min() >= 0 and visible.size and 10 * visible.min() < values.max():
        if visible.size == values.size:
            ax.set_yscale("log")
        else:
            floor = 10 ** np.floor(np.log10(visible.min()))
            ax.set_yscale("symlog", linthresh=floor, linscale=0.5)
            ax.set_ylim(-0.3 * floor, 2 * values.max())
    if max(map(len, tracks)) >= LONG:
        ax.set_xscale("log")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _check_history(given: Any, name: str) -> NDArray[np.float64]:
    """J after each generation, of an array, a `Solution`, a rule or a fitted model."""
    for attribute in ("rule_", "training", "history"):
        given = getattr(given, attribute, given)
    track = number_array(given, f"history of {name!r}")
    if track.ndim != 1 or track.size == 0 or not np.isfinite(track).all():
        raise InvalidInputError(
            f"history of {name!r} must be 1-D, finite and not empty, got shape {track.shape}; "
            "pass an array, a Solution or a fitted model."
        )
    return track


def _final_value(given: Any) -> float:
    """J of a number, a `Solution`, a rule or a fitted model."""
    for attribute in ("rule_", "training", "objective_value"):
        given = getattr(given, attribute, given)
    value = number_array(given, "convex_value")
    if value.ndim != 0 or not np.isfinite(value):
        raise InvalidInputError(f"convex_value must be one finite number, a Solution or a fitted model; got {given!r}.")
    return float(value)
