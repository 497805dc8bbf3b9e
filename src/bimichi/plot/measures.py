"""A bi-capacity as the paper's table and as a lattice, and the interaction of each two sources."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_choice
from bimichi._colours import ink_on
from bimichi._html import number
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.base import check_names, number_array
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import Lattice, set_label
from bimichi.plot import style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SOURCES_LIMIT = 4
LABEL_LIMIT = 14
NAME_WIDTH = 20
BLANK = "#ececec"
SIDES = {"up": "both above 0", "down": "both below 0", "mixed": "row above, column below 0"}

Side = Literal["up", "down", "mixed"]


def plot_matrix(
    bicapacity: Any, used: style.Elements = None, identified: style.Elements = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a bi-capacity as the paper's table: rows A, columns B, both in bitmask order, a value in each cell.

    Parameters
    ----------
    bicapacity : BiCapacity, or a rule or fitted model that has one
        Of up to 4 sources. Cells where A and B meet stay blank. Long names are numbered, with a key.
    used : iterable of (A, B), or boolean array of shape (3^m,), optional
        Elements to set bold and to frame, for example ``model.usage_["touched"] > 0``.
    identified : iterable of (A, B), or boolean array of shape (3^m,), optional
        Elements that the data determine; all others are hatched.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
        Cell (A, B) is centred at (bitmask of B, bitmask of A).
    """
    g = style.check_measure(bicapacity, BiCapacity, SOURCES_LIMIT, "Read bicapacity.to_matrix() instead.")
    bold, identifiable, notes = style.element_marks(g, used, identified)
    n = 1 << g.n_sources
    ax = style.axes_for(ax, (max(1.5 + 0.5 * n, 3.4), 1.3 + 0.45 * n))
    ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="auto", facecolor=BLANK)
    _draw_cells(ax, g, bold, identifiable)
    names, key = style.names_and_key(g.source_names, LABEL_LIMIT)
    labels = [style.literal(set_label(subset, names)) for subset in g.lattice.subsets()]
    rotation, align = (45, "left") if max(map(len, labels)) > 5 else (0, "center")
    ax.set_xticks(range(n), labels, rotation=rotation, ha=align)
    ax.set_yticks(range(n), labels)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel="B, against", ylabel="A, for")
    ax.spines[:].set_visible(False)
    style.footnote(ax, key + notes)
    return ax


def _draw_cells(ax: "Axes", g: BiCapacity, bold: Flags, identifiable: Flags) -> None:
    from matplotlib.patches import Rectangle

    rows, columns = g.lattice.masks(np.arange(g.lattice.size))
    size = style.font_size(ax, 0.29 / (1 << g.n_sources), 0.5 / (1 << g.n_sources))  # for five characters
    for code, (row, column, color) in enumerate(zip(rows, columns, style.value_colors(g.values), strict=True)):
        corner, undefined = (column - 0.5, row - 0.5), code == 0 and not g.zero_bound
        face = "white" if undefined else color
        ax.add_patch(Rectangle(corner, 1, 1, facecolor=face, edgecolor="white", linewidth=0.8, zorder=1))
        ink = style.INK if undefined else ink_on(*color[:3])
        hatched = not identifiable[code] and not undefined
        value = "–" if undefined else number(float(g.values[code]))
        text = ax.text(column, row, value, ha="center", va="center", fontsize=size, color=ink, zorder=4)
        if hatched:
            hatch: Any = {"hatch": style.HATCH, "edgecolor": ink, "alpha": 0.35, "linewidth": 0}
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, **hatch, zorder=2))
            text.set_bbox({"facecolor": face, "edgecolor": "none", "pad": 0.8})
        if bold[code]:
            inner = (corner[0] + 0.09, corner[1] + 0.09)
            ax.add_patch(Rectangle(inner, 0.82, 0.82, fill=False, edgecolor=ink, linewidth=1.8, zorder=3))
            text.set_fontweight("bold")


