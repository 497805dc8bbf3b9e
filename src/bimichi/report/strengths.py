"""Which source matters, and which two together: bars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.explain import DataIndices, indices
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import percent, section, shown, signed_bar

__all__ = ["strengths_section"]

FIRST = 10
"""Pairs that are shown at once at most, the strongest first."""

LAST = 200
"""Pairs that are listed at most."""

TABLES = 12
"""Sources up to which the pairs of the whole measure are listed."""

NOTHING = 0.0005
"""Interactions below it are 0.000."""

FAINT = 0.02
"""Interactions below it have short bars, even if none is stronger."""


def strengths_section(material: Material) -> Markup:
    """Show importances and interactions, on this image and over the whole measure."""
    found, one_sided = material.averages, material.rule.low == 0
    parts = [
        element("div", element("h3", "Importance"), _importance(found, one_sided), class_="card"),
        element("div", element("h3", "Interaction"), *_interaction(found, one_sided), class_="card")
        if len(material.names) > 1
        else "",
    ]
    whole = indices(material.rule)
    pairs = [whole.interaction_table()] if 1 < len(material.names) <= TABLES else []
    return section(
        "strengths",
        "What each source is worth",
        element("div", *parts, class_="pair"),
        element(
            "details",
            element("summary", "The same averaged over the whole measure, whether pixels use it or not"),
            *(element("div", Markup(table.to_html()), class_="scroll") for table in (whole.to_table(), *pairs)),
        ),
        lead=f"Averages over the {found.n_instances:,} pixels of this image."
        + (
            ""
            if one_sided
            else " A source is high or low as it enters the integral: scaled and, if so marked, inverted."
        ),
    )


def _importance(found: DataIndices, one_sided: bool) -> Markup:
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
            *([] if one_sided else [element("td", f"{percent(up)} / {percent(down)}")]),
            element("td", shown(float(found.signed[k]))),
        ]
        rows.append(element("tr", *cells))
    head = ["Source", "Share of the fused confidence", *([] if one_sided else ["high / low"]), "mean"]
    sides = (
        element("i", class_="key up"),
        "where the source is high, ",
        element("i", class_="key down"),
        "where it is low. ",
    )
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
        element("p", *(() if one_sided else sides), "Mean: the mean contribution of the source to C.", class_="note"),
    )


def _interaction(found: DataIndices, one_sided: bool) -> list[Markup]:
    columns = (
        {"interaction": found.interaction_up}
        if one_sided
        else {
            "both high": found.interaction_up,
            "both low": found.interaction_down,
            "first high, second low": found.interaction_mixed,
            "second high, first low": found.interaction_mixed.T,
        }
    )
    m = len(found.source_names)
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    strength = {pair: max(abs(float(values[pair])) for values in columns.values()) for pair in pairs}
    pairs.sort(key=lambda pair: -strength[pair])
    if max(strength.values()) < NOTHING:
        return [element("p", "No two sources interact: each adds its own part.")]
    most = max(FAINT, *strength.values())
    rows = [_pair_row(found, pair, columns, most) for pair in pairs[:LAST]]
    head = element("thead", element("tr", *(element("th", title, scope="col") for title in ("Pair", *columns))))

    def table(part: list[Markup]) -> Markup:
        return element("div", element("table", head, element("tbody", *part), class_="bars"), class_="scroll")

    above = "above 0: together they count more for a target than separately; below 0: one replaces the other."
    mixed = "One high and one low, above 0: the low one dampens the high one."
    words = f"Both high, {above} Both low: the other way round. {mixed}"
    note = element("p", above[0].upper() + above[1:] if one_sided else words, class_="note")
    first = min(FIRST, sum(strength[pair] >= NOTHING for pair in pairs))
    count = f"{len(rows) - first:,} weaker pairs" + (f" of {len(pairs) - first:,}" if len(pairs) > LAST else "")
    rest = element("details", element("summary", count), table(rows[first:]))
    return [table(rows[:first]), rest if len(rows) > first else Markup(""), note]


def _pair_row(found: DataIndices, pair: tuple[int, int], columns: dict[str, NDArray[Any]], most: float) -> Markup:
    names = [found.source_names[k] for k in pair]
    cells = [element("th", " · ".join(names), scope="row")]
    for values in columns.values():
        value = float(values[pair])
        cells.append(element("td", signed_bar(min(value, 0.0) / most, max(value, 0.0) / most), shown(value, 3)))
    return element("tr", *cells)
