"""The elements of a capacity as bars."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bimichi._tables import number
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label
from bimichi.plotting._checks import check_measure
from bimichi.plotting._elements import Elements, element_marks, short_names
from bimichi.plotting._style import HATCH, INK, axes_for, footnote, ink_on, literal, value_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_capacity"]

LABEL_LIMIT = 30


def plot_capacity(
    capacity: Any, used: Elements = None, identified: Elements = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a capacity as bars, one for each subset but the empty one, by size, then lexicographically.

    Parameters
    ----------
    capacity : Capacity, or a rule or fitted model that has one
        Of up to 6 sources. Long names are numbered, with a key.
    used, identified, ax
        As in `plot_matrix`, with subsets as elements, for example ``usage_counts(X, measure="capacity") > 0``.

    Returns
    -------
    ax : matplotlib Axes
    """
    g = check_measure(capacity, Capacity, Capacity.table_limit, "Read capacity.listing() instead.")
    bold, known, notes = element_marks(g, used, identified)
    names, key = short_names(g.source_names, LABEL_LIMIT)
    subsets, values = zip(*g.listing(), strict=True)
    codes = [g.code(subset) for subset in subsets]
    places = np.arange(len(codes))
    ax = axes_for(ax, (4.8, 1.0 + 0.2 * len(codes)))
    bars = ax.barh(places, values, height=0.8, color=value_colors(values), edgecolor="#999999", linewidth=0.6)
    for place, (code, bar) in enumerate(zip(codes, bars, strict=True)):
        if not known[code]:
            ink = ink_on(bar.get_facecolor())
            ax.barh(place, values[place], height=0.8, fill=False, hatch=HATCH, edgecolor=ink, alpha=0.5, linewidth=0)
        if bold[code]:
            bar.set(edgecolor=INK, linewidth=2)
        weight = "bold" if bold[code] else "normal"
        ax.text(
            values[place] + 0.01, place, number(values[place]), va="center", fontsize="small", weight=weight, color=INK
        )
    ax.set_yticks(places, [literal(set_label(subset, names)) for subset in subsets], fontsize="small")
    ax.set(xlim=(0, 1.12), ylim=(len(codes) - 0.4, -0.6), xticks=[0, 0.5, 1], xlabel="g(A)", ylabel="A")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    footnote(ax, key + notes, below=34)
    return ax
