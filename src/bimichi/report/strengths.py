"""Which source matters, and which two together: bars."""

from itertools import combinations

import numpy as np

from bimichi.explain import DataIndices, indices
from bimichi.explain.results import percent
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import MOST, Head, folded_table, section, shown, signed_bar, table

TABLES = 12
"""Sources up to which the pairs of the whole measure are listed."""

NOTHING = 0.0005
"""Interactions below it are 0.000."""

FAINT = 0.02
"""Interactions below it have short bars, even if none is stronger."""

WHOLE = "The same averaged over the whole measure, whether pixels use it or not"
SIDES = " A source is high or low as it enters the integral: scaled and, if so marked, inverted."


def strengths_section(material: Material) -> Markup:
    """Show importances and interactions, on this image and over the whole measure."""
    found, one_sided = material.averages, material.rule.low == 0
    parts = [element("div", element("h3", "Importance"), _importance(found, one_sided), class_="card")]
    if len(material.names) > 1:
        parts.append(element("div", element("h3", "Interaction"), *_interaction(found, one_sided), class_="card"))
    whole = indices(material.rule)
    tables = [Markup(whole.to_table().to_html())]
    if 1 < len(material.names) <= TABLES:
        tables.append(Markup(whole.interaction_table().to_html()))
    return section(
        "strengths",
        "What each source is worth",
        element("div", *parts, class_="pair"),
        element("details", element("summary", WHOLE), *(element("div", one, class_="scroll") for one in tables)),
        lead=f"Averages over the {found.n_instances:,} pixels of this image." + ("" if one_sided else SIDES),
    )


def _importance(found: DataIndices, one_sided: bool) -> Markup:
    rows = []
    for k in np.argsort(-found.share, kind="stable").tolist():
        sides = {"up": float(found.share_up[k]), "down": float(found.share_down[k])}
        bars = [element("i", class_=side, style=f"width:{100 * share:.2f}%") for side, share in sides.items()]
        bar = element("span", *bars, class_="bar", aria_hidden="true")
        cells = [
            element("th", found.source_names[k], scope="row"),
            element("td", bar, class_="wide"),
            element("td", percent(float(found.share[k])), class_="strong"),
            *([] if one_sided else [element("td", " / ".join(map(percent, sides.values())))]),
            element("td", shown(float(found.signed[k]))),
        ]
        rows.append(element("tr", *cells))
    head: Head = ["Source", ("Share of the fused confidence", 2), *([] if one_sided else ["high / low"]), "mean"]
    key = [element("i", class_="key up"), "where the source is high, "]
    key += [element("i", class_="key down"), "where it is low. "]
    note = element("p", *([] if one_sided else key), "Mean: the mean contribution of the source to C.", class_="note")
    return joined(table(head, rows, "bars"), note)


def _interaction(found: DataIndices, one_sided: bool) -> list[Markup]:
    columns = found.interactions(one_sided, "high", "low")
    pairs = list(combinations(range(len(found.source_names)), 2))
    strength = {pair: max(abs(float(values[pair])) for values in columns.values()) for pair in pairs}
    pairs.sort(key=lambda pair: -strength[pair])
    if max(strength.values()) < NOTHING:
        return [element("p", "No two sources interact: each adds its own part.")]
    most = max(FAINT, *strength.values())
    rows = []
    for pair in pairs[:MOST]:
        cells = [element("th", " · ".join(found.source_names[k] for k in pair), scope="row")]
        for value in (float(values[pair]) for values in columns.values()):
            cells.append(element("td", signed_bar(value / most), shown(value, 3)))
        rows.append(element("tr", *cells))
    above = "above 0: together they count more for a target than separately; below 0: one replaces the other."
    mixed = "One high and one low, above 0: the low one dampens the high one."
    words = f"Both high, {above} Both low: the other way round. {mixed}"
    note = element("p", above[0].upper() + above[1:] if one_sided else words, class_="note")
    strong = sum(value >= NOTHING for value in strength.values())
    return [folded_table(["Pair", *columns], rows, strong, len(pairs), "bars", None), note]
