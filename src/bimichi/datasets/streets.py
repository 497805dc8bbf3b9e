"""`street`: a drawn street at night, in colour and in heat, with exact truth about its people."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects, gaussian_filter, uniform_filter

from bimichi._checks import check_integer
from bimichi._types import Floats
from bimichi.datasets.drawing import (
    LICENCE,
    Array,
    Canvas,
    Colour,
    Part,
    View,
    box,
    capsule,
    ellipse,
    planes,
    polygon,
    ragged,
    scene_name,
)
from bimichi.datasets.public import DataSet, pedestrian_scene
from bimichi.measures.lattice import random_generator
from bimichi.scenes.scene import Scene

AIR = 10.0  # temperature of the night, in degrees Celsius
BLACK: Colour = (0.02, 0.02, 0.02)
SKIN: Colour = (0.35, 0.22, 0.16)
CLOTHES: list[Colour] = [
    (0.03, 0.03, 0.035),
    (0.04, 0.05, 0.08),
    (0.07, 0.05, 0.04),
    (0.05, 0.06, 0.05),
    (0.09, 0.09, 0.1),
    (0.12, 0.04, 0.04),
    (0.3, 0.29, 0.27),
]


def person(rng: np.random.Generator, height: float) -> list[Part]:
    """Return a person from the front or the side: skin at 23 to 33 degrees, clothes, which insulate, at 13 to 24."""
    s = height / 1.75
    sideways = rng.random() < 0.5
    broad = rng.uniform(0.85, 1.1) * (0.7 if sideways else 1.0)
    hip, stride, swing = (0.02, rng.uniform(0.08, 0.28), 0.2) if sideways else (0.08, rng.uniform(0.0, 0.06), 0.04)
    coat, trousers = CLOTHES[rng.integers(len(CLOTHES))], CLOTHES[rng.integers(5)]
    torso, legs = rng.uniform(16, 24), rng.uniform(15, 21)
    hem, waist, chest = rng.uniform(0.62, 0.9) * s, 0.155 * broad, 0.2 * broad
    parts = []
    for side in (-1, 1):
        knee, foot = (side * (hip + 0.5 * stride), 0.48 * s), (side * (hip + stride), 0.07 * s)
        parts += [
            Part(capsule((side * hip, 0.88 * s), knee, 0.085, 0.068), trousers, legs),
            Part(capsule(knee, foot, 0.068, 0.05), trousers, legs - 1),
            Part(ellipse((foot[0] + 0.02, 0.045 * s), (0.085, 0.045)), BLACK, legs - 2),
        ]
    for side in (-1, 1):
        shoulder, elbow = (side * 0.9 * chest, 1.38 * s), (side * (chest + 0.3 * swing), 1.12 * s)
        hand = (side * (0.9 * chest + swing * rng.uniform(0.3, 1.0)), 0.87 * s)
        parts += [
            Part(capsule(shoulder, elbow, 0.065, 0.055), coat, torso - 0.5),
            Part(capsule(elbow, hand, 0.055, 0.042), coat, torso - 1),
            Part(ellipse(hand, (0.04, 0.05)), SKIN, rng.uniform(23, 29)),
        ]
    parts += [
        Part(capsule((-0.6 * chest, 1.38 * s), (0.6 * chest, 1.38 * s), 0.08, 0.08), coat, torso),
        Part(polygon((-waist, hem), (waist, hem), (chest, 1.4 * s), (-chest, 1.4 * s)), coat, torso),
        Part(capsule((0, 1.42 * s), (0, 1.54 * s), 0.06, 0.05), SKIN, 30.0),
        Part(ellipse((0, 1.63 * s), (0.08 * s, 0.115 * s)), SKIN, rng.uniform(29, 33)),
        Part(ellipse((0, 1.7 * s), (0.085 * s, 0.06 * s)), BLACK, rng.uniform(20, 25)),
    ]
    if rng.random() < 0.3:
        at = 0.25 * float(rng.choice([-1, 1]))
        parts.append(Part(box(at - 0.12, 0.52 * s, at + 0.12, 0.82 * s), CLOTHES[rng.integers(len(CLOTHES))], AIR + 1))
    return parts


def car(rng: np.random.Generator, lights: float = 0.0, bonnet: float = 24.0) -> list[Part]:
    """Return a car seen from its front, `bonnet` degrees warm; `lights` is how bright its headlamps are."""
    paint: Colour = tuple(rng.choice([0.06, 0.25, 0.5]) * rng.uniform(0.8, 1.0, 3))
    glass: Colour = (0.03, 0.035, 0.04)
    beam: Colour = (lights, 0.95 * lights, 0.8 * lights)
    parts = [
        Part(box(-0.8, 0.0, -0.58, 0.4), BLACK, AIR + 3),
        Part(box(0.58, 0.0, 0.8, 0.4), BLACK, AIR + 3),
        Part(polygon((-0.74, 0.85), (0.74, 0.85), (0.56, 1.42), (-0.56, 1.42)), paint, AIR - 1),
        Part(polygon((-0.66, 0.9), (0.66, 0.9), (0.52, 1.36), (-0.52, 1.36)), glass, AIR - 3),
        Part(polygon((-0.86, 0.25), (0.86, 0.25), (0.84, 0.7), (-0.84, 0.7)), paint, AIR + 1),
        Part(polygon((-0.84, 0.68), (0.84, 0.68), (0.7, 0.95), (-0.7, 0.95)), paint, bonnet - 4),
        Part(polygon((-0.55, 0.72), (0.55, 0.72), (0.45, 0.9), (-0.45, 0.9)), paint, bonnet),
        Part(box(-0.42, 0.42, 0.42, 0.62), BLACK, bonnet + 2),
        Part(box(-0.26, 0.3, 0.26, 0.41), (0.6, 0.6, 0.5), AIR),
    ]
    for side in (-1, 1):
        parts.append(Part(ellipse((side * 0.66, 0.6), (0.15, 0.085)), (0.5, 0.5, 0.5), AIR + 2 + 0.3 * lights, beam))
    return parts


def lamp(side: int, light: Colour) -> list[Part]:
    """Return a street lamp; its head, on an arm towards `side`, shines and is lukewarm."""
    steel: Colour = (0.12, 0.13, 0.12)
    return [
        Part(capsule((0, 0), (0, 5.2), 0.09, 0.06), steel, AIR - 0.5),
        Part(capsule((0, 5.2), (side * 1.0, 5.45), 0.05, 0.05), steel, AIR - 0.5),
        Part(ellipse((side * 1.15, 5.42), (0.32, 0.13)), (0.5, 0.5, 0.5), 22.0, light),
    ]


def cone() -> list[Part]:
    """Return a traffic cone, bright in colour and cold; its bands send the light of headlamps back."""
    orange, white = (0.85, 0.25, 0.04), (0.9, 0.9, 0.85)
    return [
        Part(box(-0.2, 0.0, 0.2, 0.05), (0.1, 0.1, 0.1), AIR - 1.5),
        Part(polygon((-0.15, 0.05), (0.15, 0.05), (0.03, 0.75), (-0.03, 0.75)), orange, AIR - 2, (0.07, 0.02, 0.003)),
        Part(polygon((-0.11, 0.25), (0.11, 0.25), (0.087, 0.38), (-0.087, 0.38)), white, AIR - 2.5, (0.14, 0.14, 0.12)),
        Part(polygon((-0.072, 0.48), (0.072, 0.48), (0.053, 0.6), (-0.053, 0.6)), white, AIR - 2.5, (0.14, 0.14, 0.12)),
    ]


def tree(rng: np.random.Generator, height: float) -> list[Part]:
    """Return a trunk under a crown of leaves in three layers; all are close to the air's temperature."""
    top = 0.45 * height
    parts = [
        Part(capsule((0, 0), (0, top), 0.2, 0.12), (0.05, 0.04, 0.03), AIR + 1.5),
        Part(capsule((0, top), (-0.13 * height, 0.62 * height), 0.1, 0.05), (0.05, 0.04, 0.03), AIR + 1),
        Part(capsule((0, top), (0.12 * height, 0.66 * height), 0.1, 0.05), (0.05, 0.04, 0.03), AIR + 1),
    ]
    for shade, heat in ((0.35, 0.8), (0.6, 0.2), (1.0, -0.5)):
        centre = (height * rng.uniform(-0.05, 0.05), height * rng.uniform(0.66, 0.72))
        crown = ellipse(centre, (height * rng.uniform(0.24, 0.36), height * rng.uniform(0.22, 0.3)))
        leaves: Colour = (0.06 * shade, 0.1 * shade, 0.035 * shade)
        parts.append(Part(ragged(crown, 0.11 * height * shade, rng), leaves, AIR + heat))
    return parts


