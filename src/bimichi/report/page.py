"""What the pages of this package share: their template, the files that it takes in, and data inside a page."""

import base64
import json
import zlib
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._colours import LEVELS, MISSING as MISSING, SCALE as SCALE, ink_on
from bimichi._files import atomic_write
from bimichi._tables import Markup as Markup, element as element, joined as joined
from bimichi.rule import FusionRule

POLICY = "default-src 'none'; {script}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a page may load: nothing but what it holds itself, of which a script must have the hash that is put in."""


def embedded_json(document: Any) -> Markup:
    """Return JSON that can be put inside a script element: no character in it can end the element, or begin another."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def write_page(
    path: str | PathLike[str],
    title: str,
    introduction: str,
    sections: Markup,
    digest: str = "",
    before: str = "",
    button: str = "",
    after: str = "",
) -> None:
    """Write a page, which replaces the file only when complete.

    `digest` is that of the script it may run, `before` and `after` stand around header and sections, and `button` is in
    the header; all are HTML already.
    """
    page = Template(resource("page.html")).substitute(
        policy=POLICY.format(script=f"script-src 'sha256-{digest}'; " if digest else ""),
        title=joined(title),
        introduction=joined(introduction),
        style=resource("report.css"),
        sections=sections,
        before=before,
        button=button,
        after=after,
    )
    atomic_write(path, lambda file: file.write(page.encode(errors="replace")))  # names of files may be no valid text


def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return files("bimichi.report").joinpath(name).read_text(encoding="utf-8")


LABEL_LIMIT = 14

FIRST = 10
"""Pairs that are shown at once at most, the strongest first."""

MOST = 200
"""Pairs that are listed at most."""

Head = Sequence[str | tuple[str, int]]
"""Headings of columns: text, text with the number of columns it spans, or markup."""


def shown(value: float, digits: int = 2) -> str:
    """Write a number with a true minus, and without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def section(key: str, heading: str, *content: str, lead: str = "", class_: str | None = None) -> Markup:
    """Return a section of the page with its heading and a sentence or two on how to read it."""
    return element(
        "section",
        element("h2", heading, id=f"{key}-heading"),
        element("p", lead, class_="lead") if lead else "",
        *content,
        id=key,
        class_=class_,
        aria_labelledby=f"{key}-heading",
    )


def signed_bar(*shares: float) -> Markup:
    """Return a bar from the middle: left by shares of a half that are below 0, right by those above."""
    parts = [
        element("i", class_="up", style=f"left:50%;width:{50 * share:.2f}%")
        if share > 0
        else element("i", class_="down", style=f"left:{50 + 50 * share:.2f}%;width:{-50 * share:.2f}%")
        for share in shares
        if share
    ]
    return element("span", *parts, class_="signed", aria_hidden="true")


def table(head: Head, rows: Sequence[Markup], class_: str, label: str | None = None) -> Markup:
    """Return a table that scrolls where it is too wide; with a label, the keyboard can scroll it too."""
    titles = []
    for title in head:
        text, span = (title, None) if isinstance(title, str) else title
        cell = element("th", text, scope="col" if text else None, colspan=span)
        titles.append(text if isinstance(text, Markup) else cell)
    content = element("table", element("thead", element("tr", *titles)), element("tbody", *rows), class_=class_)
    if label is None:
        return element("div", content, class_="scroll")
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def folded_table(head: Head, rows: list[Markup], strong: int, total: int, class_: str, label: str | None) -> Markup:
    """Return a table of the strong pairs, ten at most; the weaker ones, out of `total` in all, are folded below it."""
    first = min(FIRST, strong)
    more = f"{len(rows) - first:,} weaker pairs" + (f" of {total - first:,}" if total > len(rows) else "")
    rest = element("details", element("summary", more), table(head, rows[first:], class_, label and "Weaker pairs"))
    return joined(table(head, rows[:first], class_, label), rest if len(rows) > first else "")


LISTED = 4096
MISSING_CODE = 2**16 - 1
STEPS = 2**16 - 2


def embed_plane(plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)) -> dict[str, Any]:
    """Return a plane as a part of the page's data; values beyond `limits` may be set to them."""
    indices, meaning = index_plane(plane, limits)
    return meaning | {"data": embed_indices(indices)}


def index_plane(
    plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[NDArray[np.uint16], dict[str, Any]]:
    """Return a plane as whole numbers of 16 bits, `MISSING` for NaN, and what they mean."""
    missing = np.isnan(plane)
    values = plane.astype(np.float64)
    known = values[~missing]
    few = (
        len(np.unique(known[:: max(1, len(known) // (4 * LISTED))])) <= LISTED
    )  # of a part: else there are more of all
    levels = np.unique(known) if few else known
    if len(levels) > LISTED:
        low, high = np.clip([levels.min(), levels.max()], *limits)
        step = (high - low) / STEPS or 1.0
        indices = np.rint((np.clip(np.where(missing, low, values), low, high) - low) / step)
        meaning: dict[str, Any] = {"low": float(low), "step": float(step)}
    else:
        indices = np.searchsorted(levels, values)
        meaning = {"levels": levels.tolist()}
    return np.where(missing, MISSING_CODE, indices).astype(np.uint16), meaning


def embed_indices(indices: NDArray[Any]) -> str:
    """Return whole numbers below 2^16 of an image as text."""
    numbers = indices.astype(np.uint16)
    steps = np.diff(numbers, axis=1, prepend=np.uint16(0)).astype(np.int16)
    folded = ((steps << 1) ^ (steps >> 15)).astype("<u2")
    return _packed(folded.reshape(-1, 1).view(np.uint8).T)


def embed_numbers(values: NDArray[np.float64]) -> str:
    """Return numbers, such as the values of a measure, as text."""
    return _packed(values.astype("<f8"))


def learned_range(rule: FusionRule, k: int) -> tuple[float, float]:
    """Return the values of source k between which the rule's scale is not flat."""
    centre, factor = float(rule.centre[k]), float(rule.factor[k])
    if (centre, factor) == (0.0, 1.0) or factor == 0:
        return (-np.inf, np.inf)
    return (centre + rule.low / factor, centre + 1 / factor)


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()


def colour_of(value: float) -> str:
    """Return the colour of a value in [-1, 1], as #rrggbb."""
    return SCALE[int(np.clip((value + 1) / 2 * LEVELS, 0, LEVELS - 1))]


def swatch(value: float) -> str:
    """Return the style of a cell in the colour of a value."""
    colour = colour_of(value)
    return f"--value:{colour};--ink:{ink_on(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))}"


def gradient(low: float, high: float) -> str:
    """Return the part of the scale from `low` to `high` as a CSS gradient."""
    places = np.linspace(low, high, 33).tolist()
    return f"linear-gradient(to right, {', '.join(map(colour_of, places))})"
