"""Draw the pictures of the documentation: ``python docs/pictures.py``. They are kept beside the pages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bimichi import BiCapacity, BiMIChI, BiMIChICV, FusionRule, Scene
from bimichi._types import Floats
from bimichi.datasets import draw_flood, draw_lesions, flood, lesions, street
from bimichi.datasets.folders import FIELDS
from bimichi.explain import contributions, identifiability, indices
from bimichi.io.check import photograph
from bimichi.plot import plot_bags, plot_importance, plot_lattice, plot_map, plot_maps, plot_matrix
from bimichi.sources.recipes import make_plane

FOLDER = Path(__file__).parent / "images"
SHORT = ("threshold", "grey", "thermal")


def lattice() -> None:
    """Two sources, and the chain of one instance."""
    g = BiCapacity.from_elements(
        {(("thermal",), ("rgb",)): 0.8, (("rgb",), ("thermal",)): -0.6, (("thermal",), ()): 0.9, (("rgb",), ()): 0.2},
        ["thermal", "rgb"],
    )
    figure, ax = plt.subplots(figsize=(6.5, 4.5))
    plot_lattice(g, x=[0.9, -0.3], ax=ax)
    save(figure, "lattice")


def scene_and_model() -> tuple[Scene, BiMIChI]:
    """A street at night, and what is learned from it."""
    scene = street(random_state=0)
    model = BiMIChI("bipolar", polarity="learn", source_names=SHORT, random_state=0).fit(scene.bags())
    return scene, model


def bags(scene: Scene) -> None:
    """Superpixels, positive where they meet a box."""
    figure, ax = plt.subplots(figsize=(6.5, 5))
    image = photograph([np.asarray(scene.rgb)], ["rgb"])
    plot_bags(np.asarray(scene.segments), scene.labels or {}, image, ax=ax, boxes=scene.boxes)
    save(figure, "bags")


def maps(scene: Scene, model: BiMIChI) -> None:
    """The sources, and their fusion."""
    planes = {name: scene.sources[..., k] for k, name in enumerate(SHORT)}
    figure = plot_maps(planes | {"fused": model.fuse(scene.sources)}, ncols=4)
    figure.set_size_inches(12, 3.2)
    save(figure, "maps")


def matrix(model: BiMIChI) -> None:
    """What was learned; elements that no pixel determines are hatched."""
    figure, ax = plt.subplots(figsize=(7.5, 5.5))
    found = identifiability(model)
    plot_matrix(model, used=model.usage_["weighted"] > 0, identified=found.used, ax=ax)
    save(figure, "matrix")


def importance(scene: Scene, model: BiMIChI) -> None:
    """Which source matters, upwards and downwards, and where."""
    figure, ax = plt.subplots(figsize=(6, 2.8))
    plot_importance(indices(model), ax=ax)
    save(figure, "importance")
    shares = contributions(model, scene.sources)
    figure = plot_maps({name: np.clip(shares[..., k], -1, 1) for k, name in enumerate(SHORT)}, ncols=3)
    figure.set_size_inches(11, 3.4)
    save(figure, "contributions")


def overview() -> None:
    """The first picture of the README: two cameras, boxes, what was learned from six other streets, and one pixel."""
    sources = FIELDS["street"].project.sources
    scenes = [_as_drawn(street(random_state=seed)) for seed in (*range(6), 9)]
    unseen = scenes.pop()
    model = BiMIChICV(random_state=0).fit(scenes)
    fused, shares = model.fuse(unseen.sources), contributions(model, unseen.sources)
    y, x = np.unravel_index(np.argmin(np.abs(fused - 0.95) + ~np.asarray(unseen.truth)), fused.shape)
    figure, axes = plt.subplots(
        1, 4, figsize=(16, 3.5), gridspec_kw={"width_ratios": [1, 1, 1, 0.8]}, layout="constrained"
    )
    shown = scenes[1]
    axes[0].imshow(photograph([np.asarray(shown.rgb)], ["rgb"]))
    for left, top, width, height in shown.boxes:
        axes[0].add_patch(Rectangle((left, top), width, height, fill=False, edgecolor="#ffd84d", linewidth=1.5))
    axes[0].set_title("you draw boxes on some scenes")
    axes[1].imshow(np.asarray(unseen.thermal), cmap="gray")
    axes[1].set_title("another scene: warm people, windows, a car")
    axes[2].imshow(fused, cmap="magma", vmin=0, vmax=1)
    axes[2].plot(x, y, "+", color="#00e5ff", markersize=16, markeredgewidth=2)
    axes[2].set_title("fused: the probability of a person")
    for ax in axes[:3]:
        ax.set_axis_off()
    _why(axes[3], [source.names[0] for source in sources], shares[y, x], model.rule_, float(fused[y, x]))
    save(figure, "overview")


def _as_drawn(scene: Scene) -> Scene:
    """Return the scene with the sources that the project file of `bimichi draw street` makes of its images."""
    sources = FIELDS["street"].project.sources
    images = [np.asarray(getattr(scene, source.path)) for source in sources]
    planes = [make_plane(image, source.recipes[0], image.dtype) for image, source in zip(images, sources, strict=True)]
    names = tuple(source.names[0] for source in sources)
    return replace(scene, sources=np.stack(planes, axis=-1), source_names=names)


def _why(ax: Axes, names: list[str], shares: Floats, rule: FusionRule, fused: float) -> None:
    """Draw how the offset and the contributions of one pixel add up to its log-odds."""
    offset = rule.link.offset if rule.link else 0.0
    steps = [("offset", offset), *zip(names, shares.tolist(), strict=True)]
    total = 0.0
    for row, (_, share) in enumerate(steps):
        ax.barh(row, share, left=total, color="#b2182b" if share > 0 else "#2166ac", height=0.62)
        total += share
        ax.plot([total, total], [row, row + 1], color="0.6", linewidth=0.8)
    ax.barh(len(steps), total, color="0.35", height=0.62)
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.set_yticks(range(len(steps) + 1), [*(name for name, _ in steps), f"log-odds {total:.1f}"])
    ax.invert_yaxis()
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=0)
    ax.set_title(f"why the pixel at + is {fused:.2f}")


FLOWCHART = {
    "start": ((0.5, 0.93), "Training bags and their labels"),
    "draw": ((0.5, 0.81), "Draw P bi-capacities, outward from (∅, ∅)\nJ* = the least J, g* = its bi-capacity"),
    "mutate": ((0.5, 0.66), "For each bi-capacity: z uniform in [0, 1];\nz < η ?"),
    "small": ((0.2, 0.52), "Small mutation:\nredraw one element,\nchosen by its use"),
    "large": ((0.8, 0.52), "Large mutation:\ndraw a new bi-capacity"),
    "fitness": ((0.5, 0.37), "J of all: objective 2 with g(∅, ∅) = 0,\nobjective 1 without; keep what is better"),
    "best": ((0.5, 0.24), "Update J* and g*; hardly improved (J_T),\nor I iterations done?"),
    "fuse": ((0.5, 0.09), "Fuse by g*: C for objective 1, |C| for objective 2"),
}
ARROWS = {
    ("start", "draw"): "",
    ("draw", "mutate"): "",
    ("mutate", "small"): "yes",
    ("mutate", "large"): "no",
    ("small", "fitness"): "",
    ("large", "fitness"): "",
    ("fitness", "best"): "",
    ("best", "fuse"): "yes",
}


def flowchart() -> None:
    """Algorithm 1 of the paper."""
    figure, ax = plt.subplots(figsize=(7, 7.6))
    boxes = {}
    for name, (place, text) in FLOWCHART.items():
        asks = text.endswith("?")
        look = {"boxstyle": "round,pad=0.5", "facecolor": "#fff3d6" if asks else "#e4ecf7", "edgecolor": "#445"}
        boxes[name] = ax.text(*place, text, ha="center", va="center", bbox=look, fontsize=10)
    figure.canvas.draw()
    for (start, end), answer in ARROWS.items():
        (x0, y0), (x1, y1) = FLOWCHART[start][0], FLOWCHART[end][0]
        ends = {"patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch()}
        ax.annotate("", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "->", "color": "#445", **ends})
        if answer:
            ax.text((x0 + x1) / 2 + (0.03 if x1 >= x0 else -0.08), (y0 + y1) / 2, answer, fontsize=9, color="#445")
    for x, y, u, v in ((0.76, 0.24, 0.97, 0.24), (0.97, 0.24, 0.97, 0.66)):
        ax.plot([x, u], [y, v], color="#445", linewidth=1)
    ax.annotate("", (0.77, 0.66), (0.97, 0.66), arrowprops={"arrowstyle": "->", "color": "#445"})
    ax.text(0.79, 0.25, "no", fontsize=9, color="#445")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    save(figure, "flowchart")


def fields() -> None:
    """A flood and a brain that were not learned from, and what is made of them."""
    water, brain = draw_flood(random_state=4), draw_lesions(random_state=4)
    model = BiMIChICV(random_state=0).fit([flood(random_state=k) for k in range(4)])
    radar, before = water.radar[..., 0].clip(-28, 0), water.occurrence
    views = {"VV": radar, "optical": water.rgb, "water in earlier years": before, "truth": water.flooded}
    save(_row(views, model.fuse(water.scene().sources)), "flood")
    model = BiMIChICV(random_state=0).fit([lesions(random_state=k) for k in range(4)])
    save(_row(brain.contrasts | {"truth": brain.lesions}, model.fuse(brain.scene().sources)), "lesions")


def _row(views: dict[str, Any], fused: Any) -> Figure:
    """Images in grey or colour beside each other, and a fused map at the end."""
    figure, axes = plt.subplots(1, len(views) + 1, figsize=(2.5 * (len(views) + 1), 3.1), layout="constrained")
    for ax, (title, image) in zip(axes, views.items(), strict=False):
        ax.imshow(image, cmap="gray")
        ax.set(title=title, xticks=[], yticks=[])
    plot_map(fused, axes[-1], "probability, fused", colorbar=False, output_range=(0, 1))
    return figure


def save(figure: Figure, name: str) -> None:
    """Write a picture that is small enough for a repository."""
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / f"{name}.png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    overview()
    lattice()
    found, learned = scene_and_model()
    bags(found)
    maps(found, learned)
    matrix(learned)
    importance(found, learned)
    fields()
    flowchart()
