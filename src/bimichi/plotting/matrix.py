"""The paper's table of a bi-capacity as a picture."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._tables import number
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import set_label
from bimichi.plotting._checks import check_measure
from bimichi.plotting._elements import Elements, element_marks, short_names
from bimichi.plotting._style import HATCH, INK, axes_for, footnote, ink_on, literal, size_in_points, value_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_matrix"]

SOURCES_LIMIT = 4
LABEL_LIMIT = 14
BLANK = "#ececec"


def plot_matrix(
    bicapacity: Any, used: Elements = None, identified: Elements = None, ax: "Axes | None" = None
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
    g = check_measure(bicapacity, BiCapacity, SOURCES_LIMIT, "Read bicapacity.to_matrix() instead.")
    bold, known, notes = element_marks(g, used, identified)
    n = 1 << g.n_sources
    ax = axes_for(ax, (max(1.5 + 0.5 * n, 3.4), 1.3 + 0.45 * n))
    ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="auto", facecolor=BLANK)
    _draw_cells(ax, g, bold, known)
    key = _label(ax, g)
    footnote(ax, key + notes)
    return ax


def _draw_cells(ax: "Axes", g: BiCapacity, bold: NDArray[np.bool_], known: NDArray[np.bool_]) -> None:
    from matplotlib.patches import Rectangle

    codes = np.arange(g.lattice.size)
    size = _font_size(ax, 1 << g.n_sources)
    for code, row, column, color in zip(codes.tolist(), *g.lattice.masks(codes), value_colors(g.values), strict=True):
        corner, undefined = (column - 0.5, row - 0.5), code == 0 and not g.zero_bound
        face = "white" if undefined else color
        ax.add_patch(Rectangle(corner, 1, 1, facecolor=face, edgecolor="white", linewidth=0.8, zorder=1))
        ink = INK if undefined else ink_on(color)
        hatched = not known[code] and not undefined
        if hatched:
            ax.add_patch(
                Rectangle(corner, 1, 1, fill=False, hatch=HATCH, edgecolor=ink, alpha=0.35, linewidth=0, zorder=2)
            )
        if bold[code]:
            inner = (corner[0] + 0.09, corner[1] + 0.09)
            ax.add_patch(Rectangle(inner, 0.82, 0.82, fill=False, edgecolor=ink, linewidth=1.8, zorder=3))
        ax.text(
            column,
            row,
            "–" if undefined else number(float(g.values[code])),
            ha="center",
            va="center",
            fontsize=size,
            fontweight="bold" if bold[code] else "normal",
            color=ink,
            bbox={"facecolor": face, "edgecolor": "none", "pad": 0.8} if hatched else None,
            zorder=4,
        )


def _label(ax: "Axes", g: BiCapacity) -> list[str]:
    names, key = short_names(g.source_names, LABEL_LIMIT)
    subsets = [g.lattice.sets(int(code))[0] for code in g.lattice.from_masks(np.arange(1 << g.n_sources))]
    labels = [literal(set_label(subset, names)) for subset in subsets]
    places = range(len(labels))
    longest = max(map(len, labels))
    ax.set_xticks(places, labels, rotation=45 if longest > 5 else 0, ha="left" if longest > 5 else "center")
    ax.set_yticks(places, labels)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("B, against")
    ax.set_ylabel("A, for")
    ax.spines[:].set_visible(False)
    return key


def _font_size(ax: "Axes", n: int) -> float:
    """Points at which the five signs of a value fit a cell."""
    width, height = size_in_points(ax)
    return float(np.clip(min(0.29 * width, 0.5 * height) / n, 3.0, 10.0))
