"""Learned measures as the paper prints them: sources by number, used elements bold."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bimichi.measures.bicapacity import BiCapacity
from bimichi.rule import FusionRule, as_rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bicapacity_figure", "bicapacity_markdown"]


def bicapacity_markdown(model: Any) -> str:
    """Write the bi-capacity of a model or rule as the paper's table, with a key to sources and which are inverted."""
    rule = as_rule(model)
    g, used = _numbered(rule)
    notes = ["" if sign > 0 else ", inverted" for sign in rule.polarity]
    key = [f"{k} {name}{note}" for k, (name, note) in enumerate(zip(rule.source_names, notes, strict=True), 1)]
    table = g.to_markdown(used)
    return f"{table}\n\nSources: {'; '.join(key)}."


def _numbered(rule: FusionRule) -> tuple[BiCapacity, Any]:
    """Return the bi-capacity with numbers as names, and which of its elements training data touched."""
    g = rule.measure.to_bicapacity()
    touched = rule.training.usage.get("touched") if rule.training is not None and g is rule.measure else None
    return BiCapacity(g.values, None, g.zero_bound), None if touched is None else touched > 0


def bicapacity_figure(models: Mapping[str, Any]) -> "Figure":
    """Draw bi-capacities of three sources side by side, by title."""
    from bimichi.plotting import plot_matrix
    from bimichi.plotting._style import pyplot

    size = (6.2 * len(models), 5.4)
    figure, axes = pyplot().subplots(1, len(models), figsize=size, layout="constrained", squeeze=False)
    for ax, (title, model) in zip(axes[0], models.items(), strict=True):
        plot_matrix(*_numbered(as_rule(model)), ax=ax).set_title(title)
    return figure  # type: ignore[no-any-return]  # pyplot() is Any
