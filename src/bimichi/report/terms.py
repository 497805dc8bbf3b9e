"""An additive bi-capacity: a chart of the sources' weights above and below zero, and its pairs by strength."""

from typing import Any

import numpy as np

from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.report.inputs import Material
from bimichi.report.page import (
    MOST,
    Head,
    Markup,
    element,
    embed_numbers,
    folded_table,
    listed,
    section,
    shown,
    signed_bar,
    table,
)

FAINT = 0.0005
"""Pairs below it are 0.000."""

SIGNS = (
    "used by the chosen pixel. Both for, above 0: together they count more for a target than separately; below 0: "
    "one replaces the other. Both against: the other way round. With a term of 0 the two only add up."
)

BESIDE = 8
"""Sources up to which the weights fit beside the maps."""


def title(material: Material) -> str:
    """Return the name of the kind of measure."""
    return "additive bi-capacity" if material.rule.measure.order == 1 else "2-additive bi-capacity"  # type: ignore[attr-defined]


def contents(material: Material) -> dict[str, Any]:
    """Return the terms."""
    return {"values": embed_numbers(material.rule.measure.values)}


def panel(material: Material) -> Markup:
    """Show the terms; the script finds them by their number."""
    measure = material.rule.measure
    assert isinstance(measure, AdditiveBiCapacity)  # the only measure of terms
    use = material.training_use
    lead = "Each source adds its weight times the size of its value"
    lead += "" if material.rule.low == 0 else "; it has one weight above zero and one below"
    lead += "." if measure.order == 1 else ". Each pair of sources adds its term times the smaller of the two sizes."
    if use is not None:
        used = "all" if use.n_used == use.n_free else f"{use.n_used:,} of"
        lead += f" Training used {used} {use.n_free:,} terms. Intervals of open elements are not applicable."
    parts = [element("div", _weights(material, measure))]
    if measure.order == 2:
        parts.append(element("div", *_pairs(material, measure)))
    wide = len(material.names) > BESIDE
    body = element("div", *parts, class_="pair" if wide else None)
    return section("measure", "The weights", body, lead=lead, class_="wide" if wide else None)


def _weights(material: Material, measure: AdditiveBiCapacity) -> Markup:
    m, values = measure.n_sources, measure.values
    one_sided = material.rule.low == 0
    most = float(np.abs(values[: m if one_sided else 2 * m]).max())
    rows = []
    for k, name in enumerate(material.names):
        up, down = float(values[k]), float(values[m + k])
        below = element("td", shown(down, 3), data_code=m + k, title=_title(material, m + k))
        above = element("td", shown(up, 3), data_code=k, title=_title(material, k))
        if one_sided:
            bar = element("i", class_="up", style=f"width:{100 * up / most:.2f}%")
            cells = [element("td", element("span", bar, class_="bar", aria_hidden="true"), class_="wide"), above]
        else:
            cells = [below, element("td", signed_bar(down / most, up / most), class_="wide"), above]
        rows.append(element("tr", element("th", name, scope="row"), *cells))
    head: Head = ["Source", ("Weight", 2)] if one_sided else ["Source", "below 0", "", "above 0"]
    return table(head, rows, "bars weights", "Weights of the sources")


def _pairs(material: Material, measure: AdditiveBiCapacity) -> list[Markup]:
    m = measure.n_sources
    numbers = np.arange(2 * m, measure.n_parts)
    if material.rule.low == 0:  # no source is below zero
        numbers = numbers[[not measure.sets(int(k))[1] for k in numbers]]
    strength = np.abs(measure.values[numbers])
    order = numbers[np.argsort(-strength, kind="stable")][: int((strength >= FAINT).sum())]
    if not len(order):
        return [element("p", "No pair has a term of its own: all are 0.", class_="note")] if m > 1 else []
    most = float(np.abs(measure.values[order[0]]))
    rows = []
    for k in order[:MOST].tolist():
        value = float(measure.values[k])
        up, down = (listed(part) or "–" for part in measure.sets(k))
        cells = [
            element("th", up, scope="row"),
            element("td", down, class_="text"),
            element("td", signed_bar(value / most), class_="wide"),
            element("td", shown(value, 3)),
        ]
        rows.append(element("tr", *cells, data_code=k, title=_title(material, k)))
    head: Head = ["For (A)", "Against (B)", ("Term of the pair", 2)]
    note = element("p", element("i", class_="key ring"), SIGNS, class_="note legend")
    pairs = folded_table(head, rows, len(order), len(order), "bars elements", "Pairs by strength")
    return [element("h3", "Pairs by strength"), pairs, note]


def _title(material: Material, k: int) -> str:
    up, down = (listed(part) or "none" for part in material.rule.measure.sets(k))
    use = material.training_use
    count = "" if use is None else f" {int(use.counts[k]):,} training instances give it weight."
    return f"For: {up}. Against: {down}. {shown(float(material.rule.measure.values[k]), 3)}.{count}"
