"""Charts: bars of strengths and indices, and curves of scores, losses and reliability."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_binary
from bimichi._colours import ink_on
from bimichi._html import number
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.link import reliability_of
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import check_names, number_array
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label
from bimichi.plot import style as style
from bimichi.plot.style import INK, axes_for, line_style, literal

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


STEPS = 1000  # of a curve
INSIDE = 6  # curves whose names fit into the picture
LONG = 30  # generations, from which their axis is logarithmic
NEGLIGIBLE = 1e-9


def plot_roc(
    truth: ArrayLike, fused_by_name: Mapping[str, ArrayLike], ignore: ArrayLike | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the ROC of each map, with its exact area (AUC) in the legend.

    At most 1,001 corners of each curve are drawn, so that files stay small; none of the others is more than 0.002 away.
    O(n log n) for each map.

    Parameters
    ----------
    truth : array-like of shape (...)
        Whether each instance is a target: bool, 0/1 or -1/+1.
    fused_by_name : mapping of name to array-like of shape (...)
        Confidences, larger on targets; only their order matters.
    ignore : array-like of bool, shape (...), optional
        Instances to exclude.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    targets, scores = _check_maps(truth, fused_by_name, ignore)
    many = len(scores) > INSIDE
    ax = axes_for(ax, (8.0 if many else 4.6, 4.4))
    for k, (name, score) in enumerate(scores.items()):
        false_rate, true_rate, area = roc_points(targets, score, STEPS)
        label = f"{area:.3f}  {literal(name, NAME_WIDTH)}"
        ax.plot(false_rate, true_rate, **line_style(k), linewidth=1.6, label=label)
    key = _unit_square(ax, 0.01, ("false positive rate", "true positive rate"), "AUC", "lower right")
    if many:
        ax.set_anchor("W")
        key.set_loc("center left")
        key.set_bbox_to_anchor((1.0, 0.5))
    return ax


def plot_reliability(
    truth: ArrayLike,
    fused_by_name: Mapping[str, ArrayLike],
    ignore: ArrayLike | None = None,
    bins: int = 15,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how often targets occur where a map gives a probability, with the expected calibration error of each map.

    Each point is one of `bins` bins of nearly equal numbers of instances, so that few targets among many others are
    seen, too; a map whose probabilities hold has all its points on the diagonal. The error in the legend is over bins
    of equal width, as `bimichi.metrics.calibration_error` gives it.

    Parameters
    ----------
    truth, ignore, ax
        As in `plot_roc`.
    fused_by_name : mapping of name to array-like of shape (...)
        Probabilities, in [0, 1].
    bins : int, default=15
        How many points to draw of each map.
    """
    targets, maps = _check_maps(truth, fused_by_name, ignore)
    for name, score in maps.items():
        if score.min() < 0 or score.max() > 1:
            reach = f"from {score.min():g} to {score.max():g}"
            raise InvalidInputError(
                f"The map {name!r} reaches {reach}; probabilities lie in [0, 1]. Learn with objective='logistic'.",
                code="map-range",
            )
    ax = axes_for(ax, (4.6, 4.4))
    for k, (name, score) in enumerate(maps.items()):
        reliability, error = (
            reliability_of(targets, score, bins, equal_counts=True),
            reliability_of(targets, score).error,
        )
        label = f"{error:.3f}  {literal(name, NAME_WIDTH)}"
        ax.plot(
            reliability.predicted,
            reliability.observed,
            **line_style(k),
            marker="o",
            markersize=4,
            linewidth=1.2,
            label=label,
        )
    _unit_square(ax, 0.02, ("probability given", "share of targets"), "calibration error", "upper left")
    return ax


def roc_points(targets: Flags, score: Floats, steps: int) -> tuple[Floats, Floats, float]:
    """Return rates of false and true positives, thinned to about so many steps, and the area under all of them."""
    from sklearn.metrics import auc, roc_curve

    false_rate, true_rate, _ = roc_curve(targets, score, drop_intermediate=True)
    area = float(auc(false_rate, true_rate))
    # Both rates only rise, so corners at equal steps of their sum leave no gap that is larger.
    corners = np.unique(np.searchsorted(false_rate + true_rate, np.linspace(0, 2, steps + 1) - 1e-12))
    return false_rate[corners], true_rate[corners], area


def _check_maps(truth: ArrayLike, fused_by_name: Any, ignore: ArrayLike | None) -> tuple[Flags, dict[str, Floats]]:
    """Return which instances that count are targets, and the values of each map there."""
    labels = np.asarray(truth)
    keep = np.ones(labels.shape, dtype=bool) if ignore is None else ~np.asarray(ignore, dtype=bool)
    if keep.shape != labels.shape:
        raise InvalidInputError(
            f"ignore has shape {keep.shape}; it must be that of truth, {labels.shape}.",
            code="ignore-shape",
            argument="ignore",
        )
    targets = check_binary(labels[keep], "truth")
    if targets.all() or not targets.any():
        shown = f"{int(targets.sum()):,} of the {targets.size:,} instances that count are targets"
        raise InvalidInputError(
            f"truth must show targets and others, but {shown}; a ROC needs both.",
            code="truth-one-class",
            argument="truth",
        )
    if not isinstance(fused_by_name, Mapping) or not fused_by_name:
        raise InvalidInputError(
            "fused_by_name must be a mapping of at least one name to its map.",
            code="maps-mapping",
            argument="fused_by_name",
        )
    return targets, {name: _check_scores(fused, keep, name) for name, fused in fused_by_name.items()}


def _unit_square(ax: "Axes", margin: float, axes: tuple[str, str], title: str, corner: Any) -> Any:
    """Draw the diagonal, name the axes, and return the legend in a corner."""
    ax.plot([0, 1], [0, 1], color="#aaaaaa", linewidth=0.8, zorder=1)
    ax.set(xlim=(-margin, 1 + margin), ylim=(-margin, 1 + margin), aspect="equal", xlabel=axes[0], ylabel=axes[1])
    return ax.legend(title=title, alignment="left", fontsize="small", title_fontsize="small", loc=corner)


def _check_scores(fused: ArrayLike, keep: Flags, name: str) -> Floats:
    values = number_array(fused, f"The map {name!r}")
    if values.shape != keep.shape:
        raise InvalidInputError(
            f"The map {name!r} has shape {values.shape}; it must be that of truth, {keep.shape}.", code="map-shape"
        )
    score = values[keep]
    missing = int((~np.isfinite(score)).sum())
    if missing:
        problem = f"The map {name!r} has {missing:,} values that are NaN or infinite"
        raise InvalidInputError(
            f"{problem}; leave them out of all maps alike, with ignore=~np.isfinite(...).", code="nan"
        )
    return score


def plot_history(history: Any, convex_value: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the objective J after each generation of a search, beside the value that the convex solver found.

    Parameters
    ----------
    history : array-like, Solution, rule or fitted model, or mapping of name to such
        J after each generation or round.
    convex_value : float, Solution, rule or fitted model, optional
        J of the convex solver, drawn as a horizontal line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Notes
    -----
    With 30 generations or more, their axis is logarithmic. So is that of J if it falls to less than a tenth and never
    below 0; values below a billionth of the largest are then drawn at 0.
    """
    searches = history if isinstance(history, Mapping) else {"search": history}
    if not searches:
        raise InvalidInputError(
            "history is an empty mapping; give at least one search.", code="history-empty", argument="history"
        )
    tracks = {name: _check_history(search, name) for name, search in searches.items()}
    level = None
    if convex_value is not None:
        value = number_array(_recorded(convex_value, "objective_value"), "convex_value")
        if value.ndim != 0 or not np.isfinite(value):
            rule = "convex_value must be one finite number, a Solution or a fitted model"
            raise InvalidInputError(f"{rule}; got {convex_value!r}.", code="history-kind", value=convex_value)
        level = float(value)
    ax = axes_for(ax, (5.6, 3.8))
    for k, (name, track) in enumerate(tracks.items()):
        style: Any = {"drawstyle": "steps-post", "linewidth": 1.6, "marker": "o" if len(track) == 1 else None}
        label = f"J = {track[-1]:.5g}  {literal(name, NAME_WIDTH)}"
        ax.plot(np.arange(1, len(track) + 1), track, **line_style(k), **style, label=label)
    if level is not None:
        ax.axhline(level, color=INK, linestyle=(0, (6, 2)), linewidth=1.4, label=f"J = {level:.5g}  convex")
    _scale_axes(ax, [*tracks.values(), np.array([] if level is None else [level])])
    ax.set(xlabel="generation", ylabel="J")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper right", fontsize="small")
    return ax


def _scale_axes(ax: "Axes", tracks: list[Floats]) -> None:
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


def _check_history(search: Any, name: str) -> Floats:
    track = number_array(_recorded(search, "history"), f"history of {name!r}")
    if track.ndim != 1 or track.size == 0 or not np.isfinite(track).all():
        rule = f"history of {name!r} must be 1-D, finite and not empty, got shape {track.shape}"
        raise InvalidInputError(f"{rule}; pass an array, a Solution or a fitted model.", code="history-kind")
    return track


def _recorded(search: Any, quantity: str) -> Any:
    """Return a value of a fitted model, of a rule or of a `Solution`; a value itself is returned as it is."""
    for attribute in ("rule_", "training", quantity):
        search = getattr(search, attribute, search)
    return search
