"""Scenes of people in a colour and a thermal image, whatever data set they come from, and sequences of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.imaging import box_mask, label_bags, pedestrian_sources, superpixels
from bimichi.scene import Scene

__all__ = ["Scenes", "pedestrian_scene"]


class Scenes(Sequence[Scene]):
    """Scenes that are read one at a time, each when it is asked for, and not kept.

    ``scenes[0]``, ``scenes["name"]`` and loops read scenes; ``scenes[:8]`` is a shorter sequence and reads none;
    ``"name" in scenes`` asks for a name.

    Parameters
    ----------
    names : sequence of str
        What the scenes are called, in order.
    load : callable
        Takes a name, gives its scene.
    """

    def __init__(self, names: Sequence[str], load: Callable[[str], Scene]) -> None:
        self.names = tuple(names)
        self._load = load

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:3]) + (", ..." if len(self) > 3 else "")
        return f"Scenes({len(self)}: {shown})"

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Scene]:
        return map(self._load, self.names)

    @overload
    def __getitem__(self, which: int | str) -> Scene: ...
    @overload
    def __getitem__(self, which: slice) -> "Scenes": ...
    def __getitem__(self, which: int | str | slice) -> "Scene | Scenes":
        if isinstance(which, slice):
            return Scenes(self.names[which], self._load)
        if isinstance(which, str):
            if which not in self.names:
                raise InvalidInputError(f"No scene is named {which!r}; {self!r} lists names in its attribute `names`.")
            return self._load(which)
        return self._load(self.names[which])


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
