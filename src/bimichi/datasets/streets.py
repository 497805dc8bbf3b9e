"""`street`: a drawn street at night, in colour and in heat, with exact truth about its people."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.ndimage import find_objects, gaussian_filter

from bimichi._checks import check_integer
from bimichi._types import Floats
from bimichi.datasets.cameras import Lamp, Shadow, photograph, thermograph
from bimichi.datasets.drawing import LICENCE, Array, Canvas, Colour, Part, View, planes, scene_name
from bimichi.datasets.figures import AIR, car, cone, lamp, person, tree
from bimichi.datasets.public import DataSet, pedestrian_scene
from bimichi.learning.scene import Scene
from bimichi.measures.sampling import random_generator

ROAD, PAVEMENT = 4.0, 7.5  # metres from the middle of the street to the kerb, and to the houses
FAR = 75.0  # metres to where the houses along the street end; the skyline stands behind
LAMPLIGHT: list[Colour] = [(1.0, 0.62, 0.25), (0.8, 1.0, 0.75), (1.0, 0.9, 0.65)]  # sodium, and two kinds of white
DRAWN = DataSet("", LICENCE, "A street drawn by bimichi.datasets.street")


class Figure(NamedTuple):
    """What stands where, how far it reaches to either side and up, its shadow's radius, and whose picture it is."""

    x: float
    z: float
    parts: list[Part]
    reach: tuple[float, float]
    shadow: float = 0.0
    owner: int = 0


def street(
    height: int = 480,
    width: int = 640,
    n_people: int = 4,
    random_state: int | np.random.Generator | None = 0,
    n_segments: int = 300,
    n_sources: Literal[3, 6] = 3,
    preset: str = "default",
) -> Scene:
    """Draw a street at night, as a colour camera and a thermal camera that share one view would see it.

    A road runs between houses with lit windows and shops, with lamps, cars, traffic cones, trees, and people at 5 to 37
    metres. People are warm, and dark in colour; but panes of heated rooms, bonnets and lamps are warm, too, and coats
    insulate. Sensors blur and are noisy. The truth is exact: the pixels that mostly show a person or a bag.

    Parameters
    ----------
    height, width : int
        Size of the image; at least 64 each.
    n_people : int, default=4
        How many people; some may stand in front of others.
    random_state : int, numpy.random.Generator or None, default=0
        The same seed gives the same scene.
    n_segments : int, default=300
        About how many superpixels (bags); those that a person's box touches are positive.
    n_sources, preset
        See `bimichi.imaging.pedestrian_sources`.

    Returns
    -------
    Scene
        Named after the seed.

    Notes
    -----
    Takes about a second for 640 x 480 pixels, mostly for superpixels and sources.

    Examples
    --------
    >>> scene = street(96, 128, n_people=2, random_state=1, n_segments=40)
    >>> scene.name, scene.sources.shape, len(scene.boxes)
    ('street-1', (96, 128, 3), 2)
    """
    for what, value, least in (("height", height, 64), ("width", width, 64), ("n_people", n_people, 0)):
        check_integer(value, what, minimum=least)
    rng = random_generator(random_state)
    view = View(height, width)
    canvas, lamps = Canvas(view), _lamps(rng)
    _, up = view.rays()
    glow = 0.35 + np.exp(-np.maximum(up, 0) / 0.12)  # the light of the town
    heat = AIR - 26 + 18 * np.exp(-np.maximum(up, 0) / 0.2)
    canvas.put(True, (0.0, 1e4, 1e4), 0.0, heat, glow * planes((0.003, 0.0034, 0.0046)))
    _skyline(canvas, rng)
    _ground(canvas)
    for side in (-1, 1):
        _houses(canvas, side, rng)
    sides = [(one, 1 if one.x > 0 else -1) for one in lamps[1:]]
    posts = [Figure(one.x + side * 1.15, one.z, lamp(-side, one.power), (1.6, 5.7)) for one, side in sides]
    figures = [*posts, *_things(rng), *_people(view, n_people, rng)]
    for figure in sorted(figures, key=lambda figure: -figure.z):
        canvas.stand(figure.parts, figure.x, figure.z, figure.reach, figure.owner)
    _roughen(canvas, rng)
    shadows = [Shadow(f.x, f.z, f.reach[1], f.shadow) for f in figures if f.shadow]
    found = [place for place in find_objects(canvas.owner) if place is not None]
    return pedestrian_scene(
        photograph(canvas, lamps, shadows, rng),
        thermograph(canvas, rng),
        boxes=np.array([(x.start, y.start, x.stop - x.start, y.stop - y.start) for y, x in found]),
        truth=canvas.owner > 0,
        data=DRAWN,
        name=scene_name("street", random_state),
        n_sources=n_sources,
        n_segments=n_segments,
        preset=preset,
    )


