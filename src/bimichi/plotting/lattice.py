"""The order of a bi-capacity's elements, Fig. 1 of the paper, with their values."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._colours import ink_on
from bimichi._tables import number
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import Lattice, set_label
from bimichi.plotting import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SOURCES_LIMIT = 4
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

    Returns
    -------
    ax : matplotlib Axes
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
        raise InvalidInputError(f"path must rise (or fall) from each element to a neighbour, but it is {labels}.")
    return codes


def _chain(g: BiCapacity, x: ArrayLike | None) -> tuple[list[int], list[float]]:
    """Return the elements that the integral of `x` touches, from the first to the last with weight, and weights."""
    if x is None:
        return [], []
    from bimichi.integral.linear import linear_form  # here, because numba takes long to import

    instance = np.asarray(x, dtype=np.float64)
    if instance.shape != (g.n_sources,):
        raise InvalidInputError(f"x must be one instance of {g.n_sources} sources, got shape {instance.shape}.")
    codes, weights = linear_form(instance[None])
    (heavy,) = np.nonzero(weights[0])
    used = slice(heavy[0], heavy[-1] + 1) if heavy.size else slice(0)
    return codes[0, used].tolist(), weights[0, used].tolist()


def _places(lattice: Lattice) -> Floats:
    """Centre of each node. Within a level, order by the sum of 3^k over A minus that over B: few lines cross."""
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
    """Points at which the five characters of a value fit a node."""
    width, height = NODE[n_sources]
    return style.font_size(
        ax, 0.31 * width / {1: 2.2, 2: 4.2, 3: 8.2, 4: 20.2}[n_sources], 0.36 * height / (2 * n_sources + 0.9)
    )
