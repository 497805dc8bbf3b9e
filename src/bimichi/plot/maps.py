"""Source maps, fused maps and bags, alone or side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_binary, check_boxes, check_integer, real_array
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.plot.style import (
    LEFT_OUT,
    NEGATIVE,
    POSITIVE,
    axes_for,
    color_bar,
    color_scale,
    fitted,
    panels,
    size_in_points,
)
from bimichi.scenes.checks import check_segment_labels
from bimichi.scenes.shapes import corners_of, outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.path import Path


ROUNDING = 1e-6
PANEL_WIDTH = 2.4
TITLE_SIZE = 10.0


def plot_map(
    plane: ArrayLike,
    ax: "Axes | None" = None,
    title: str | None = None,
    colorbar: bool = True,
    output_range: tuple[float, float] = (-1.0, 1.0),
) -> "Axes":
    """Draw a source or a fused map on the shared scale: -1 blue, 0 white, +1 red.

    Parameters
    ----------
    plane : array-like of shape (height, width)
        Values within `output_range`; NaN is grey. False and True of a boolean map are the ends of the range.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        Shown as it is, without formulas, on up to two lines.
    colorbar : bool, default=True
        Whether to draw the colour bar.
    output_range : (float, float), default=(-1, 1)
        Which values the map can have, and what the colour bar spans. Colours do not depend on it: 0 is always white.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> ax = plot_map(np.array([[-1.0, 0.5]]), ax=Figure().subplots(), title="thermal")
    >>> ax.get_title()
    'thermal'
    """
    low, high = _check_range(output_range)
    values = _check_plane(plane, low, high, "plane")
    pixels = values.shape[1] / values.shape[0]
    ax = axes_for(ax, (4.0 * min(max(pixels, 0.5), 2.5) + 1.0, 4.0))
    _draw(ax, values, title)
    if colorbar:
        color_bar(ax, low, high)
    return ax


def plot_maps(
    planes: "Sequence[ArrayLike] | Mapping[str, ArrayLike]",
    titles: Sequence[str] | None = None,
    ncols: int | None = None,
    output_range: tuple[float, float] = (-1.0, 1.0),
) -> "Figure":
    """Draw maps side by side, with one colour bar for all.

    Parameters
    ----------
    planes : sequence of array-like of shape (height, width), or mapping of title to such
        The maps, each as in `plot_map`.
    titles : sequence of str, optional
        One for each map; of a mapping, the keys are the titles.
    ncols : int, optional
        Maps in a row; by default up to five, so that rows are about equally long.
    output_range : (float, float), default=(-1, 1)
        As in `plot_map`; (-1, 1) also fits maps of both kinds beside each other.
    """
    low, high = _check_range(output_range)
    names, arrays = _with_titles(planes, titles)
    checked = [_check_plane(plane, low, high, f"planes[{k}]") for k, plane in enumerate(arrays)]
    n = len(checked)
    if ncols is None:
        ncols = -(-n // -(-n // 5))
    ncols = min(check_integer(ncols, "ncols"), n)
    nrows = -(-n // ncols)
    height = PANEL_WIDTH * max(min(max(a.shape[0] / a.shape[1], 0.3), 2.0) for a in checked)
    figure, axes = panels(n, ncols, (PANEL_WIDTH * ncols + 0.9, (height + 0.3) * nrows), "compressed")
    for ax, values, name in zip(axes, checked, names, strict=True):
        _draw(ax, values, name)
    color_bar(axes, low, high, shrink=min(1.0, 2 / nrows))
    return figure


def _draw(ax: "Axes", values: Floats, title: str | None) -> None:
    colors, norm = color_scale()
    ax.imshow(values, cmap=colors, norm=norm)
    ax.set(xticks=[], yticks=[])
    if title is not None:
        ax.set_title(fitted(title, ax, TITLE_SIZE), fontsize=TITLE_SIZE)


def _with_titles(planes: Any, titles: Sequence[str] | None) -> tuple[Sequence[str | None], list[ArrayLike]]:
    if isinstance(planes, Mapping):
        if titles is not None:
            raise InvalidInputError(
                "titles must be left out when planes is a mapping: its keys are the titles.",
                code="titles-twice",
                argument="titles",
            )
        titles, planes = list(planes), planes.values()
    arrays = list(planes)
    if not arrays:
        raise InvalidInputError("planes is empty; give at least one map.", code="maps-empty", argument="planes")
    if titles is None:
        return [None] * len(arrays), arrays
    if isinstance(titles, str) or len(titles) != len(arrays):
        raise InvalidInputError(
            f"titles must be one for each of the {len(arrays)} maps, got {titles!r}.",
            code="titles-number",
            argument="titles",
            value=titles,
        )
    return titles, arrays


def _check_range(output_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -1 <= low < high <= 1:
        raise InvalidInputError(
            f"output_range must be two numbers in [-1, 1], such as (0, 1), got {output_range!r}.",
            code="output-range",
            argument="output_range",
            value=output_range,
        )
    return low, high


def _check_plane(plane: ArrayLike, low: float, high: float, label: str) -> Floats:
    array = real_array(plane, label, "a map holds real numbers.")
    if array.ndim != 2 or array.size == 0:
        rule = f"{label} must have shape (height, width), got {array.shape}"
        raise InvalidInputError(f"{rule}; of an image of sources, pass image[..., k].", code="map-shape")
    if array.dtype == bool:
        return np.where(array, high, low)
    values = array.astype(np.float64)
    outside = ~np.isnan(values) & ((values < low - ROUNDING) | (values > high + ROUNDING))
    if outside.any():
        problem = f"{label} has the value {values[outside][0]:g}, outside output_range ({low:g}, {high:g})"
        raise InvalidInputError(
            f"{problem}. Rescale the map, or pass the range of its values.", code="output-range-exceeded"
        )
    return values


LOOKS: dict[str, dict[str, Any]] = {
    "positive": {"edgecolor": POSITIVE, "tint": 0.35, "linewidth": 1.4, "hatch": "///", "zorder": 3},
    "negative": {"edgecolor": NEGATIVE, "tint": 0.30, "linewidth": 1.0, "hatch": None, "zorder": 2},
    "left out": {"edgecolor": LEFT_OUT, "tint": 0.50, "linewidth": 0.6, "hatch": None, "zorder": 1.5},
}
"""Without an image: areas."""

OVER_IMAGE: dict[str, dict[str, Any]] = {
    "positive": {"edgecolor": "#2bd9a0", "linewidth": 1.0, "linestyle": "-", "zorder": 3},
    "negative": {"edgecolor": "#ff7f2a", "linewidth": 0.4, "linestyle": "-", "zorder": 2},
    "left out": {"edgecolor": "#58b4ff", "linewidth": 0.8, "linestyle": "--", "zorder": 2.5},
}
"""Over an image: thin outlines, lighter than those of areas, since photographs are often dark."""

TARGET: dict[str, Any] = {"edgecolor": "#ffe14d", "facecolor": "none", "linewidth": 1.2}
HALO, HALO_WIDTH = "#222222", 1.0  # around targets, so that they show on bright images, too

KEY_WIDTH = 80.0  # points that an entry of the legend takes


def plot_bags(
    segments: ArrayLike,
    labels: Mapping[int, Any] | ArrayLike,
    image: ArrayLike | None = None,
    ax: "Axes | None" = None,
    *,
    boxes: ArrayLike | None = None,
    polygons: Sequence[ArrayLike] = (),
    mask: ArrayLike | None = None,
) -> "Axes":
    """Draw bags: positive ones green, negative ones orange; and where the targets are, yellow.

    Over an image, bags are thin outlines, so that everything shows through, left-out ones blue and dashed; without an
    image, they are areas, left-out ones grey.

    Parameters
    ----------
    segments : array-like of int, shape (height, width)
        To which bag each pixel belongs.
    labels : mapping of segment to label, or array-like indexed by segment
        0/1, -1/+1 or bool, as in `Bags.from_image`. Segments that a mapping does not name are left out.
    image : array-like of shape (height, width), (height, width, 3) or (height, width, 4), optional
        The background: grey values, the smallest black and the largest white, or colours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    boxes : array-like of shape (n_boxes, 4), optional
        Boxes (x, y, width, height) of targets, in pixels.
    polygons : sequence of array-like of shape (n_corners, 2), optional
        Corners (x, y) of targets.
    mask : array-like of bool, shape (height, width), optional
        Pixels of targets, which are outlined.

    Returns
    -------
    ax : matplotlib Axes
        With one collection of polygons for each kind of bag, and one path per bag; targets are another collection.
    """
    numbers = np.asarray(segments)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iu" or numbers.size == 0:
        got = f"{numbers.dtype} of shape {numbers.shape}"
        raise InvalidInputError(
            f"segments must be whole numbers of shape (height, width), got {got}.",
            code="segments-shape",
            argument="segments",
            value=got,
        )
    segment_numbers = np.unique(numbers)
    segment_labels = check_segment_labels(segment_numbers, labels)
    kinds = dict.fromkeys(segment_numbers.tolist(), "left out")
    labelled = [segment for segment, label in zip(kinds, segment_labels, strict=True) if label is not None]
    positive = check_binary(np.array([label for label in segment_labels if label is not None]), "labels")
    kinds = kinds | {segment: "positive" if p else "negative" for segment, p in zip(labelled, positive, strict=True)}
    height, width = numbers.shape
    picture = None if image is None else np.asarray(image)
    if picture is not None and (picture.shape[:2] != (height, width) or picture.shape[2:] not in ((), (3,), (4,))):
        shape = f"the segments' shape {(height, width)}, got {picture.shape}"
        raise InvalidInputError(f"image must be grey or coloured, of {shape}.", code="image-shape", argument="image")
    targets = _targets(boxes, polygons, mask, (height, width))
    ax = axes_for(ax, (min(max(4.0 * width / height, 4.6), 10.0), 4.4))
    if picture is not None:
        ax.imshow(picture, cmap="gray", extent=(0, width, height, 0))
    keys = [*_draw_bags(ax, numbers, kinds, picture is not None), *_draw_targets(ax, targets)]
    columns = min(len(keys), max(1, int(size_in_points(ax)[0] / KEY_WIDTH)))
    below: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "frameon": False, "fontsize": "small"}
    ax.legend(handles=keys, ncols=columns, columnspacing=1.2, handlelength=1.5, **below)
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    return ax


def _draw_bags(ax: "Axes", numbers: NDArray[np.integer], kinds: dict[int, str], over_image: bool) -> "list[Patch]":
    """Draw the bags of every kind, and return what the legend shows of them."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    loops = outlines(numbers)
    keys = []
    for kind, look in (OVER_IMAGE if over_image else LOOKS).items():
        paths = [_path(loops[segment]) for segment, which in kinds.items() if which == kind]
        if not paths:
            continue
        style: dict[str, Any] = {
            name: look[name] for name in ("edgecolor", "linewidth", "hatch", "linestyle") if name in look
        }
        style["facecolor"] = to_rgba(look["edgecolor"], look.get("tint", 0.0))
        ax.add_collection(PathCollection(paths, **style, zorder=look["zorder"], label=kind), autolim=False)
        key = style | {"linewidth": max(look["linewidth"], 1.0)}
        keys.append(Patch(**key, label=f"{kind} ({len(paths)})"))
    return keys