def _skyline(canvas: Canvas, rng: np.random.Generator) -> None:
    z = 1.6 * FAR
    across, up = canvas.view.rays()
    x, y = across * z, canvas.view.eye + up * z
    block = np.searchsorted(np.cumsum(rng.uniform(6, 18, 60)) - 350, x)
    top = rng.choice([8.0, 14.0, 20.0, 34.0], 61, p=[0.4, 0.3, 0.2, 0.1])[block] + rng.uniform(0, 4, 61)[block]
    column, floor = np.floor(x / 2.5).astype(int), np.floor(y / 3.0).astype(int)
    window = (np.abs(x / 2.5 - column - 0.5) < 0.28) & (np.abs(y / 3.0 - floor - 0.5) < 0.25)
    lit = window & (rng.random((64, 16)) < 0.18)[column % 64, floor % 16]
    heat = AIR + rng.uniform(-1, 3, 61)[block] + lit
    canvas.put(y < top, (x, y, z), 0.08, heat, lit * planes((0.16, 0.13, 0.08)))


def _ground(canvas: Canvas) -> None:
    across, up = canvas.view.rays()
    z = canvas.view.eye / np.maximum(-up, 1e-6)
    x = across * z
    side = np.abs(x)
    stripe = ((np.abs(side - 3.7) < 0.06) | ((side < 0.07) & (z % 7 < 3))) & (side < ROAD)
    joint = ((x % 0.6 < 0.03) | (z % 0.6 < 0.05)) & (z < 25)
    albedo = np.where(side < ROAD, 0.085, np.where(joint, 0.1, 0.16))
    albedo = np.where(stripe, 0.45, np.where(np.abs(side - ROAD - 0.08) < 0.08, 0.3, albedo))
    heat = AIR + np.where(side < ROAD, 1.8 + 0.4 * np.cos(2 * side), 0.6) - 0.4 * stripe
    canvas.put(up < 0, (x, 0.0, z), albedo * planes((1.0, 1.0, 0.92)), heat)


def _houses(canvas: Canvas, side: int, rng: np.random.Generator) -> None:
    across, up = canvas.view.rays()
    z = np.minimum(PAVEMENT / np.maximum(side * across, 1e-6), 2 * FAR)
    y = canvas.view.eye + up * z
    ends = 3.0 * np.cumsum(rng.integers(3, 7, 13))  # whole windows
    tops = np.where(rng.random(13) < 0.2, 0.0, rng.choice([6.8, 10.0, 13.2], 13))  # 0: a gap between houses
    colours = rng.uniform(0.1, 0.28, 13) * rng.uniform(0.8, 1.0, (3, 13))
    warmth = AIR + rng.uniform(0.5, 5.0, 13)  # from the day's sun, and heating
    for k in range(11, -1, -1):
        if tops[k + 1] > tops[k] and ends[k] < FAR:
            _gable(canvas, side, ends[k], tops[k + 1], colours[:, k + 1], warmth[k + 1])
    block = np.minimum(np.searchsorted(ends, z), 12)
    column, floor = np.floor(z / 3.0).astype(int), np.floor(y / 3.2).astype(int)
    cell = (column % 32, floor % 8)
    beside, above = np.abs(z / 3.0 - column - 0.5), np.abs(y / 3.2 - floor - 0.55)  # of the middle of a pane
    shop = (rng.random(13) < 0.3)[block] & (y < 2.7) & (y > 0.4) & (beside < 0.42)
    window = (beside < 0.24) & (above < 0.26) & (y < tops[block] - 0.5) & ~shop
    lit = window & (rng.random((32, 8)) < 0.25)[cell]
    frame = (beside < 0.015) | (np.abs(above - 0.12) < 0.012)
    shine = lit * rng.uniform(0.06, 0.35, (32, 8))[cell] + shop * rng.uniform(0.08, 0.3, 32)[cell[0]]
    shine *= np.where(frame, 0.15, 0.7 + 0.6 * np.clip(y / 3.2 - floor, 0, 1))  # lamps hang from ceilings
    tint = np.where(rng.random(32) < 0.65, np.array([[1.0], [0.72], [0.38]]), np.array([[0.85], [1.0], [0.88]]))
    leak = rng.uniform(2.0, 10.0, (32, 8))[cell]  # through single panes of heated rooms
    heat = warmth[block] + 1.2 * np.exp(-np.maximum(y, 0) / 2) + 6.0 * shop
    heat += np.where(window, np.where(lit, leak, -1.5), 0.0)
    wall = (y >= 0) & (y < tops[block]) & (z < FAR)
    albedo = np.where(window | shop, 0.04, colours[:, block])
    canvas.put(wall, (side * PAVEMENT, y, z), albedo, heat, shine * tint[:, cell[0]])


