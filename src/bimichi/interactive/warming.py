"""Code imported, and kernels compiled or loaded, before the first edit, so that it does not have to wait for them."""

from importlib import import_module

import numpy as np

from bimichi.imaging.bagging import bag_scene
from bimichi.interactive.labels import Shape, annotations_of
from bimichi.interactive.settings import Settings
from bimichi.learning.scene import Scene


def warm_up() -> None:
    """Import what is not needed before; learn and fuse once what takes no time, but runs the code of real scenes."""
    for name in ("suggestions", "messages", "windows"):
        import_module(f"bimichi.interactive.{name}")
    for name in ("contents", "inputs"):
        import_module(f"bimichi.report.{name}")
    rng, settings = np.random.default_rng(0), Settings()
    drawn = annotations_of((Shape("warm", "box", "target", ((4.0, 4.0), (12.0, 12.0))),), (32, 32))
    for m in (2, 6):
        planes = rng.uniform(-1, 1, (32, 32, m)).astype(np.float32)
        scene, _ = bag_scene(Scene(planes, "warm"), drawn, settings.labelling)
        model = settings.model([str(k) for k in range(m)]).fit([scene])
        model.fuse(list(np.moveaxis(planes, -1, 0)))
