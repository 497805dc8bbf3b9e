"""Learned measures as the paper prints them: sources by number, used elements bold."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bimichi.estimators.bimichi import BiMIChI
from bimichi.measures.bicapacity import BiCapacity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bicapacity_figure", "bicapacity_markdown"]


def bicapacity_markdown(model: BiMIChI) -> str:
    """Write a model's bi-capacity as the paper's table, with a key to its sources that says which are inverted."""
    g = model.bicapacity_
    table = BiCapacity(g.values, None, g.zero_bound).to_markdown(model.usage_["touched"] > 0)
    notes = ["" if sign > 0 else ", inverted" for sign in model.polarity_]
    key = [f"{k} {name}{note}" for k, (name, note) in enumerate(zip(g.source_names, notes, strict=True), 1)]
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
