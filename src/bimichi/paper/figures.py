"""The numbers that the paper prints, to be shown beside those measured here; and figures as it has them.

References
----------
H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty", FUZZ-IEEE 2024:
Tables II and III (UM), and VII (pedestrians; one KAIST frame; the paper does not say which).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bimichi.measures.bicapacity import BiCapacity
from bimichi.plot import plot_bags, plot_matrix
from bimichi.plot.style import panels
from bimichi.rule import FusionRule, as_rule
from bimichi.scenes.scene import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


UM = {"bipolar": {"U": 0.97, "background": -0.85}, "magnitude": {"U": 0.99, "background": 0.07}}
"""By objective: g(12, 3), which is the integral on the U, and g(23, 1), which is that on the background."""

PEDESTRIAN = {
    "source 1": (0.495, 1.948),
    "source 2": (0.470, 1.168),
    "source 3": (0.812, 0.897),
    "min": (0.634, 0.717),
    "max": (0.494, 1.966),
    "mean": (0.621, 1.279),
    "weighted mean": (0.813, 0.928),
    "KNN": (0.795, 0.405),
    "SVM": (0.740, 0.936),
    "Mask R-CNN": (0.499, 0.375),
    "CI-QP": (0.640, 0.806),
    "MICI noisy-or": (0.650, 0.810),
    "MICI-BFM": (0.634, 0.805),
    "Bi-MIChI (objective 1)": (0.711, 0.388),
    "Bi-MIChI (objective 2)": (0.654, 0.390),
}
"""AUC and RMSE, by method under the names of `bimichi.paper_methods`."""


def bicapacity_markdown(model: Any) -> str:
    """Write a bi-capacity with numbers for sources and used elements bold, and a key to the sources below it."""
    rule = as_rule(model)
    g, used = _numbered(rule)
    notes = ["" if sign > 0 else ", inverted" for sign in rule.polarity]
    key = [f"{k} {name}{note}" for k, (name, note) in enumerate(zip(rule.source_names, notes, strict=True), 1)]
    return f"{g.to_markdown(used)}\n\nSources: {'; '.join(key)}."


def _numbered(rule: FusionRule) -> tuple[BiCapacity, Any]:
    """Return the bi-capacity with numbers as names, and which of its elements training data touched."""
    g = rule.measure.to_bicapacity()
    touched = rule.usage.get("touched") if g is rule.measure else None
    return BiCapacity(g.values, None, g.zero_bound), None if touched is None else touched > 0


def scene_panels(
    scene: Scene, images: Mapping[str, Any], background: Any, n_columns: int, size: tuple[float, float]
) -> "tuple[Figure, list[Axes]]":
    """Draw images of a scene by title, and last its labelled bags over a background, if there is one."""
    figure, axes = panels(len(images) + 1, n_columns, size)
    for ax, (title, image) in zip(axes, images.items(), strict=False):
        ax.set_title(title, fontsize=10)
        ax.imshow(image, cmap="gray")
        ax.set(xticks=[], yticks=[])
    axes[-1].set_title("Labelled bags", fontsize=10)
    plot_bags(np.asarray(scene.segments), scene.labels or {}, background, axes[-1])
    return figure, axes


def bicapacity_figure(models: Mapping[str, Any]) -> "Figure":
    """Draw bi-capacities of three sources side by side, by title."""
    figure, axes = panels(len(models), len(models), (6.2 * len(models), 5.4))
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        plot_matrix(*_numbered(as_rule(model)), ax=ax).set_title(title)
    return figure