WELL, READ_NOISE = 2500, 4.0  # electrons of a white pixel, and the standard deviation of reading them


class Lamp(NamedTuple):
    """A light: where it hangs, in metres, and how bright it is in red, green and blue."""

    x: float
    y: float
    z: float
    power: Colour


class Shadow(NamedTuple):
    """A figure that keeps light from the ground: its place, its height and half its width, in metres."""

    x: float
    z: float
    height: float
    radius: float


def photograph(
    canvas: Canvas, lamps: Sequence[Lamp], shadows: Sequence[Shadow], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return the colour image: lamplight on surfaces, glow of what shines, blur, shot and read noise, gamma."""
    size = canvas.view.height / 480
    light = canvas.colour * _lamplight(canvas, lamps, shadows) + canvas.light
    shining = np.maximum(canvas.light - 0.25, 0)
    for width, share in ((12.0, 0.15), (60.0, 0.15)):
        glow, n = shining, max(1, round(width * size))
        for _ in range(3):  # running means, nearly a Gaussian, at a cost that does not grow with its width
            glow = uniform_filter(glow, (1, n, n))
        light += share * glow
    light = _blurred(np.minimum(light, 4.0), 0.8 * size)
    electrons = WELL * np.clip(light * planes((0.95, 1.05, 0.85)), 0, 1)
    electrons += rng.standard_normal(light.shape, dtype=np.float32) * np.sqrt(electrons + READ_NOISE**2)
    value = np.clip(_blurred(electrons, 0.5) / WELL, 0, 1) ** (1 / 2.2)  # blurred: the camera's own noise filter
    return np.ascontiguousarray(np.round(255 * value).astype(np.uint8).transpose(1, 2, 0))


def _blurred(image: Array, width: float) -> Array:
    return np.stack([gaussian_filter(plane, width, truncate=3) for plane in image])


def _lamplight(canvas: Canvas, lamps: Sequence[Lamp], shadows: Sequence[Shadow]) -> Array:
    x, y, z = canvas.place
    ground = y <= 0
    light = np.zeros_like(canvas.light) + planes((0.018, 0.02, 0.022))  # the sky over a town
    for lamp in lamps:
        away = (x - lamp.x) ** 2 + (y - lamp.y) ** 2 + (z - lamp.z) ** 2 + 2.0
        reach = np.where(ground, lamp.y / np.sqrt(away), 0.5) / away
        light += reach * planes(lamp.power)
    below = np.s_[..., int(canvas.view.horizon) :, :]
    for shadow in shadows:
        light[below] *= 1 - ground[below] * _shade(x[below], z[below], shadow, lamps)
    return light


def _shade(x: Array, z: Array, shadow: Shadow, lamps: Sequence[Lamp]) -> Array:
    """Return the share of light that a figure takes: around its feet, and in a streak away from the nearest lamp."""
    lamp = min(lamps, key=lambda lamp: (lamp.x - shadow.x) ** 2 + (lamp.z - shadow.z) ** 2)
    step = np.array([shadow.x - lamp.x, shadow.z - lamp.z])
    length = min(4.0, shadow.height / max(lamp.y - shadow.height, 0.5) * float(np.hypot(*step)))
    ex, ez = (step / max(np.hypot(*step), 1e-9)).tolist()
    x, z = x - shadow.x, z - shadow.z
    contact = 0.75 * np.exp(-(x * x + z * z) / (1.3 * shadow.radius) ** 2)
    along, off = x * ex + z * ez, np.abs(x * ez - z * ex)
    streak = 0.5 * np.clip(1.5 - off / shadow.radius, 0, 1) * ((along > 0) & (along < length))
    return np.asarray(np.maximum(contact, streak))


def thermograph(canvas: Canvas, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the thermal image: heat seen through air, blur, noise of pixels and columns, contrast set by the scene."""
    size = canvas.view.height / 480
    z = canvas.place[2]
    solid = z < 1e3
    seen = np.where(solid, AIR + (canvas.heat - AIR) * np.exp(-z / 140), canvas.heat)
    seen = gaussian_filter(seen, 1.1 * size)
    seen += rng.normal(0, 0.25, seen.shape) + rng.normal(0, 0.12, (1, seen.shape[1]))
    low, high = np.percentile(seen[solid], [0.5, 99.9])
    return np.asarray(np.round(255 * np.clip((seen - low) / max(high - low, 12.0), 0, 1)), dtype=np.uint8)


ROAD, PAVEMENT = 4.0, 7.5  # metres from the middle of the street to the kerb, and to the houses
FAR = 75.0  # metres to where the houses along the street end; the skyline stands behind
LAMPLIGHT: list[Colour] = [(1.0, 0.62, 0.25), (0.8, 1.0, 0.75), (1.0, 0.9, 0.65)]  # sodium, and two kinds of white
DRAWN = DataSet("", LICENCE, "A street drawn by bimichi.datasets.street")


class Figure(NamedTuple):
    """A figure: its place and parts, its reach to either side and up, its shadow's radius, and the person's number."""

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
        See `bimichi.datasets.pedestrian_sources`.

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
    for name, value, least in (("height", height, 64), ("width", width, 64), ("n_people", n_people, 0)):
        check_integer(value, name, minimum=least)
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
    sides = [(light, 1 if light.x > 0 else -1) for light in lamps[1:]]
    posts = [Figure(light.x + side * 1.15, light.z, lamp(-side, light.power), (1.6, 5.7)) for light, side in sides]
    figures = [*posts, *_objects(rng), *_people(view, n_people, rng)]
    for figure in sorted(figures, key=lambda figure: -figure.z):
        canvas.stand(figure.parts, figure.x, figure.z, figure.reach, figure.owner)
    _roughen(canvas, rng)
    shadows = [Shadow(f.x, f.z, f.reach[1], f.shadow) for f in figures if f.shadow]
    places = [place for place in find_objects(canvas.owner) if place is not None]
    return pedestrian_scene(
        photograph(canvas, lamps, shadows, rng),
        thermograph(canvas, rng),
        boxes=np.array([(x.start, y.start, x.stop - x.start, y.stop - y.start) for y, x in places]),
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
    """Draw the wall of a house that faces the camera, where the house before it is lower."""
    across, up = canvas.view.rays()
    x, y = across * z, canvas.view.eye + up * z
    wall = (side * x >= PAVEMENT) & (side * x < PAVEMENT + 11) & (y >= 0) & (y < top)
    canvas.put(wall, (x, y, z), colour[:, None, None], heat)


def _lamps(rng: np.random.Generator) -> list[Lamp]:
    """Return the headlamps of the car that carries the cameras, and street lamps on alternate sides."""
    colour = LAMPLIGHT[rng.integers(len(LAMPLIGHT))]
    lamps = [Lamp(0.0, 0.7, 0.0, (3.0, 3.0, 2.8))]
    first, side = rng.uniform(6, 14), int(rng.choice([-1, 1]))
    for k, power in enumerate(rng.uniform(7, 12, 5).tolist()):
        power_of: Colour = (power * colour[0], power * colour[1], power * colour[2])
        lamps.append(Lamp((-1) ** k * side * (ROAD - 0.55), 5.4, first + 18.0 * k, power_of))
    return lamps


def _objects(rng: np.random.Generator) -> list[Figure]:
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
    """Return people at distances that cover the street, beside each other as seen from the camera if there is room."""
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
