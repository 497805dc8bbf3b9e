"""`street`: a drawn street at night, in colour and in heat, with exact truth about its people."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.ndimage import find_objects, gaussian_filter

from bimichi._checks import check_integer
from bimichi.datasets.backdrop import PAVEMENT, ROAD, draw_backdrop
from bimichi.datasets.cameras import Lamp, Shadow, photograph, thermograph
from bimichi.datasets.drawing import Array, Canvas, Colour, Part, View
from bimichi.datasets.figures import car, cone, lamp, person, tree
from bimichi.datasets.pedestrians import pedestrian_scene
from bimichi.learning.scene import Scene
from bimichi.measures.sampling import random_generator

__all__ = ["street"]

LAMPLIGHT: list[Colour] = [(1.0, 0.62, 0.25), (0.8, 1.0, 0.75), (1.0, 0.9, 0.65)]
"""Sodium, and two kinds of white."""


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
) -> Scene:
    """Draw a street at night, as a colour camera and a thermal camera that share one view would see it.

    There is a road between houses with lit windows and shops, lamps, a parked car and one that comes, traffic cones,
    trees, and people at 5 to 37 metres. People are warm, and dark in colour; but panes of heated rooms, bonnets and
    lamps are warm, too, and coats insulate. Sensors blur and are noisy. The truth is exact: the pixels that mostly show
    a person, with what he or she carries.

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
    n_sources : {3, 6}
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
    draw_backdrop(canvas, rng)
    figures = [*_lamp_posts(lamps), *_things(rng)]
    figures += _people(view, n_people, rng)
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
        name=f"street-{random_state}" if isinstance(random_state, int | np.integer) else "street",
        n_sources=n_sources,
        n_segments=n_segments,
        licence="MIT, as bimichi, which draws it",
        citation="A street drawn by bimichi.datasets.street",
    )


def _lamps(rng: np.random.Generator) -> list[Lamp]:
    """The headlamps of the car that carries the cameras, and street lamps on alternate sides."""
    colour = LAMPLIGHT[rng.integers(len(LAMPLIGHT))]
    lamps = [Lamp(0.0, 0.7, 0.0, (3.0, 3.0, 2.8))]
    first, side = rng.uniform(6, 14), int(rng.choice([-1, 1]))
    for k, power in enumerate(rng.uniform(7, 12, 5).tolist()):
        power_of: Colour = (power * colour[0], power * colour[1], power * colour[2])
        lamps.append(Lamp((-1) ** k * side * (ROAD - 0.55), 5.4, first + 18.0 * k, power_of))
    return lamps


def _lamp_posts(lamps: list[Lamp]) -> list[Figure]:
    posts = []
    for one in lamps[1:]:
        side = 1 if one.x > 0 else -1
        posts.append(Figure(one.x + side * 1.15, one.z, lamp(-side, one.power), (1.6, 5.7)))
    return posts


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
