"""Fuse a small synthetic scene of three sensors with a bi-capacity written by hand, and save a picture.

Usage: python examples/three_sensors.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimichi import BiCapacity, choquet

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("This example draws with matplotlib, which is not installed: pip install 'bimichi[plot]'")

Image = NDArray[np.float32]


def disc(x: float, y: float, radius: float, size: int = 160) -> NDArray[np.bool_]:
    rows, columns = np.mgrid[:size, :size]
    return np.asarray((columns - x) ** 2 + (rows - y) ** 2 < radius**2)


def scene(seed: int = 0) -> dict[str, Image]:
    """Two people: warm and dark. A lamp: warm and bright. A wall: warm, flat. Confidences in [-1, 1]."""
    rng = np.random.default_rng(seed)
    people = disc(45, 60, 14) | disc(80, 115, 16)
    lamp = disc(120, 45, 13)
    wall = np.zeros_like(lamp)
    wall[15:32, 10:100] = True
    thermal = np.where(people, 0.8, np.where(lamp, 0.9, np.where(wall, 0.55, -0.6)))
    dark = np.where(lamp, -0.95, np.where(wall, -0.1, 0.5))
    upright = np.where(people, 0.6, np.where(lamp, 0.5, np.where(wall, -0.8, -0.2)))
    planes = {"thermal": thermal, "dark": dark, "upright": upright}
    return {
        name: np.clip(plane + rng.normal(0, 0.12, plane.shape), -1, 1).astype(np.float32)
        for name, plane in planes.items()
    }


def bicapacity(names: list[str]) -> BiCapacity:
    """A person is warm, dark and upright together; what is warm but lit, or warm but not upright, is none."""
    return BiCapacity.from_elements(
        {
            (("thermal", "dark"), ()): 0.6,
            (("thermal", "upright"), ()): 0.3,
            (("dark", "upright"), ()): -0.2,
            (("thermal", "upright"), ("dark",)): -0.6,
            (("thermal",), ("dark", "upright")): -0.9,
        },
        names,
        zero_bound=False,
        completion="lowest",
    )


def main(folder: Path) -> None:
    sources = scene()
    g = bicapacity(list(sources))
    fused = choquet(list(sources.values()), g)

    figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="compressed")
    for axis, (name, plane) in zip(axes, {**sources, "fused": fused}.items(), strict=True):
        image = axis.imshow(plane, cmap="RdBu_r", vmin=-1, vmax=1)
        axis.set_title(name)
        axis.set_axis_off()
    figure.colorbar(image, ax=axes, label="confidence")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "three_sensors.png"
    figure.savefig(path, dpi=110)
    print(g.to_markdown())
    print(f"\nThe picture is in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("output"))
