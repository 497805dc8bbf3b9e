"""A canvas of surfaces (colour, heat, place) for cameras to look at, and flat figures to put on it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Ints

Array = NDArray[np.float32]
Colour = tuple[float, float, float]
Shape = Callable[[Array, Array], Array]
"""Signed distance, in metres, of points (x right, y up) from the outline; negative inside."""

LICENCE = "MIT, as bimichi, which draws it"


def scene_name(kind: str, random_state: object) -> str:
    """Return the name of a drawn scene: with its seed, if that is a number."""
    return f"{kind}-{random_state}" if isinstance(random_state, int | np.integer) else kind


def image_files(folder: str | PathLike[str], kinds: Iterable[str], name: str) -> list[Path]:
    """Return the files of a scene, each of this name in the folder of its kind, which is made."""
    paths = [Path(folder) / kind / name for kind in kinds]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    return paths


@dataclass(frozen=True)
class View:
    """A pinhole camera at the height of a driver's eye, looking along the street (z), x right, y up, in metres."""

    height: int
    width: int
    eye: float = 1.5

    @property
    def focal(self) -> float:
        """Focal length in pixels."""
        return 1.05 * self.height

    @property
    def horizon(self) -> float:
        """Row of the horizon."""
        return 0.42 * self.height

    def half_width(self, z: float) -> float:
        """Return how far to either side the camera sees at distance z."""
        return 0.5 * self.width * z / self.focal

    def rays(self) -> tuple[Array, Array]:
        """Return x and y, per metre of z, of the ray through each pixel's centre: shapes (1, width), (height, 1)."""
        across = (np.arange(self.width) + 0.5 - 0.5 * self.width) / self.focal
        up = (self.horizon - np.arange(self.height) - 0.5) / self.focal
        return across[None, :].astype(np.float32), up[:, None].astype(np.float32)


class Part(NamedTuple):
    """A piece of a figure: its outline, colour (albedo), temperature in degrees Celsius and light of its own."""

    shape: Shape
    colour: Colour
    heat: float
    light: Colour = (0.0, 0.0, 0.0)


class Canvas:
    """The surface that each pixel sees."""

    def __init__(self, view: View) -> None:
        self.view = view
        size = (view.height, view.width)
        self.colour: Array  # albedo in red, green and blue
        self.light: Array  # that the surface gives off
        self.place: Array  # x, y and z
        self.colour, self.light, self.place = np.zeros((3, 3, *size), dtype=np.float32)
        self.heat: Array = np.zeros(size, dtype=np.float32)  # in degrees Celsius
        self.owner: Ints = np.zeros(size, dtype=np.int64)  # 0, or the number of the person that is seen

    def put(self, where: Any, place: Sequence[Any], colour: Any, heat: Any, light: Any = 0.0) -> None:
        """Give the pixels `where` a surface; values broadcast to (3, height, width), and to (height, width)."""
        layers = ((self.colour, colour), (self.light, light), (self.heat, heat), *zip(self.place, place, strict=True))
        for layer, value in layers:
            np.copyto(layer, value, where=where, casting="same_kind")

    def stand(self, parts: Sequence[Part], x: float, z: float, reach: tuple[float, float], owner: int = 0) -> None:
        """Stand a flat figure on the ground at (x, z), facing the camera; later parts cover earlier ones.

        `reach` is how far its parts go to either side, and up. Only the window that holds them is touched.
        """
        view, scale = self.view, self.view.focal / z
        column, foot = 0.5 * view.width + x * scale, view.horizon + view.eye * scale
        left, right = np.clip([column - reach[0] * scale - 2, column + reach[0] * scale + 3], 0, view.width).astype(int)
        top, bottom = np.clip([foot - reach[1] * scale - 2, foot + 3], 0, view.height).astype(int)
        if left >= right or top >= bottom:
            return
        window = np.s_[..., top:bottom, left:right]
        u = ((np.arange(left, right, dtype=np.float32) + 0.5 - column) / scale)[None, :].astype(np.float32)
        v = ((foot - np.arange(top, bottom, dtype=np.float32) - 0.5) / scale)[:, None].astype(np.float32)
        seen = np.zeros((bottom - top, right - left), dtype=bool)
        for part in parts:
            cover = np.clip(0.5 - part.shape(u, v) * np.float32(scale), 0, 1)
            self.heat[window] += cover * (np.float32(part.heat) - self.heat[window])
            for layer, colour in ((self.colour, part.colour), (self.light, part.light)):
                layer[window] += cover * (planes(colour) - layer[window])
            seen |= cover > 0.5
        for axis, position in zip(self.place, np.broadcast_arrays(x + u, v, np.float32(z)), strict=True):
            np.copyto(axis[window], position, where=seen, casting="same_kind")
        self.owner[window][seen] = owner


def planes(colour: Colour) -> Array:
    """Return a colour in a shape that broadcasts to (3, height, width)."""
    return np.array(colour, dtype=np.float32)[:, None, None]


def capsule(start: tuple[float, float], end: tuple[float, float], radius: float, end_radius: float) -> Shape:
    """Return a stroke whose radius goes from one value to another."""
    (x0, y0), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])

    def distance(x: Array, y: Array) -> Array:
        t = np.clip(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0, 1)
        return np.asarray(np.hypot(x - x0 - t * dx, y - y0 - t * dy) - radius - t * (end_radius - radius))

    return distance


def ellipse(centre: tuple[float, float], radii: tuple[float, float]) -> Shape:
    """Return an ellipse with its axes along x and y."""

    def distance(x: Array, y: Array) -> Array:
        return np.asarray((np.hypot((x - centre[0]) / radii[0], (y - centre[1]) / radii[1]) - 1) * min(radii))

    return distance


def polygon(*corners: tuple[float, float]) -> Shape:
    """Return a convex polygon, corners anticlockwise."""

    def distance(x: Array, y: Array) -> Array:
        sides = []
        for (x0, y0), (x1, y1) in zip(corners, (*corners[1:], corners[0]), strict=True):
            length = float(np.hypot(x1 - x0, y1 - y0))
            sides.append(((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)) / length)
        return np.asarray(np.max(np.broadcast_arrays(*sides), axis=0))

    return distance


def box(left: float, bottom: float, right: float, top: float) -> Shape:
    """Return a rectangle."""
    return polygon((left, bottom), (right, bottom), (right, top), (left, top))


def ragged(shape: Shape, depth: float, rng: np.random.Generator) -> Shape:
    """Return the shape with an outline, and holes near it, like those of leaves, by adding waves in all directions."""
    waves, phases = (rng.normal(0, 5, (2, 14)) * rng.uniform(0.4, 2.5, 14)).tolist(), rng.uniform(0, 6.3, 14).tolist()

    def distance(x: Array, y: Array) -> Array:
        rough = sum(np.sin(kx * x + ky * y + phase) for kx, ky, phase in zip(*waves, phases, strict=True))
        return np.asarray(shape(x, y) + depth * rough / 14**0.5)

    return distance
