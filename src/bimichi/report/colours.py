"""The shared scale of all pictures, -1 blue to +1 red, without matplotlib."""

import numpy as np

from bimichi._colours import ink_on

ANCHORS = ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"]
"""ColorBrewer's RdBu from its blue end."""

LEVELS = 256
MISSING = "#bdbdbd"


def _scale() -> tuple[str, ...]:
    """Interpolate between the anchors as matplotlib does, so that both draw the same pictures."""
    anchors = np.array([[int(colour[k : k + 2], 16) for k in (0, 2, 4)] for colour in ANCHORS])
    places = np.linspace(0, len(anchors) - 1, LEVELS)
    channels = [np.interp(places, np.arange(len(anchors)), channel) for channel in anchors.T]
    return tuple(f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(channels).astype(int).T.tolist())


SCALE = _scale()


def colour_of(value: float) -> str:
    """Return the colour of a value in [-1, 1], as #rrggbb."""
    return SCALE[int(np.clip((value + 1) / 2 * LEVELS, 0, LEVELS - 1))]


def swatch(value: float) -> str:
    """Return the style of a cell in the colour of a value."""
    colour = colour_of(value)
    return f"--value:{colour};--ink:{ink_on(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))}"


def gradient(low: float, high: float) -> str:
    """Return the part of the scale from `low` to `high` as a CSS gradient."""
    places = np.linspace(low, high, 33).tolist()
    return f"linear-gradient(to right, {', '.join(map(colour_of, places))})"
