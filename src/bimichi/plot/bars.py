"""Bars: the elements of a capacity, the importance of sources, and the terms of an additive bi-capacity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._colours import ink_on
from bimichi._html import number
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import check_names, number_array
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label
from bimichi.plot import style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LABEL_LIMIT = 30
NAME_WIDTH = 28
PAIRS = 12
FAINT = 0.005  # the term of a pair below it would be written 0.00, and is not drawn
ABOVE, BELOW = "↑", "↓"


def plot_capacity(
    capacity: Any, used: style.Elements = None, identified: style.Elements = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a capacity as bars, one for each subset but the empty one, by size, then lexicographically.

    Parameters
    ----------
    capacity : Capacity, or a rule or fitted model that has one
        Of up to 6 sources. Long names are numbered, with a key.
    used, identified, ax
        As in `plot_matrix`, with subsets as elements, for example ``usage_counts(X, measure="capacity") > 0``.
    """
    g = style.check_measure(capacity, Capacity, Capacity.table_limit, "Read capacity.listing() instead.")
    bold, identifiable, notes = style.element_marks(g, used, identified)
    names, key = style.names_and_key(g.source_names, LABEL_LIMIT)
    subsets, values = zip(*g.listing(), strict=True)
    codes = [g.code(subset) for subset in subsets]
    places = np.arange(len(codes))
    ax = style.axes_for(ax, (4.8, 1.0 + 0.2 * len(codes)))
    bars = ax.barh(places, values, height=0.8, color=style.value_colors(values), edgecolor="#999999", linewidth=0.6)
    for place, (code, bar) in enumerate(zip(codes, bars, strict=True)):
        if not identifiable[code]:
            ink = ink_on(*bar.get_facecolor()[:3])
            hatch: Any = {"hatch": style.HATCH, "edgecolor": ink, "alpha": 0.5, "linewidth": 0}
            ax.barh(place, values[place], height=0.8, fill=False, **hatch)
        value = values[place]
        text = ax.text(value + 0.01, place, number(value), va="center", fontsize="small", color=style.INK)
        if bold[code]:
            bar.set(edgecolor=style.INK, linewidth=2)
            text.set_fontweight("bold")
    ax.set_yticks(places, [style.literal(set_label(subset, names)) for subset in subsets], fontsize="small")
    ax.set(xlim=(0, 1.12), ylim=(len(codes) - 0.4, -0.6), xticks=[0, 0.5, 1], xlabel="g(A)", ylabel="A")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    style.footnote(ax, key + notes, below=34)
    return ax


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
        Importance of each source while it is above zero. Indices of a bi-capacity hold the next two as well.
    down : array-like of shape (n_sources,)
        Importance of each source while it is below zero.
    names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    intervals : array-like of shape (2, n_sources, 2), optional
        Lower and upper ends of an interval around each value of `up` and of `down`, drawn as a whisker.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if hasattr(up, "up"):
        up, down, names = up.up, up.down, up.source_names if names is None else names
    if down is None:
        raise InvalidInputError(
            "down must be given with up, unless up is an object that has both.", code="down-missing", argument="down"
        )
    right, left = number_array(up, "up"), number_array(down, "down")
    if right.ndim != 1 or right.shape != left.shape or right.size == 0:
        raise InvalidInputError(
            f"up and down must be 1-D and equally long, got {right.shape} and {left.shape}.", code="bars-shape"
        )
    if not (np.isfinite(right).all() and np.isfinite(left).all()):
        raise InvalidInputError("up and down must be finite.", code="finite")
    shown = [style.literal(name, NAME_WIDTH) for name in check_names(names, len(right))]
    ends, shape = None if intervals is None else number_array(intervals, "intervals"), (2, len(right), 2)
    if ends is not None and (ends.shape != shape or not (ends[..., 0] <= ends[..., 1]).all()):
        got = f"got shape {ends.shape}{'' if ends.shape != shape else ', ends the wrong way'}"
        raise InvalidInputError(
            f"intervals must be lower and upper ends of shape {shape}, {got}.",
            code="intervals-shape",
            argument="intervals",
        )
    ax = style.axes_for(ax, (5.6, 1.3 + 0.4 * len(right)))
    reach = max(float(np.abs(drawn).max()) for drawn in (right, left, ends) if drawn is not None)
    for k, (side, values, color) in enumerate(((1, right, style.UP), (-1, left, style.DOWN))):
        _draw_side(ax, side, values, color, None if ends is None else ends[k])
    style.sides_of_zero(ax, np.arange(len(right)), shown, reach, ("down (below 0)", "up (above 0)"))
    ax.set_xlabel("importance")
    ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    return ax


def _draw_side(ax: "Axes", side: int, values: Floats, color: str, ends: Floats | None) -> None:
    """Draw the bars of one side, +1 to the right or -1 to the left, with their values and whiskers."""
    places, tips = np.arange(len(values)), np.maximum(values, 0.0)
    if ends is not None:
        tips = np.maximum(tips, ends[:, 1])
        ax.hlines(places, *(side * ends.T), color=style.INK, linewidth=1.4, zorder=3)
        ax.plot(side * ends, places[:, None].repeat(2, axis=1), "|", color=style.INK, markersize=6, zorder=3)
    style.signed_bars(ax, places, side * values, [number(value) for value in values.tolist()], color, side * tips)


def plot_terms(measure: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the terms of an additive bi-capacity as signed bars: each source, then the strongest pairs.

    Parameters
    ----------
    measure : AdditiveBiCapacity, or a rule or fitted model that has one
        A source has one bar to the right, its weight above zero, and one to the left, its weight below zero. Up to 12
        pairs follow by strength, each with the side of both sources.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    g = style.check_measure(measure, AdditiveBiCapacity)
    names = [style.literal(name, NAME_WIDTH) for name in g.source_names]
    above, below = np.diagonal(g.up), np.diagonal(g.down)
    pairs, values = _pairs(g, names)
    drawn = values[:PAIRS]
    places = np.concatenate([np.arange(len(names)), len(names) + 0.5 + np.arange(len(drawn))])
    ax = style.axes_for(ax, (5.6, 1.4 + 0.34 * len(places)))
    for terms, color in ((above, style.UP), (-np.abs(below), style.DOWN)):
        style.signed_bars(ax, places[: len(names)], terms, list(map(number, terms)), color)
    colors = [style.UP if value > 0 else style.DOWN for value in drawn]
    style.signed_bars(ax, places[len(names) :], drawn, list(map(number, drawn)), colors)
    reach = 1.15 * float(np.abs(np.concatenate([above, below, drawn])).max())
    style.sides_of_zero(ax, places, [*names, *pairs[:PAIRS]], reach, (f"{BELOW} below 0", f"{ABOVE} above 0"))
    ax.set_xlabel("term b(A, B)")
    if len(pairs) > PAIRS:
        style.footnote(ax, [f"and {len(pairs) - PAIRS} weaker pairs, up to {abs(values[PAIRS]):.2f}"], below=34)
    return ax


def _pairs(g: AdditiveBiCapacity, names: list[str]) -> tuple[list[str], Floats]:
    """Return labels and terms of the pairs that are not 0.00, strongest first."""
    first, second = g.space.sides
    values = g.values[2 * g.n_sources :]
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[np.abs(values[order]) >= FAINT]
    sides = [f"{name} {mark}" for mark in (ABOVE, BELOW) for name in names]
    return [f"{sides[first[k]]}  {sides[second[k]]}" for k in order], values[order]
