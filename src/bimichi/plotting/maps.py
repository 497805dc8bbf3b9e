"""Source maps and fused maps, alone or side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_integer, real_array
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.plotting._style import axes_for, color_bar, color_scale, fitted, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    Returns
    -------
    ax : matplotlib Axes

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

    Returns
    -------
    figure : matplotlib Figure
    """
    low, high = _check_range(output_range)
    names, arrays = _titled(planes, titles)
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


def _titled(planes: Any, titles: Sequence[str] | None) -> tuple[Sequence[str | None], list[ArrayLike]]:
    if isinstance(planes, Mapping):
        if titles is not None:
            raise InvalidInputError("titles must be left out when planes is a mapping: its keys are the titles.")
        titles, planes = list(planes), planes.values()
    arrays = list(planes)
    if not arrays:
        raise InvalidInputError("planes is empty; give at least one map.")
    if titles is None:
        return [None] * len(arrays), arrays
    if isinstance(titles, str) or len(titles) != len(arrays):
        raise InvalidInputError(f"titles must be one for each of the {len(arrays)} maps, got {titles!r}.")
    return titles, arrays


def _check_range(output_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -1 <= low < high <= 1:
        raise InvalidInputError(f"output_range must be two numbers in [-1, 1], such as (0, 1), got {output_range!r}.")
    return low, high


def _check_plane(plane: ArrayLike, low: float, high: float, what: str) -> Floats:
    given = real_array(plane, what, "a map holds real numbers.")
    if given.ndim != 2 or given.size == 0:
        rule = f"{what} must have shape (height, width), got {given.shape}"
        raise InvalidInputError(f"{rule}; of an image of sources, pass image[..., k].")
    if given.dtype == bool:
        return np.where(given, high, low)
    values = given.astype(np.float64)
    outside = ~np.isnan(values) & ((values < low - ROUNDING) | (values > high + ROUNDING))
    if outside.any():
        found = f"{what} has the value {values[outside][0]:g}, outside output_range ({low:g}, {high:g})"
        raise InvalidInputError(f"{found}. Rescale the map, or pass the range of its values.")
    return values
