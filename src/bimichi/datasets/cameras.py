"""What a colour camera and a thermal camera make of a canvas at night."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, uniform_filter

from bimichi.datasets.drawing import Array, Canvas, Colour, planes
from bimichi.datasets.figures import AIR

WELL, READ_NOISE = 2500, 4.0  # electrons of a white pixel, and the standard deviation of reading them


class Lamp(NamedTuple):
    """A light: where it hangs, in metres, and how bright it is in red, green and blue."""

    x: float
    y: float
    z: float
    power: Colour


class Shadow(NamedTuple):
    """What keeps light from the ground: where it stands, its height and half its width, in metres."""

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
    """How much of the light one figure takes: around its feet, and in a streak away from the nearest lamp."""
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
