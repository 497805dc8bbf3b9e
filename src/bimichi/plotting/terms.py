"""The terms of an additive bi-capacity: what each source, and each pair, adds above and below zero."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._tables import number
from bimichi.errors import InvalidInputError
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.plotting._checks import measure_of
from bimichi.plotting._style import DOWN, UP, axes_for, footnote, literal, sides_of_zero, signed_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_terms"]

NAME_WIDTH = 24
PAIRS = 12
FAINT = 0.005
"""Terms of pairs below it would be written 0.00; they are not drawn."""

ABOVE, BELOW = "↑", "↓"


def plot_terms(measure: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the terms of an additive bi-capacity as signed bars: each source, then the strongest pairs.

    Parameters
    ----------
    measure : AdditiveBiCapacity, or a rule or fitted model that has one
        A source has one bar to the right, its weight above zero, and one to the left, its weight below zero. Up to 12
        pairs follow by strength, each with the side of both sources.
    ax : matplotlib Axes, optional
        The axes to draw on, by default those of a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    g = measure_of(measure)
    if not isinstance(g, AdditiveBiCapacity):
        raise InvalidInputError(
            f"This picture shows the terms of an additive bi-capacity, got {type(g).__name__}; "
            "use plot_matrix or plot_lattice for one with a value for each element."
        )
    names = [literal(name, NAME_WIDTH) for name in g.source_names]
    above, below = np.diagonal(g.up), np.diagonal(g.down)
    pairs, values = _pairs(g, names)
    drawn = values[:PAIRS]
    places = np.arange(len(names) + len(drawn)) + 0.5 * (np.arange(len(names) + len(drawn)) >= len(names))
    ax = axes_for(ax, (5.6, 1.4 + 0.34 * len(places)))
    for terms, color in ((above, UP), (-np.abs(below), DOWN)):
        signed_bars(ax, places[: len(names)], terms, list(map(number, terms)), color)
    colors = [UP if value > 0 else DOWN for value in drawn]
    signed_bars(ax, places[len(names) :], drawn, list(map(number, drawn)), colors)
    reach = 1.15 * float(np.abs(np.concatenate([above, below, drawn])).max())
    sides_of_zero(ax, places, [*names, *pairs[:PAIRS]], reach, (f"{BELOW} below 0", f"{ABOVE} above 0"))
    ax.set_xlabel("term b(A, B)")
    if len(pairs) > PAIRS:
        footnote(ax, [f"and {len(pairs) - PAIRS} weaker pairs, up to {abs(values[PAIRS]):.2f}"], below=34)
    return ax


def _pairs(g: AdditiveBiCapacity, names: list[str]) -> tuple[list[str], NDArray[np.float64]]:
    """Labels and terms of the pairs that are not 0.00, strongest first."""
    m = len(names)
    table = np.block([[g.up, g.cross], [g.cross.T, g.down]])
    first, second = np.triu_indices(2 * m, 1)
    values = table[first, second]
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[np.abs(values[order]) >= FAINT]
    sides = [f"{name} {mark}" for mark in (ABOVE, BELOW) for name in names]
    return [f"{sides[first[k]]}  {sides[second[k]]}" for k in order], values[order]
