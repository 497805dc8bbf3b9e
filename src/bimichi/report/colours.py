"""The shared scale of all pictures in the styles of a page."""

import numpy as np

from bimichi._colours import LEVELS, MISSING as MISSING, SCALE as SCALE, ink_on


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
