"""Results as HTML for notebooks: escaped, no wider than their cell, and readable in light and in dark.

Colours follow values as in every picture, -1 blue and +1 red; they are laid over the background of the notebook, so
that text keeps the colour that it has there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bimichi._tables import Table
from bimichi._templates import macro

if TYPE_CHECKING:
    from markupsafe import Markup

Tint = Callable[[int, str], dict[str, str]]
"""Gives the attributes of a cell, from its column and its text."""

MOST = 2.0  # beyond, a number is no value or index
LONG = 24  # characters, from which on a text is broken into lines


def view(title: str, *parts: str, note: str = "") -> str:
    """Return a whole result: a title, its parts, and a note; as plain text, to which others may add theirs."""
    return str(macro("view.html", "view", title, parts, note))


def paragraph(text: str) -> "Markup":
    """Return a sentence or several."""
    return macro("view.html", "paragraph", text)


def facts(values: Mapping[str, Any]) -> "Markup":
    """Return names and values, without those that are None or empty."""
    pairs = [(name, str(value)) for name, value in values.items() if value is not None and str(value)]
    return macro("view.html", "facts", pairs)


def by_value(column: int, text: str) -> dict[str, str]:
    """Tint a cell by its number: red above 0, blue below, deepest from -1 and +1 on."""
    value = _number(text) if "." in text else None  # whole numbers are counts
    if not value or abs(value) > MOST:
        return {}
    return _tinted("up" if value > 0 else "down", min(1.0, abs(value)))


def by_rank(table: Table, higher_is_better: Mapping[int, bool]) -> Tint:
    """Return a tint that is deeper the better a number is among those of its column."""
    ranges = {}
    for column in higher_is_better:
        numbers = [value for row in table.rows if (value := _number(row[column].text)) is not None]
        if numbers and max(numbers) > min(numbers):
            ranges[column] = (min(numbers), max(numbers))

    def tint(column: int, text: str) -> dict[str, str]:
        value = _number(text)
        if column not in ranges or value is None:
            return {}
        low, high = ranges[column]
        share = (value - low) / (high - low)
        return _tinted("good", share if higher_is_better[column] else 1 - share)

    return tint


def table(shown: Table, tint: Tint = by_value) -> "Markup":
    """Return a table that scrolls within its cell, its numbers tinted."""

    def attributes(column: int, text: str) -> dict[str, str]:
        return tint(column, text) or ({"class": "text"} if len(text) > LONG else {})

    return macro("view.html", "tinted", shown, attributes)


def bars(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str], float]]) -> "Markup":
    """Return a table whose rows are a name, some texts, and a number with a bar, to the left if it is below 0."""
    lines = list(rows)
    most = max((abs(value) for *_, value in lines), default=0.0) or 1.0
    return macro("view.html", "bars", header, [(name, texts, value / most) for name, texts, value in lines])


def pictures(images: Iterable[tuple[str, str]]) -> "Markup":
    """Return pictures, captions with data URIs, side by side as far as there is room."""
    return macro("view.html", "pictures", list(images))


def frame(title: str, page: str) -> "Markup":
    """Return a page in a frame of its own, in which it may run its scripts, but reaches nothing of the notebook."""
    return macro("view.html", "frame", title, page)


def _tinted(kind: str, share: float) -> dict[str, str]:
    return {"class": kind, "style": f"--share:{share:.3g}"}


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return value if value == value else None
