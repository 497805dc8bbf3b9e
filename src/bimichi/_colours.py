"""The colours of pictures and pages: -1 is blue, 0 white, +1 red, with or without matplotlib."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def colour_of(value: float) -> str:
    """Return the colour of a value in [-1, 1], as #rrggbb."""
    return SCALE[int(np.clip((value + 1) / 2 * LEVELS, 0, LEVELS - 1))]


def swatch(value: float) -> str:
    """Return the style of a cell in the colour of a value."""
    colour = colour_of(value)
    return f"--value:{colour};--ink:{ink_on(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))}"


def gradient(low: float, high: float) -> str:
    """Return the part of the scale from `low` to `high` as a CSS gradient."""
    return f"linear-gradient(to right, {', '.join(map(colour_of, np.linspace(low, high, 33).tolist()))})"


SIDE = 320
"""Pixels of the longer side at most."""


def thumbnail(fused: NDArray[Any], side: int = SIDE) -> str:
    """Return a map in [-1, 1] as a data URI; pixels are means over blocks, those without data are grey."""
    step = max(1, -(-max(fused.shape) // side))
    rows, columns = (np.arange(0, size, step) for size in fused.shape)
    present = ~np.isnan(fused)
    sums, counts = (
        np.add.reduceat(np.add.reduceat(part, rows, axis=0), columns, axis=1)
        for part in (np.where(present, fused, 0.0).astype(np.float64), present.astype(np.int64))
    )
    levels = np.clip((sums / np.maximum(counts, 1) + 1) / 2 * LEVELS, 0, LEVELS - 1).astype(np.int64)
    palette = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (*SCALE, MISSING)], np.uint8)
    return data_uri(palette[np.where(counts > 0, levels, LEVELS)])


def data_uri(image: NDArray[np.uint8]) -> str:
    """Return an RGB image as a data URI."""
    return f"data:image/png;base64,{base64.b64encode(_png(image)).decode()}"


def _png(image: NDArray[np.uint8]) -> bytes:
    """Encode RGB: a signature, and chunks of header, compressed rows and end, each with its checksum."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = image.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )
