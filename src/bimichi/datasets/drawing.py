"""What scenes are drawn with: rasters of shapes, noise, blur; and the paper's scene of letters."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import random_generator
from bimichi.scenes.labels import label_bags
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import boxes_of
from bimichi.scenes.superpixels import superpixels

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


U, BACKGROUND, M = (1.0, 1.0, -1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, -1.0)  # the three patterns of sources
STROKE, HALF = 0.03, 0.14  # half the width of a stroke and of a letter, as parts of the image's height


def um(
    height: int = 100,
    width: int = 80,
    n_segments: int = 50,
    compactness: float = 1.0,
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
) -> Scene:
    """Draw the paper's synthetic experiment [1]_: a "U" above an "M", both targets.

    Source 1 is +1 on the U and -1 elsewhere; source 2 is -1 on the M and +1 elsewhere; source 3 is -1 on both letters
    and +1 on the background. Superpixels of the truth are the bags; those that touch a letter are positive. All three
    sources are -1 on the M, where every integral is -1: the bipolar objective must miss it, and the magnitude finds it.

    Parameters
    ----------
    height, width : int
        Size of the image; at least 20 each.
    n_segments, compactness : int, float
        See `bimichi.scenes.superpixels`.
    noise : float, default=0
        Standard deviation of Gaussian noise on the sources, which stay in [-1, 1].
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the noise.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024, Section IV-A.

    Examples
    --------
    >>> scene = um()
    >>> np.unique(scene.sources.reshape(-1, 3), axis=0)
    array([[-1., -1., -1.],
           [-1.,  1.,  1.],
           [ 1.,  1., -1.]])
    """
    for name, value in (("height", height), ("width", width)):
        check_integer(value, name, minimum=20)
    check_number(noise, "noise", minimum=0)
    y = (np.arange(height)[:, None] + 0.5) / height
    x = ((np.arange(width)[None, :] + 0.5) / width - 0.5) * 0.8
    angles = np.linspace(0, np.pi, 17)
    bowl = zip(-HALF * np.cos(angles), 0.44 - STROKE - HALF + HALF * np.sin(angles), strict=True)
    u = _stroke(x, y, [(-HALF, 0.08), *bowl, (HALF, 0.08)])
    m = _stroke(x, y, [(-HALF, 0.9), (-HALF, 0.58), (0.0, 0.84), (HALF, 0.58), (HALF, 0.9)])
    truth = u | m
    sources = np.where(u[..., None], U, np.where(m[..., None], M, BACKGROUND))
    if noise:
        sources = np.clip(sources + random_generator(random_state).normal(0, noise, sources.shape), -1, 1)
    segments = superpixels(truth.astype(np.float64), n_segments, compactness, sigma=0)
    return Scene(
        sources,
        "UM",
        segments=segments,
        labels=label_bags(segments, mask=truth),
        truth=truth,
        boxes=boxes_of(truth),
        licence=LICENCE,
        citation="After H. Vakharia and X. Du, FUZZ-IEEE 2024; drawn by bimichi.datasets.um",
    )


def _stroke(x: NDArray[Any], y: NDArray[Any], corners: list[tuple[float, float]]) -> Flags:
    strokes = [capsule(start, end, STROKE, STROKE)(x, y) < 0 for start, end in pairwise(corners)]
    return np.asarray(np.any(strokes, axis=0))


class UMOptimum(NamedTuple):
    """The optimum of the bipolar objective, and the numbers of bags that decide it; see `um_optimum`."""

    negative: int  # n, bags of background alone
    mixed: int  # k, positive bags with background and no U
    missed: int  # f, positive bags of M alone
    background: float  # g(23, 1)
    letter: float  # g(12, 3)
    objective_value: float


def um_optimum(scene: Scene) -> UMOptimum:
    """Return the optimum of Objective Function 1 ("bipolar") on a UM picture without noise, in closed form.

    Only two elements matter: g(12, 3) on the U, and x = g(23, 1) on the background; on the M, the integral is
    g(empty, 123) = -1. Neither is above the other in the order. So the U is best at 1, and its bags cost nothing; n
    negative bags cost (x + 1)^2 each; k positive bags with background but no U cost (x - 1)^2 each, as the M in them
    would cost 4, the most there is; f bags of M alone do cost 4. The sum is least at x = (k - n) / (k + n).

    Examples
    --------
    >>> best = um_optimum(um())
    >>> best.background == (best.mixed - best.negative) / (best.mixed + best.negative)
    True
    """
    bags = scene.bags()
    kinds = [np.flatnonzero(np.equal(bags.X, pattern).all(axis=1)) for pattern in (U, BACKGROUND, M)]
    if sum(map(len, kinds)) != len(bags.X):
        raise InvalidInputError(
            f"Scene {scene.name!r} has other sources than um() draws without noise.", code="letters-sources"
        )
    starts = bags.offsets
    has_u, has_background, has_m = (np.diff(np.searchsorted(kind, starts)) > 0 for kind in kinds)
    if (~bags.labels & (has_u | has_m)).any():
        raise InvalidInputError(
            f"Scene {scene.name!r} has a negative bag that holds a letter; label it positive.", code="letters-bag"
        )
    n = int((~bags.labels).sum())
    k = int((bags.labels & has_background & ~has_u).sum())
    f = int((bags.labels & ~has_background & ~has_u).sum())
    x = (k - n) / (k + n)
    return UMOptimum(n, k, f, x, 1.0, n * (x + 1) ** 2 + k * (x - 1) ** 2 + 4 * f)
