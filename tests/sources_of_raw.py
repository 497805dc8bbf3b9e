"""Raw scenes in odd units with targets, for tests of banks."""

import numpy as np

from bimichi import Scene

BOXES = np.array([[10.0, 8, 12, 12], [50, 30, 12, 12]])


def raw_scene(seed, name, boxes=BOXES, shape=(56, 80), target=True):
    """A thermal image in kelvin and a dark one, with warm and dark discs in the boxes."""
    rng = np.random.default_rng(seed)
    warm, dark = rng.normal(280, 1, shape), rng.normal(-12, 2, shape)
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    for x, y, w, h in boxes if target else ():
        inside = ((columns - x - w / 2) / w) ** 2 + ((rows - y - h / 2) / h) ** 2 < 0.2
        warm[inside] += 2
        dark[inside] -= 5
    sources = np.stack([warm, dark], axis=-1).astype(np.float32)
    return Scene(sources, name, ("thermal", "radar"), boxes=np.array(boxes, float))
