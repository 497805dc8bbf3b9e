"""How much two sources add to, or take from, each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi._tables import number
from bimichi.errors import InvalidInputError
from bimichi.measures.base import check_names, number_array
from bimichi.plotting._style import (
    axes_for,
    color_bar,
    color_scale,
    ink_on,
    literal,
    pyplot,
    size_in_points,
    value_colors,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_interaction", "plot_interactions"]

SIDES = {
    "up": "both above 0",
    "down": "both below 0",
    "mixed": "row above, column below 0",
}
NAME_WIDTH = 20

Side = Literal["up", "down", "mixed"]


def plot_interaction(
    matrix: Any,
    names: Sequence[str] | None = None,
    side: Side = "up",
    ax: "Axes | None" = None,
    colorbar: bool = True,
) -> "Axes":
    """Draw the interaction of each two sources: red where they add to each other, blue where one replaces the other.

    Parameters
    ----------
    matrix : array-like of shape (n_sources, n_sources), or an object with `interaction_up` and so on
        The interactions; the diagonal, which means nothing, and NaN stay blank. Of an object with attributes
        `interaction_up`, `interaction_down`, `interaction_mixed` and `source_names`, the one of `side` is drawn.
    names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    side : {"up", "down", "mixed"}
        Which interaction of an object to draw; it is named in the title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    colorbar : bool, default=True
        Whether to draw the colour bar. Interactions beyond 1, which are possible, have the colour of 1.

    Returns
    -------
    ax : matplotlib Axes
    """
    title = None
    if hasattr(matrix, "interaction_up"):
        check_choice(side, "side", SIDES)
        names = matrix.source_names if names is None else names
        matrix, title = getattr(matrix, f"interaction_{side}"), f"{side}\n{SIDES[side]}"
    values = _check_square(matrix)
    shown = [literal(name, NAME_WIDTH) for name in check_names(names, len(values))]
    n = len(values)
    longest = max(map(len, shown))
    ax = axes_for(ax, (1.4 + 0.6 * n + 0.08 * longest, 0.7 + 0.6 * n + 0.06 * longest))
    colors, norm = color_scale()
    ax.imshow(np.ma.masked_invalid(values), cmap=colors.with_extremes(bad="#ececec"), norm=norm)
    _write(ax, values)
    turned = longest > 4
    ax.set_xticks(
        range(n), shown, rotation=45 if turned else 0, ha="right" if turned else "center", rotation_mode="anchor"
    )
    ax.set_yticks(range(n), shown)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize="small")
    if colorbar:
        color_bar(ax, label="interaction", extend=_extend(values))
    return ax


def plot_interactions(indices: Any) -> "Figure":
    """Draw the three interactions of a bi-capacity beside each other, with one colour bar.

    Parameters
    ----------
    indices : object with attributes interaction_up, interaction_down, interaction_mixed and source_names
        The indices of a bi-capacity.

    Returns
    -------
    figure : matplotlib Figure
    """
    if not hasattr(indices, "interaction_up"):
        raise InvalidInputError(
            f"indices must have interaction_up, interaction_down and interaction_mixed, got {type(indices).__name__}; "
            "for a single matrix, use plot_interaction."
        )
    values = np.array([_check_square(getattr(indices, f"interaction_{side}")) for side in SIDES])
    n, longest = len(indices.source_names), min(NAME_WIDTH, max(map(len, indices.source_names)))
    panel = max(0.6 * n, 1.8) + 0.2
    size = (3 * panel + 1.2 + 0.08 * longest, panel + 0.6 + 0.06 * longest)
    figure, axes = pyplot().subplots(1, 3, figsize=size, layout="constrained")
    for ax, side in zip(axes, SIDES, strict=True):
        plot_interaction(indices, side=side, ax=ax, colorbar=False)  # type: ignore[arg-type]  # a key of SIDES
        if ax is not axes[0]:
            ax.set_yticklabels([])
    color_bar(axes.tolist(), label="interaction", extend=_extend(values))
    return figure  # type: ignore[no-any-return]  # pyplot() is Any


def _check_square(matrix: Any) -> NDArray[np.float64]:
    values = number_array(matrix, "matrix").copy()
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise InvalidInputError(f"matrix must be square, one row and column per source, got shape {values.shape}.")
    np.fill_diagonal(values, np.nan)
    return values


def _extend(values: NDArray[np.float64]) -> Literal["neither", "both"]:
    return "both" if (np.abs(values) > 1).any() else "neither"


def _write(ax: "Axes", values: NDArray[np.float64]) -> None:
    size = float(np.clip(0.24 * min(size_in_points(ax)) / len(values), 3.0, 10.0))
    for row, column in np.argwhere(np.isfinite(values)):
        value = float(values[row, column])
        ink = ink_on(value_colors(value)[0])
        ax.text(column, row, number(value), ha="center", va="center", fontsize=size, color=ink)
