"""Scenes of people in a colour and a thermal image, whatever data set they come from."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.datasets.folders import Frame, read_pair
from bimichi.imaging import box_mask, label_bags, pedestrian_sources, superpixels
from bimichi.learning.scene import Scene, Scenes

__all__ = ["DataSet", "pedestrian_scene", "pedestrian_scenes"]


class DataSet(NamedTuple):
    """Where a data set comes from, its licence, and its citation."""

    source: str
    licence: str
    citation: str


def pedestrian_scenes(
    data: DataSet, frames: Mapping[str, Frame], known: Callable[..., dict[str, Any]], n_sources: Literal[3, 6], n: int
) -> Scenes:
    """List frames of a data set, each made into a scene of about `n` bags when it is read; see `pedestrian_scene`.

    `known` reads the annotations of an image from a path and the image's shape: its `boxes`, and `truth` or `ignore`.
    """

    def read(name: str) -> Scene:
        rgb, thermal = read_pair(frames[name])
        made: dict[str, Any] = {"name": name, "licence": data.licence, "citation": data.citation}
        made |= known(frames[name].known, rgb.shape[:2])
        return pedestrian_scene(rgb, thermal, n_sources=n_sources, n_segments=n, **made)

    return Scenes(list(frames), read)


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
    """Make sources and bags as in the paper: superpixels of the colour image; those that meet a box are positive.

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
