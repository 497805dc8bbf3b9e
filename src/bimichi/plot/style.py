"""The style of all pictures: matplotlib imported when needed, one colour scale, texts, bars, marks of elements."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bimichi._colours import INK as INK, MISSING
from bimichi._extras import import_optional
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.measures.additive import MAX_SOURCES
from bimichi.measures.base import Measure
from bimichi.measures.lattice import short_names
from bimichi.measures.on_lattice import LatticeMeasure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure


SCALE = "RdBu_r"
"""From -1, blue, over 0, white, to +1, red. A value has one colour in every picture, so [0, 1] takes its upper half."""

UP, DOWN = "#b2182b", "#2166ac"
"""The colours of the scale near +1 and -1."""

POSITIVE, NEGATIVE, LEFT_OUT = "#009e73", "#d55e00", "#777777"
"""Green and red of Okabe and Ito, which colour-blind readers can distinguish."""

SMALL: Any = {"textcoords": "offset points", "fontsize": "small", "color": INK}
VALUE_WIDTH = 36.0  # points that a value takes beside its bar
HATCH = "////"
LINE_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LINE_DASHES = ("-", "--", "-.", ":")
KEY_WIDTH = 64
Kind = TypeVar("Kind", bound=Measure)

Elements = Iterable[Any] | Flags | None
"""Elements given by their sources, or as one flag per code."""


def panels(
    n: int, n_columns: int, size: tuple[float, float], layout: Literal["constrained", "compressed"] = "constrained"
) -> "tuple[Figure, list[Axes]]":
    """Return a new figure of this `size` in inches, and its `n` axes, row by row."""
    plt = import_optional("matplotlib.pyplot")
    figure, axes = plt.subplots(-(-n // n_columns), n_columns, figsize=size, layout=layout, squeeze=False)
    for ax in axes.ravel()[n:]:
        ax.remove()
    return figure, axes.ravel()[:n].tolist()


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return `ax`, or the axes of a new figure of this `size` in inches."""
    if ax is None:
        return panels(1, 1, size)[1][0]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise InvalidInputError(
            f"ax must be one matplotlib Axes, got {type(ax).__name__}; pass one, as in axes[0].",
            code="axes-kind",
            argument="ax",
        )
    return ax


def color_scale() -> "tuple[Colormap, Normalize]":
    """Return the shared colour map, grey where a value is missing, and its fixed limits -1 and 1."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    return colormaps[SCALE].with_extremes(bad=MISSING), Normalize(-1.0, 1.0)


def color_bar(
    axes: "Axes | Sequence[Axes]",
    low: float = -1.0,
    high: float = 1.0,
    label: str = "",
    extend: Literal["neither", "both"] = "neither",
    shrink: float = 1.0,
) -> None:
    """Draw the shared scale from `low` to `high` beside the axes."""
    from matplotlib.cm import ScalarMappable

    colors, norm = color_scale()
    figure = (axes[0] if isinstance(axes, Sequence) else axes).figure
    ticks = [tick for tick in (-1.0, -0.5, 0.0, 0.5, 1.0) if low <= tick <= high]
    mappable = ScalarMappable(norm, colors)
    bar = figure.colorbar(mappable, ax=axes, label=label, ticks=ticks, extend=extend, shrink=shrink, aspect=25)
    bar.ax.set_ylim(low, high)


def value_colors(values: ArrayLike) -> Floats:
    """Return the colours, as rows of RGBA, that values have in every picture."""
    colors, norm = color_scale()
    return np.atleast_2d(colors(norm(np.asarray(values, dtype=np.float64))))


def line_style(k: int) -> dict[str, Any]:
    """Return colour and dashes of line k; 28 of them differ."""
    dashes = LINE_DASHES[k // len(LINE_COLORS) % len(LINE_DASHES)]
    return {"color": LINE_COLORS[k % len(LINE_COLORS)], "linestyle": dashes}


def literal(text: object, limit: int | None = None) -> str:
    r"""Write text so that matplotlib shows it as it is, on one line, cut in its middle if longer than `limit`.

    Matplotlib sets text between two $ as a formula, and shows \$ as $.
    """
    line = " ".join(str(text).splitlines())
    if limit is not None and len(line) > limit:
        line = f"{line[: limit // 2]}…{line[len(line) - (limit - 1) // 2 :]}"
    return line.replace("$", r"\$")


def fitted(text: object, ax: "Axes", points: float = 10.0) -> str:
    """Write text as `literal` does, on up to two lines as wide as the axes, cut at its end if longer."""
    width = max(12, int(size_in_points(ax)[0] / (0.58 * points)))
    lines = textwrap.wrap(str(text), width, max_lines=2, placeholder="…")
    return "\n".join(map(literal, lines))


def size_in_points(ax: "Axes") -> tuple[float, float]:
    """Return width and height of the axes, before the layout of the figure is final."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def font_size(ax: "Axes", across: float, down: float) -> float:
    """Return the points at which text fits these shares of the width and of the height of the axes."""
    width, height = size_in_points(ax)
    return float(np.clip(min(across * width, down * height), 3.0, 10.0))