def plot_interaction(
    matrix: Any, names: Sequence[str] | None = None, side: Side = "up", ax: "Axes | None" = None, colorbar: bool = True
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
    """
    title = None
    if hasattr(matrix, "interaction_up"):
        check_choice(side, "side", SIDES)
        names = matrix.source_names if names is None else names
        matrix, title = getattr(matrix, f"interaction_{side}"), f"{side}\n{SIDES[side]}"
    values = _check_square(matrix)
    shown = [style.literal(name, NAME_WIDTH) for name in check_names(names, len(values))]
    n = len(values)
    longest = max(map(len, shown))
    ax = style.axes_for(ax, (1.4 + 0.6 * n + 0.08 * longest, 0.7 + 0.6 * n + 0.06 * longest))
    colors, norm = style.color_scale()
    ax.imshow(np.ma.masked_invalid(values), cmap=colors.with_extremes(bad=BLANK), norm=norm)
    size = style.font_size(ax, 0.24 / n, 0.24 / n)
    for row, column in np.argwhere(np.isfinite(values)):
        value = float(values[row, column])
        ink = ink_on(*style.value_colors(value)[0][:3])
        ax.text(column, row, number(value), ha="center", va="center", fontsize=size, color=ink)
    rotation, align = (45, "right") if longest > 4 else (0, "center")
    ax.set_xticks(range(n), shown, rotation=rotation, ha=align, rotation_mode="anchor")
    ax.set_yticks(range(n), shown)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize="small")
    if colorbar:
        style.color_bar(ax, label="interaction", extend=_extend(values))
    return ax


def plot_interactions(indices: Any) -> "Figure":
    """Draw the three interactions of a bi-capacity beside each other, with one colour bar.

    Parameters
    ----------
    indices : object with attributes interaction_up, interaction_down, interaction_mixed and source_names
        The indices of a bi-capacity.
    """
    if not hasattr(indices, "interaction_up"):
        got = f"got {type(indices).__name__}; for a single matrix, use plot_interaction"
        raise InvalidInputError(
            f"indices must have interaction_up, interaction_down and interaction_mixed, {got}.",
            code="indices-kind",
            argument="indices",
        )
    values = np.array([_check_square(getattr(indices, f"interaction_{side}")) for side in SIDES])
    n, longest = len(indices.source_names), min(NAME_WIDTH, max(map(len, indices.source_names)))
    panel = max(0.6 * n, 1.8) + 0.2
    size = (3 * panel + 1.2 + 0.08 * longest, panel + 0.6 + 0.06 * longest)
    figure, axes = style.panels(3, 3, size)
    for ax, side in zip(axes, SIDES, strict=True):
        plot_interaction(indices, side=side, ax=ax, colorbar=False)  # type: ignore[arg-type]  # a key of SIDES
        if ax is not axes[0]:
            ax.set_yticklabels([])
    style.color_bar(axes, label="interaction", extend=_extend(values))
    return figure


def _check_square(matrix: Any) -> Floats:
    values = number_array(matrix, "matrix").copy()
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise InvalidInputError(
            f"matrix must be square, one row and column per source, got shape {values.shape}.",
            code="matrix-shape",
            argument="matrix",
        )
    np.fill_diagonal(values, np.nan)
    return values


def _extend(values: Floats) -> Literal["neither", "both"]:
    return "both" if (np.abs(values) > 1).any() else "neither"


SIZES = {1: (3.6, 3.2), 2: (5.2, 4.6), 3: (8.0, 6.6), 4: (15.0, 9.0)}
NODE = {1: (0.56, 0.5), 2: (0.62, 0.5), 3: (0.76, 0.5), 4: (0.86, 0.46)}
"""Width and height of a node, where neighbours in a level, and levels, are 1 apart."""


def plot_lattice(
    bicapacity: Any, path: Iterable[Any] | None = None, x: ArrayLike | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the elements of a bi-capacity by level, |A| - |B|, with a line to each neighbour in the order.

    Parameters
    ----------
    bicapacity : BiCapacity, or a rule or fitted model that has one
        Of up to 4 sources. A node shows "A,B" and its value; names longer than a letter are numbered, with a key.
        Without the zero bound, (empty, empty) has no value and no neighbours; lines pass behind it.
    path : iterable of (A, B), optional
        Elements to connect and to frame in green, each a neighbour above the one before (or each below):
        for example ``[((), (0, 1)), ((), (1,)), ((0,), (1,)), ((0,), ()), ((0, 1), ())]``.
    x : array-like of shape (n_sources,), optional
        An instance. The elements that its integral uses are connected and framed in black with their weights; the sum
        is written below.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    g = style.check_measure(bicapacity, BiCapacity, SOURCES_LIMIT, "Read bicapacity.to_matrix() instead.")
    codes = [] if path is None else _check_path(g, path)
    used, weights = _chain(g, x)
    names, key = style.names_and_key(g.source_names, g.n_sources)
    ax = style.axes_for(ax, SIZES[g.n_sources])
    place = _places(g.lattice)
    half = NODE[g.n_sources][1] / 2
    lower, upper = g.lattice.covers()
    _draw_edges(ax, place, half, lower, upper, color="#b5b5b5", linewidth=0.6, zorder=1)
    for walk, color in ((codes, style.POSITIVE), (used, style.INK)):
        _draw_edges(ax, place, half, walk[:-1], walk[1:], color=color, linewidth=2.6, zorder=2)
    frames = dict.fromkeys(codes, style.POSITIVE) | {
        code: style.INK for code, w in zip(used, weights, strict=True) if w > 0
    }
    _draw_nodes(ax, g, place, names, frames)
    _draw_weights(ax, g, place, used, weights)
    edge, top = place[:, 0].max() + 0.6, g.n_sources + 0.45
    ax.set(xlim=(-edge, edge), ylim=(-top, top), xticks=[], ylabel="|A| - |B|")
    ax.set_yticks(range(-g.n_sources, g.n_sources + 1))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    style.color_bar(ax, label="g(A, B)", shrink=0.6)
    if x is not None:
        terms = [(w, float(g.values[code])) for code, w in zip(used, weights, strict=True) if w > 0]
        added = " + ".join(f"{number(w)} × {number(v)}" for w, v in terms) or "0"
        key.append(f"C(x) = {added} = {number(sum(weight * value for weight, value in terms))}")
    style.footnote(ax, key)
    return ax


def _check_path(g: BiCapacity, path: Iterable[Any]) -> list[int]:
    codes = [g.code(element) for element in path]
    steps = set(zip(*(ends.tolist() for ends in g.lattice.covers()), strict=True))
    if not all(step in steps for step in pairwise(codes)) and not all(step in steps for step in pairwise(codes[::-1])):
        labels = ", ".join(g.lattice.label(code, g.source_names) for code in codes)
        raise InvalidInputError(
            f"path must rise (or fall) from each element to a neighbour, but it is {labels}.",
            code="path-steps",
            argument="path",
        )
    return codes


def _chain(g: BiCapacity, x: ArrayLike | None) -> tuple[list[int], list[float]]:
    """Return the elements that the integral of `x` touches, from the first to the last with weight, and weights."""
    if x is None:
        return [], []
    from bimichi.integral.linear import linear_form  # here, because numba takes long to import

    instance = np.asarray(x, dtype=np.float64)
    if instance.shape != (g.n_sources,):
        raise InvalidInputError(
            f"x must be one instance of {g.n_sources} sources, got shape {instance.shape}.",
            code="instance-shape",
            argument="x",
        )
    codes, weights = linear_form(instance[None])
    (heavy,) = np.nonzero(weights[0])
    used = slice(heavy[0], heavy[-1] + 1) if heavy.size else slice(0)
    return codes[0, used].tolist(), weights[0, used].tolist()


def _places(lattice: Lattice) -> Floats:
    """Return the centre of each node; levels are ordered by the sum of 3^k over A less that over B: few lines cross."""
    digits = np.arange(lattice.size)[:, None] // 3 ** np.arange(lattice.n_sources) % 3
    order = np.where(digits == 2, -1, digits) @ 3 ** np.arange(lattice.n_sources)
    ranks = lattice.ranks()
    place = np.column_stack([np.zeros(lattice.size), ranks])
    for rank in range(-lattice.n_sources, lattice.n_sources + 1):
        level = np.flatnonzero(ranks == rank)
        level = level[np.argsort(order[level])]
        place[level, 0] = np.arange(len(level)) - (len(level) - 1) / 2
    return place


def _draw_edges(ax: "Axes", place: Floats, half: float, start: Any, end: Any, **look: Any) -> None:
    """Connect elements, from the upper side of the lower node to the lower side of the upper one."""
    from matplotlib.collections import LineCollection

    lines = np.stack([place[start], place[end]], axis=1)
    lines[..., 1] += half * np.sign(lines[:, ::-1, 1] - lines[..., 1])
    ax.add_collection(LineCollection(list(lines), **look))


def _draw_nodes(ax: "Axes", g: BiCapacity, place: Floats, names: list[str], frames: dict[int, str]) -> None:
    from matplotlib.patches import Rectangle

    width, height = NODE[g.n_sources]
    size = _font_size(ax, g.n_sources)
    for code, color in enumerate(style.value_colors(g.values)):
        undefined = code == 0 and not g.zero_bound
        edge, line = (frames[code], 2.6) if code in frames else ("#888888", 0.7)
        face: Any = {"facecolor": "white", "linestyle": ":"} if undefined else {"facecolor": color}
        x, y = place[code]
        corner = (x - width / 2, y - height / 2)
        ax.add_patch(Rectangle(corner, width, height, edgecolor=edge, linewidth=line, **face, zorder=3))
        label = style.literal(",".join(set_label(part, names) for part in g.lattice.sets(code)))
        value = "–" if undefined else number(float(g.values[code]))
        ink = style.INK if undefined else ink_on(*color[:3])
        ax.text(x, y, f"{label}\n{value}", ha="center", va="center", fontsize=size, color=ink, zorder=4)


def _draw_weights(ax: "Axes", g: BiCapacity, place: Floats, codes: list[int], weights: list[float]) -> None:
    look: Any = {"fontsize": _font_size(ax, g.n_sources), "fontweight": "bold", "color": "white", "zorder": 5}
    look["bbox"] = {"boxstyle": "round,pad=0.15", "facecolor": style.INK, "edgecolor": "none"}
    for code, weight in zip(codes, weights, strict=True):
        if weight > 0:
            x, y = place[code] + (0, NODE[g.n_sources][1] / 2 + 0.04)
            ax.text(x, y, f"× {number(weight)}", ha="center", va="bottom", **look)


def _font_size(ax: "Axes", n_sources: int) -> float:
    """Return the points at which the five characters of a value fit a node."""
    width, height = NODE[n_sources]
    return style.font_size(
        ax, 0.31 * width / {1: 2.2, 2: 4.2, 3: 8.2, 4: 20.2}[n_sources], 0.36 * height / (2 * n_sources + 0.9)
    )