def _gable(canvas: Canvas, side: int, z: float, top: float, colour: Floats, heat: float) -> None:
    """The wall of a house that faces the camera, where the one before it is lower."""
    across, up = canvas.view.rays()
    x, y = across * z, canvas.view.eye + up * z
    wall = (side * x >= PAVEMENT) & (side * x < PAVEMENT + 11) & (y >= 0) & (y < top)
    canvas.put(wall, (x, y, z), colour[:, None, None], heat)


def _lamps(rng: np.random.Generator) -> list[Lamp]:
    """The headlamps of the car that carries the cameras, and street lamps on alternate sides."""
    colour = LAMPLIGHT[rng.integers(len(LAMPLIGHT))]
    lamps = [Lamp(0.0, 0.7, 0.0, (3.0, 3.0, 2.8))]
    first, side = rng.uniform(6, 14), int(rng.choice([-1, 1]))
    for k, power in enumerate(rng.uniform(7, 12, 5).tolist()):
        power_of: Colour = (power * colour[0], power * colour[1], power * colour[2])
        lamps.append(Lamp((-1) ** k * side * (ROAD - 0.55), 5.4, first + 18.0 * k, power_of))
    return lamps


def _things(rng: np.random.Generator) -> list[Figure]:
    side = int(rng.choice([-1, 1]))
    parked = car(rng, bonnet=rng.uniform(18, 26))
    things = [
        Figure(side * rng.uniform(2.7, 3.0), rng.uniform(9, 18), parked, (0.95, 1.5), 0.9),
        Figure(-1.8, rng.uniform(40, 60), car(rng, lights=4.0, bonnet=28.0), (0.95, 1.5), 0.9),
    ]
    for _ in range(rng.integers(2, 5)):
        things.append(Figure(-side * rng.uniform(2.2, 3.6), rng.uniform(6, 16), cone(), (0.25, 0.8), 0.2))
    for _ in range(rng.integers(1, 4)):
        x, z, tall = rng.choice([-1, 1]) * rng.uniform(5.6, 6.8), rng.uniform(11, 35), rng.uniform(4, 7)
        things.append(Figure(x, z, tree(rng, tall), (0.5 * tall, 1.1 * tall), 0.6))
    return things


def _people(view: View, n_people: int, rng: np.random.Generator) -> list[Figure]:
    """People at distances that cover the street, beside each other as seen from the camera where there is room."""
    people: list[Figure] = []
    for z in (np.geomspace(6, 32, n_people) * rng.uniform(0.85, 1.15, n_people)).tolist():
        reach = min(0.9 * view.half_width(z), PAVEMENT - 0.6)
        for _ in range(30):
            x = rng.uniform(-reach, reach)
            if all(abs(x / z - other.x / other.z) > 0.45 / z + 0.45 / other.z for other in people):
                break
        tall = rng.uniform(1.5, 1.9)
        people.append(Figure(x, z, person(rng, tall), (0.7, 1.1 * tall), 0.28, len(people) + 1))
    return people


def _roughen(canvas: Canvas, rng: np.random.Generator) -> None:
    """Give all surfaces some grain and some stains, in colour and in heat."""
    rough: Array = np.zeros_like(canvas.heat)
    for width in (0.8, 9.0):
        noise = rng.standard_normal(rough.shape, dtype=np.float32)
        noise = gaussian_filter(noise, width * canvas.view.height / 480, truncate=3)
        rough += noise / (2 * noise.std())
    canvas.colour *= np.clip(1 + 0.25 * rough, 0.2, 2)
    canvas.heat += 0.35 * rough
