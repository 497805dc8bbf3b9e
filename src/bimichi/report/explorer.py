"""The maps, and the panel that explains the chosen pixel; the script draws the one and fills in the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.explain.parts import parts_of
from bimichi.report.colours import gradient
from bimichi.report.contents import view_of
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import section, shown
from bimichi.rule import FusionRule

MAP_HEIGHT = 32.0
"""Of the fused map at most, in rem, so that what explains a pixel is on the same screen."""

KEYS = (
    "Arrow keys move the pixel, with Shift by ten; + and − zoom, 0 shows the whole image; Enter or a click holds the "
    "pixel. Drag to move the view; Ctrl and the wheel zoom."
)


def explorer_section(material: Material) -> Markup:
    """Return the section of the maps; the measure is beside them, or below if it is wide."""
    height, width = material.integral.shape
    fused = _map("fused", "Fused" + (", |C|" if material.absolute else ""), material.fused, main=True)
    small = [
        _map(f"source-{k}", name, material.planes[k], inverted=name in material.rule.inverted)
        for k, name in enumerate(material.names)
    ]
    if material.truth is not None:
        small.append(_map("truth", "Truth", material.truth.astype(np.float64)))
    stage = element(
        "div",
        element("div", fused, _scale_bar(material), _tools(material)),
        element("div", *small, class_="maps"),
        class_="stage",
        style=f"--wide:{width};--high:{height};--limit:{MAP_HEIGHT * width / height:.3f}rem",
    )
    return section(
        "maps",
        "Ask any pixel",
        element("p", "This page needs JavaScript to show its maps.", class_="notice", id="problem"),
        element("div", stage, _readout(material), view_of(material).panel(material), class_="explorer"),
        lead="Move over a map or tap it, or use the arrow keys on the fused map, to see how that pixel was decided.",
    )


def _map(key: str, title: str, plane: NDArray[Any], inverted: bool = False, main: bool = False) -> Markup:
    height, width = plane.shape
    low, mean, high = (float(end(plane)) for end in (np.nanmin, np.nanmean, np.nanmax))
    missing = int(np.isnan(plane).sum())
    alt = f"{title}: {width} by {height} pixels, from {low:.3g} to {high:.3g}, mean {mean:.3g}"
    alt += f"; {missing:,} without data." if missing else "."
    focus: dict[str, Any] = {"role": "img"}
    if main:
        focus = {"tabindex": 0, "role": "application", "aria_roledescription": "map", "aria_describedby": "keys"}
    badge = element("span", "inverted", class_="badge") if inverted else ""
    layers = (element("canvas", aria_hidden="true"), element("div", class_="cursor", aria_hidden="true"))
    view = element("div", *layers, class_="view", data_map=key, aria_label=alt, **focus)
    caption = element("figcaption", element("span", title, class_="name"), badge)
    return element("figure", caption, view, class_="map main" if main else "map")


def _scale_bar(material: Material) -> Markup:
    low, high = material.rule.output_range
    ends = ("no target", "target") if low == 0 else ("against a target", "for a target")
    ticks = [tick for tick in (-1.0, -0.5, 0.0, 0.5, 1.0) if low <= tick <= high]
    label = f"Colour scale from {low:g}, {ends[0]}, to {high:g}, {ends[1]}"
    mark = element("i", id="mark", aria_hidden="true")
    gap = element("span", element("i", class_="key gap"), "no data") if np.isnan(material.integral).any() else ""
    words = (element("span", ends[0]), gap, element("span", ends[1]))
    return element(
        "div",
        element("div", mark, class_="ramp", style=f"background:{gradient(low, high)}", role="img", aria_label=label),
        element("div", *(element("span", shown(tick, 1)) for tick in ticks), class_="ticks", aria_hidden="true"),
        element("div", *words, class_="ends", aria_hidden="true"),
        class_="scale",
    )


def _tools(material: Material) -> Markup:
    def button(name: str, text: str, label: str) -> Markup:
        return element("button", text, type="button", id=name, aria_label=label, title=label)

    def toggle(name: str, text: str, on: bool) -> Markup:
        key = element("i", class_=f"key line {name}", aria_hidden="true")
        return element("button", key, text, type="button", data_overlay=name, aria_pressed=str(on).lower())

    boxes = len(material.boxes) > 0
    overlays = [toggle("boxes", "Boxes", True)] if boxes else []
    overlays += [toggle("truth", "Truth", not boxes)] if material.truth is not None else []
    if material.detections is not None:
        overlays.append(toggle("detections", f"{len(material.detections)} found", not boxes))
    overlays += [toggle("bags", "Bags", False)] if material.segments is not None else []
    zoom = [button("zoom-out", "−", "Zoom out"), button("zoom-in", "+", "Zoom in")]
    return element(
        "div",
        element("div", *zoom, button("zoom-reset", "Whole image", "Show the whole image"), class_="group"),
        element("div", *overlays, class_="group") if overlays else "",
        element("p", KEYS, class_="note", id="keys"),
        class_="tools",
    )


def _readout(material: Material) -> Markup:
    rule = material.rule
    changed = bool(rule.centre.any() or (rule.factor != 1).any() or (rule.polarity < 0).any())
    head = ["Source", "Value", *(["Enters as"] if changed else []), "Contribution"]
    rows = []
    for k, name in enumerate(material.names):
        cells = [element("th", name, scope="row"), element("td", class_="given")]
        cells += [element("td", class_="enters")] if changed else []
        bar = element("span", element("i"), class_="signed", aria_hidden="true")
        cells += [element("td", bar, element("span", class_="number"), class_="part")]
        rows.append(element("tr", *cells, data_source=k))
    of_odds = " to the log-odds" if rule.link is not None else ""
    sources = _table("sources", f"Sources and what they contribute{of_odds}", head, rows, len(head), rule)
    columns = parts_of(rule.measure).columns
    titles = [name.capitalize() if len(name) > 1 and name.isalpha() else name for name in columns]
    titles[3] = "Log-odds" if rule.link is not None else titles[3]
    what = "integral" if rule.link is None else "log-odds"
    steps = _table("chain", f"The {what}, step by step", titles, [], 4, rule)
    release = element("button", "Release", type="button", id="release", hidden=True)
    value = element("p", element("output", id="fused-value"), element("span", id="fused-note"))
    chosen = element("div", element("p", element("span", id="place"), release), value, class_="chosen")
    live = element("p", class_="unseen", id="announcement", aria_live="polite")
    return element("aside", chosen, sources, steps, live, class_="readout card", aria_label="The chosen pixel")


def _table(key: str, caption: str, head: list[str], rows: list[Markup], span: int, rule: FusionRule) -> Markup:
    name = "C" if rule.link is None else "log-odds"
    total = element("tr", element("th", name, scope="row", colspan=span - 1), element("td", class_="number total"))
    if rule.link is not None:
        offset = element("td", shown(rule.link.offset, 3), class_="number")
        total = joined(element("tr", element("th", "offset", scope="row", colspan=span - 1), offset), total)
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", title, scope="col") for title in head))),
        element("tbody", joined(*rows)),
        element("tfoot", total),
        id=key,
    )