def footnote(ax: "Axes", lines: Sequence[str], below: float = 6.0) -> None:
    """Write small lines under the axes, so many points `below` them."""
    if lines:
        ax.annotate("\n".join(lines), (0.5, 0), (0, -below), xycoords="axes fraction", ha="center", va="top", **SMALL)


def signed_bars(ax: "Axes", places: Any, lengths: Any, texts: Sequence[str], color: Any, ends: Any = None) -> None:
    """Draw horizontal bars from zero, and write a text beyond each bar, or beyond these `ends`.

    The sign of an end, also that of a negative zero, is the side on which its text stands.
    """
    ax.barh(places, lengths, height=0.7, color=color)
    for place, end, text in zip(places, lengths if ends is None else ends, texts, strict=True):
        side = np.copysign(1.0, end)
        ax.annotate(text, (end, place), (side * 4, 0), ha="left" if side > 0 else "right", va="center", **SMALL)


def sides_of_zero(ax: "Axes", places: Any, names: Sequence[str], reach: float, titles: Sequence[str]) -> None:
    """Finish bars on both sides of zero: names at their places, limits with room for values, and a title per side."""
    limit = max(reach, 1e-3) / max(0.4, 1 - 2 * VALUE_WIDTH / size_in_points(ax)[0])
    for x, title, color in zip((0.25, 0.75), titles, (DOWN, UP), strict=True):
        ax.text(x, 1.01, title, color=color, ha="center", fontsize="small", transform=ax.transAxes)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(places, names)
    ax.set(xlim=(-limit, limit), ylim=(max(places) + 0.6, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def check_measure(model: object, kind: type[Kind], limit: int = MAX_SOURCES, remedy: str = "") -> Kind:
    """Return the measure of a rule, a model or a measure if it is of this `kind` and has at most `limit` sources."""
    from bimichi.rule import as_rule  # here, because numba takes long to import

    measure = model if isinstance(model, Measure) else as_rule(model).measure
    if not isinstance(measure, kind):
        others = {"Capacity": "plot_capacity", "AdditiveBiCapacity": "plot_terms"}
        other = others.get(type(measure).__name__, "plot_matrix or plot_lattice")
        got = f"got {type(measure).__name__}; use {other} for it"
        article = "an" if kind.__name__.startswith("A") else "a"
        raise InvalidInputError(f"This picture shows {article} {kind.__name__}, {got}.", code="picture-sources")
    if measure.n_sources > limit:
        model = f"The {measure.n_parts:,} {measure.parts} of {measure.n_sources} sources"
        raise InvalidInputError(
            f"{model} do not fit this picture, which is drawn up to {limit} sources. {remedy}", code="picture-sources"
        )
    return measure


def element_marks(measure: LatticeMeasure, used: Elements, identified: Elements) -> tuple[Flags, Flags, list[str]]:
    """Return which elements are bold and which identified, by code, and the line that explains the marks, if any."""
    notes = ["bold, framed: used"] * (used is not None) + ["hatched: not identified"] * (identified is not None)
    identifiable = measure.flags(identified, "identified") | (identified is None)
    return measure.flags(used, "used"), identifiable, ["     ".join(notes)] if notes else []


def names_and_key(names: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
    """Return the names for labels of sets, and the lines of a key.

    If the label of all sources together is longer than `limit`, numbers stand for the names, and the key explains them.
    """
    short, numbered = short_names(names, limit)
    if not numbered:
        return short, []
    lines: list[str] = []
    for number, name in enumerate(names, 1):
        entry = f"{number} = {literal(name, KEY_WIDTH - 8)}"
        if lines and len(lines[-1]) + len(entry) < KEY_WIDTH:
            lines[-1] += f",  {entry}"
        else:
            lines.append(entry)
    return short, lines
