"""Which source matters, and which two together: bars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.explain import DataIndices, indices
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import percent, section, shown

__all__ = ["strengths_section"]

FIRST = 10
"""Pairs that are shown at once, the strongest first."""

FAINT = 0.02
"""Interactions below it have short bars, even if none is stronger."""


def strengths_section(material: Material, found: DataIndices) -> Markup:
    """Show importances and interactions, on this image and over the whole measure."""
    parts = [
        element("div", element("h3", "Importance"), _importance(found), class_="card"),
        element("div", element("h3", "Interaction"), *_interaction(found), class_="card")
        if len(material.names) > 1
        else "",
    ]
    whole = indices(material.rule)
    tables = [whole.to_table()] + ([whole.interaction_table()] if len(material.names) > 1 else [])
    return section(
        "strengths",
        "What each source is worth",
        element("div", *parts, class_="pair"),
        element(
            "details",
            element("summary", "The same over the whole measure, whether pixels use it or not"),
            *(element("div", Markup(table.to_html()), class_="scroll") for table in tables),
        ),
        lead=f"Averages over the {found.n_instances:,} pixels of this image. A source is high or low as it enters the "
        "integral: scaled, and turned over if it is.",
    )


def _importance(found: DataIndices) -> Markup:
    rows = []
    for k in np.argsort(-found.share, kind="stable").tolist():
        up, down = float(found.share_up[k]), float(found.share_down[k])
        bar = element(
            "span",
            element("i", class_="up", style=f"width:{100 * up:.2f}%"),
            element("i", class_="down", style=f"width:{100 * down:.2f}%"),
            class_="bar",
            aria_hidden="true",
        )
        cells = [
            element("th", found.source_names[k], scope="row"),
            element("td", bar, class_="wide"),
            element("td", percent(float(found.share[k])), class_="strong"),
            element("td", f"{percent(up)} / {percent(down)}"),
            element("td", shown(float(found.signed[k]))),
        ]
        rows.append(element("tr", *cells))
    head = ["Source", "Share of the fused confidence", "high / low", "mean"]
    spans = {"Share of the fused confidence": 2}
    return joined(
        element(
            "div",
            element(
                "table",
                element("thead", element("tr", *(element("th", h, scope="col", colspan=spans.get(h)) for h in head))),
                element("tbody", *rows),
                class_="bars",
            ),
            class_="scroll",
        ),
        element(
            "p",
            element("i", class_="key up"),
            "where the source is high, ",
            element("i", class_="key down"),
            "where it is low. Mean: its mean contribution to C.",
            class_="note",
        ),
    )


def _interaction(found: DataIndices) -> list[Markup]:
    columns = {
        "both high": found.interaction_up,
        "both low": found.interaction_down,
        "first high, second low": found.interaction_mixed,
        "second high, first low": found.interaction_mixed.T,
    }
    m = len(found.source_names)
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    strength = {pair: max(abs(float(values[pair])) for values in columns.values()) for pair in pairs}
    pairs.sort(key=lambda pair: -strength[pair])
    most = max(FAINT, *strength.values())
    rows = [_pair_row(found, pair, columns, most) for pair in pairs]
    head = element("thead", element("tr", *(element("th", title, scope="col") for title in ("Pair", *columns))))

    def table(part: list[Markup]) -> Markup:
        return element("div", element("table", head, element("tbody", *part), class_="bars"), class_="scroll")

    note = element(
        "p",
        "Both high, above 0: together they count more for a target than one by one; below 0: one stands in for the "
        "other. Both low: the other way round. High beside low, above 0: the low one dampens the high one.",
        class_="note",
    )
    rest = element("details", element("summary", f"{len(rows) - FIRST} weaker pairs"), table(rows[FIRST:]))
    return [table(rows[:FIRST]), rest if len(rows) > FIRST else Markup(""), note]


def _pair_row(found: DataIndices, pair: tuple[int, int], columns: dict[str, NDArray[Any]], most: float) -> Markup:
    names = [found.source_names[k] for k in pair]
    cells = [element("th", " · ".join(names), scope="row")]
    for values in columns.values():
        value = float(values[pair])
        cells.append(element("td", _signed_bar(value / most), shown(value, 3)))
    return element("tr", *cells)


def _signed_bar(part: float) -> Markup:
    """Return a bar from the middle, to the right if `part` (of the whole half) is above 0."""
    side = "up" if part > 0 else "down"
    start = 50.0 if part > 0 else 50.0 + 50 * part
    style = f"left:{start:.2f}%;width:{50 * abs(part):.2f}%"
    return element("span", element("i", class_=side, style=style), class_="signed", aria_hidden="true")
