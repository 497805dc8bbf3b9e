"""Kernels compiled, or loaded, before the first edit, so that it does not have to wait for them."""

import numpy as np

from bimichi.imaging.bagging import bag_scene
from bimichi.interactive.labels import Shape, annotations_of
from bimichi.interactive.settings import Settings
from bimichi.learning.scene import Scene


def warm_up() -> None:
    """Learn and fuse once what takes no time, but runs the same code as real scenes."""
    rng, settings = np.random.default_rng(0), Settings()
    drawn = annotations_of((Shape("warm", "box", "target", ((4.0, 4.0), (12.0, 12.0))),), (32, 32))
    for m in (2, 6):
        planes = rng.uniform(-1, 1, (32, 32, m)).astype(np.float32)
        scene, _ = bag_scene(Scene(planes, "warm"), drawn, settings.labelling)
        model = settings.model([str(k) for k in range(m)]).fit([scene])
        model.fuse(list(np.moveaxis(planes, -1, 0)))