def _draw_targets(ax: "Axes", paths: "list[Path]") -> "list[Patch]":
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Patch
    from matplotlib.patheffects import Normal, withStroke

    if not paths:
        return []
    halo = [withStroke(linewidth=TARGET["linewidth"] + HALO_WIDTH, foreground=HALO), Normal()]
    drawn = PathCollection(paths, **TARGET, zorder=4, label="targets", path_effects=halo)
    ax.add_collection(drawn, autolim=False)
    return [Patch(**TARGET, path_effects=halo, label=f"targets ({len(paths)})")]


def _targets(
    boxes: ArrayLike | None, polygons: Sequence[ArrayLike], mask: ArrayLike | None, shape: tuple[int, int]
) -> "list[Path]":
    """Return the outlines of targets, those of a mask by its connected regions."""
    outlined: list[list[NDArray[Any]]]
    outlined = [[corners_of(box)] for box in check_boxes([] if boxes is None else boxes, "boxes")]
    for polygon in polygons:
        points = np.asarray(polygon, dtype=np.float64)
        if points.ndim != 2 or points.shape[1:] != (2,):
            raise InvalidInputError(
                f"polygons must have shape (n_corners, 2): x, y, got {points.shape}.",
                code="polygons-shape",
                argument="polygons",
                value=points.shape,
            )
        outlined.append([points])
    if mask is not None:
        inside = np.asarray(mask)
        if inside.dtype != np.bool_ or inside.shape != shape:
            got = f"{inside.dtype} of shape {inside.shape}"
            raise InvalidInputError(
                f"mask must be an array of bool of the segments' shape {shape}, got {got}.",
                code="mask-kind",
                argument="mask",
                value=got,
            )
        from scipy import ndimage

        regions = ndimage.label(inside, structure=np.ones((3, 3)))[0]
        outlined += [list(loops) for region, loops in outlines(regions).items() if region]
    return [_path(loops) for loops in outlined]


def _path(loops: Sequence[NDArray[Any]]) -> "Path":
    """Join closed polygons."""
    from matplotlib.path import Path

    return Path.make_compound_path(*(Path(np.concatenate([loop, loop[:1]]), closed=True) for loop in loops))
