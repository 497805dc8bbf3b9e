"""What pictures and pages have in common about colours: -1 is blue, 0 white, +1 red, with or without matplotlib."""

import numpy as np

INK = "#222222"
WHITE = "#ffffff"
MISSING = "#bdbdbd"
LEVELS = 256

ANCHORS = ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"]
"""ColorBrewer's RdBu from its blue end."""


def _scale() -> tuple[str, ...]:
    """Interpolate between the anchors as matplotlib does, so that both draw the same pictures."""
    anchors = np.array([[int(colour[k : k + 2], 16) for k in (0, 2, 4)] for colour in ANCHORS])
    places = np.linspace(0, len(anchors) - 1, LEVELS)
    channels = [np.interp(places, np.arange(len(anchors)), channel) for channel in anchors.T]
    return tuple(f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(channels).astype(int).T.tolist())


SCALE = _scale()


def ink_on(red: float, green: float, blue: float) -> str:
    """Return the ink, dark or white, that is easier to read on a colour, whose parts are in [0, 1]."""
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else WHITE
