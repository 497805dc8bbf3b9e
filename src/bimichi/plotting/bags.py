"""Labelled bags over an image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.learning.inputs import check_segment_labels
from bimichi.plotting._checks import check_labels
from bimichi.plotting._style import LEFT_OUT, NEGATIVE, POSITIVE, axes_for, size_in_points
from bimichi.plotting.outlines import outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bags"]

LOOKS: dict[str, dict[str, Any]] = {
    "positive": {"color": POSITIVE, "tint": 0.35, "linewidth": 1.4, "hatch": "///", "zorder": 3},
    "negative": {"color": NEGATIVE, "tint": 0.30, "linewidth": 1.0, "hatch": None, "zorder": 2},
    "left out": {"color": LEFT_OUT, "tint": 0.50, "linewidth": 0.6, "hatch": None, "zorder": 1.5},
}

KEY_WIDTH = 80.0
"""Points that an entry of the legend takes."""


def plot_bags(
    segments: ArrayLike,
    labels: Mapping[int, Any] | ArrayLike,
    image: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw bags over an image: positive ones green and hatched, negative ones red, left-out ones grey.

    Parameters
    ----------
    segments : array-like of int, shape (height, width)
        To which bag each pixel belongs.
    labels : mapping of segment to label, or array-like indexed by segment
        0/1, -1/+1 or bool, as in `Bags.from_image`. Segments that a mapping does not name are left out.
    image : array-like of shape (height, width), (height, width, 3) or (height, width, 4), optional
        What lies below: grey values from the smallest, black, to the largest, white; or colours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
        With one collection of polygons for each kind of bag, one path a bag.
    """
    numbers = np.asarray(segments)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iu" or numbers.size == 0:
        raise InvalidInputError(
            f"segments must be whole numbers of shape (height, width), got {numbers.dtype} of shape {numbers.shape}."
        )
    kinds = _kinds(numbers, labels)
    height, width = numbers.shape
    picture = None if image is None else _check_image(image, (height, width))
    ax = axes_for(ax, (min(max(4.0 * width / height, 4.6), 10.0), 4.4))
    if picture is not None:
        ax.imshow(picture, cmap="gray", alpha=0.7, extent=(0, width, height, 0))
    _draw(ax, numbers, kinds)
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    return ax


def _draw(ax: "Axes", numbers: NDArray[np.integer], kinds: dict[int, str]) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch
    from matplotlib.path import Path

    loops = outlines(numbers)
    keys = []
    for kind, look in LOOKS.items():
        paths = [
            Path.make_compound_path(*(Path(np.concatenate([loop, loop[:1]]), closed=True) for loop in loops[segment]))
            for segment, which in kinds.items()
            if which == kind
        ]
        if not paths:
            continue
        style = {
            "facecolor": to_rgba(look["color"], look["tint"]),
            "edgecolor": look["color"],
            "linewidth": look["linewidth"],
            "hatch": look["hatch"],
        }
        ax.add_collection(PathCollection(paths, **style, zorder=look["zorder"], label=kind), autolim=False)
        keys.append(Patch(**style, label=f"{kind} ({len(paths)})"))
    ax.legend(
        handles=keys,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(len(keys), max(1, int(size_in_points(ax)[0] / KEY_WIDTH))),
        frameon=False,
        fontsize="small",
        columnspacing=1.2,
        handlelength=1.5,
    )


def _kinds(numbers: NDArray[np.integer], labels: Mapping[int, Any] | ArrayLike) -> dict[int, str]:
    """Name the kind of every segment."""
    found = np.unique(numbers)
    named = dict(zip(found.tolist(), check_segment_labels(found, labels), strict=True))
    labelled = {segment: label for segment, label in named.items() if label is not None}
    positive = check_labels(np.array(list(labelled.values())), "labels")
    signs = dict(zip(labelled, positive, strict=True))
    return {
        segment: ("positive" if signs[segment] else "negative") if segment in signs else "left out" for segment in named
    }


def _check_image(image: ArrayLike, shape: tuple[int, int]) -> NDArray[Any]:
    picture = np.asarray(image)
    if picture.shape[:2] != shape or picture.shape[2:] not in ((), (3,), (4,)):
        raise InvalidInputError(
            f"image must be grey or coloured and of the segments' shape {shape}, got shape {picture.shape}."
        )
    return picture
