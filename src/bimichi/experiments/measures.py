"""Learned measures as the paper prints them: sources by number, used elements bold."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bimichi._tables import Cell, Table, number
from bimichi.estimators.bimichi import BiMIChI
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bicapacity_figure", "bicapacity_markdown", "capacity_table"]


def bicapacity_markdown(model: BiMIChI) -> str:
    """Write a model's bi-capacity as the paper's table, with a key to its sources, and what was turned over."""
    g = model.bicapacity_
    table = BiCapacity(g.values, None, g.zero_bound).to_markdown(model.usage_["touched"] > 0)
    turned = ["" if sign > 0 else ", turned over" for sign in model.polarity_]
    key = [f"{k} {name}{how}" for k, (name, how) in enumerate(zip(g.source_names, turned, strict=True), 1)]
    return f"{table}\n\nSources: {'; '.join(key)}."


def bicapacity_figure(models: Mapping[str, BiMIChI]) -> "Figure":
    """Draw bi-capacities of three sources side by side, by title."""
    from bimichi.plotting import plot_matrix
    from bimichi.plotting._style import pyplot

    size = (6.2 * len(models), 5.4)
    figure, axes = pyplot().subplots(1, len(models), figsize=size, layout="constrained", squeeze=False)
    for ax, (title, model) in zip(axes[0], models.items(), strict=True):
        g = model.bicapacity_
        plot_matrix(BiCapacity(g.values, None, g.zero_bound), used=model.usage_["touched"] > 0, ax=ax).set_title(title)
    return figure  # type: ignore[no-any-return]  # pyplot() is Any


def capacity_table(measures: Mapping[str, Capacity]) -> Table:
    """Return normalised measures of the same sources side by side, by size of the set."""
    rows, header = [], ["measure"]
    for name, measure in measures.items():
        numbered = Capacity(measure.values)
        listing = numbered.listing()
        header = ["measure", *(set_label(subset, numbered.source_names) for subset, _ in listing)]
        rows.append([Cell(name), *(Cell(number(value)) for _, value in listing)])
    return Table(header, rows)
