"""Scenes of people in a colour and a thermal image, whatever data set they come from."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.imaging import box_mask, label_bags, pedestrian_sources, superpixels
from bimichi.learning.scene import Scene

__all__ = ["pedestrian_scene"]


def pedestrian_scene(
    rgb: NDArray[np.uint8],
    thermal: NDArray[Any],
    boxes: ArrayLike,
    *,
    name: str,
    n_sources: Literal[3, 6],
    n_segments: int,
    truth: NDArray[np.bool_] | None = None,
    ignore: NDArray[np.bool_] | None = None,
    licence: str,
    citation: str,
) -> Scene:
    """Make sources and bags as the paper does: superpixels of the colour image; those that meet a box are positive.

    Without `truth`, it is the inside of the boxes. Bags that only meet `ignore` are left out. A scene without people
    has negative bags alone.
    """
    planes, names = pedestrian_sources(rgb, thermal, n_sources)
    segments = superpixels(rgb, n_segments)
    boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    shape = (rgb.shape[0], rgb.shape[1])
    return Scene(
        np.stack(planes, axis=-1),
        name,
        tuple(names),
        segments=segments,
        labels=label_bags(segments, boxes=boxes, ignore=ignore, require_both=False),
        truth=box_mask(boxes, shape) if truth is None else truth,
        ignore=ignore,
        boxes=boxes,
        rgb=rgb,
        thermal=thermal,
        truth_from="boxes" if truth is None else "pixels",
        licence=licence,
        citation=citation,
    )
