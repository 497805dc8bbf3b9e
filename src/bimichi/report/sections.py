"""The sections of the page, in their order. A new one is a file, and a line here."""

import platform
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._version import __version__
from bimichi.errors import InvalidInputError
from bimichi.evaluate.metrics import Scores, scores
from bimichi.explain import DataIndices, indices
from bimichi.explain.parts import parts_of
from bimichi.explain.results import percent
from bimichi.fit.choose import selection_of
from bimichi.fit.objectives import REGISTRY
from bimichi.plot.curves import roc_points
from bimichi.report.contents import view_of
from bimichi.report.inputs import Material
from bimichi.report.page import (
    MOST,
    Head,
    Markup,
    element,
    folded_table,
    gradient,
    joined,
    listed,
    section,
    shown,
    signed_bar,
    table,
)
from bimichi.rule import FusionRule

NAMED = 12
"""Sources that are named in the first sentence."""

LEAST_SQUARES = "squared distance of every pixel to its label"
"""What is minimised where every pixel has a label."""


def introduction(material: Material) -> str:
    """Say in one sentence what was fused, and by what."""
    measure = view_of(material).title(material)
    article = "a learned" if material.rule.training is not None else "an" if measure.startswith("a") else "a"
    m = len(material.names)
    count = "One source" if m == 1 else f"{m} sources"
    names = f" ({listed(material.names)})" if m <= NAMED else ""
    return f"{count}{names} fused by a Choquet integral over {article} {measure}."


def _training(rule: FusionRule) -> dict[str, str]:
    record = rule.training
    if record is None:
        return {"Training": "not learned here"}
    measure = "capacity" if rule.low == 0 else "bicapacity"
    known = {objective.name: objective.about for objective in REGISTRY if objective.measure == measure}
    words = (known | {"least squares": LEAST_SQUARES}).get(record.objective, "")
    rounds = f"{record.n_iter:,} round{'' if record.n_iter == 1 else 's'}"
    bound = "" if record.lower_bound is None else f" (lower bound {record.lower_bound:.6g})"
    rows = {
        "Method": record.method,
        "Objective": f"{record.objective}: {words}" if words else record.objective,
        "Solver": f"{record.solver}, {record.status} after {rounds}",
        "J": f"{record.objective_value:.6g}{bound}",
    }
    if record.proof:
        rows["Optimality"] = record.proof
    if rule.n_instances is not None:
        rows["Learned from"] = f"{rule.n_instances:,} instances"
    if "polarity" in record.parameters or rule.inverted:
        how = "learned" if record.parameters.get("polarity") == "learn" else "as given"
        rows["Polarity"] = f"{how}; inverted: {listed(rule.inverted or ['none'])}"
    found = selection_of(record)
    if found is not None:
        rows["Chosen by"] = "cross-validation over scenes. " + " ".join(
            filter(None, (found.sentence(), found.warning()))
        )
        if found.weak:
            rows["Weak sources"] = found.weakness()
    return rows


def _scale(rule: FusionRule) -> str:
    if rule.scale is not None:
        return f"{rule.scale}, learned in training"
    ends = {(float(c + rule.low / f), float(c + 1 / f)) for c, f in zip(rule.centre, rule.factor, strict=True)}
    given = " or ".join(f"[{low:g}, {high:g}]".replace("-", "−") for low, high in sorted(ends))
    enters = f"[{rule.low:g}, 1]".replace("-", "−")
    return f"none: sources lie in {given}" if given == enters else f"fixed: sources in {given} are mapped to {enters}"


def notices(material: Material) -> Markup:
    """Say what the page does not show as it is."""
    notes, sampling = [], material.sampling
    if sampling.shrunk:
        (height, width), (full_height, full_width) = sampling.shape, sampling.original
        notes.append(
            f"The maps are thinned: they show {width:,} × {height:,} evenly spaced pixels of {full_width:,} × "
            f"{full_height:,}. Sentences, bars and scores are about all pixels."
        )
    beyond = [name for k, name in enumerate(material.names) if material.rule.scale and _outside(material, k)]
    if beyond:
        notes.append(
            f"Values of {listed(beyond)} reach beyond the range of the training data; "
            "they are clipped to it before the integral."
        )
    return joined(*(element("p", note, class_="notice") for note in notes))


def _outside(material: Material, k: int) -> bool:
    """Whether values of a source lie outside its learned range."""
    rule, plane = material.rule, material.planes[k]
    low, high = ((end(plane) - rule.centre[k]) * rule.factor[k] for end in (np.nanmin, np.nanmax))
    return bool(low < rule.low - 1e-6 or high > 1 + 1e-6)


def opening(material: Material) -> Markup:
    """Show the sentences, and beside them what they are about."""
    sentences = element("ul", *(element("li", text) for text in material.summary.sentences), class_="sentences")
    height, width = material.integral.shape
    missing = int(np.isnan(material.integral).sum())
    size = f"{width:,} × {height:,} pixels" + (f", {missing:,} without data" if missing else "")
    rows = _training(material.rule) | {"Scale": _scale(material.rule), "Image": size}
    if material.labels:
        known = [label for label in material.labels if label is not None]
        rows["Bags of the image"] = f"{len(known):,} labelled, {sum(known):,} of them positive"
    rows |= material.notes
    facts = [element("div", element("dt", name), element("dd", text)) for name, text in rows.items()]
    training = section("training", "How it was trained", element("dl", *facts, class_="facts"))
    return element("div", section("summary", "In short", sentences), training, class_="opening")


def fine_print(material: Material) -> Markup:
    """List parameters and versions."""
    record = material.rule.training
    given = {} if record is None else record.parameters
    rows = [element("tr", element("th", name, scope="row"), element("td", repr(given[name]))) for name in given]
    parameters = element("div", element("table", element("tbody", *rows), class_="plain"), class_="scroll")
    versions = f"bimichi {__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    note = element("p", versions, class_="versions")
    return section("parameters", "Parameters and versions", parameters if rows else "", note)


CORNERS = 400
SIDE = 300.0
LEFT, TOP = 44.0, 12.0
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Curve = list[tuple[float, float]]


def score_maps(material: Material) -> list[tuple[str, Scores, Curve]]:
    """Score the fused map first, then each source as it enters the integral; pixels without data do not count."""
    if material.truth is None:
        return []
    skipped = np.isnan(material.integral)
    if material.ignore is not None:
        skipped |= material.ignore
    truth = material.truth[~skipped]
    if not truth.any() or truth.all():
        raise InvalidInputError(
            f"truth has one class only: {int(truth.sum()):,} of the {truth.size:,} pixels that count are targets. "
            "Scores need targets and others; leave truth out.",
            code="truth-one-class",
            argument="truth",
        )
    limits = (material.rule.low, 1.0)
    maps = [("fused", material.fused, material.rule.output_range)]
    maps += [(name, plane, limits) for name, plane in zip(material.names, material.entered, strict=True)]
    found: list[tuple[str, Scores, Curve]] = []
    for name, plane, limits in maps:
        false_rate, true_rate, _ = roc_points(truth, plane[~skipped], CORNERS)
        curve = list(zip(false_rate.tolist(), true_rate.tolist(), strict=True))
        found.append((name, scores(truth, plane[~skipped], limits), curve))
    return found


def accuracy_section(material: Material) -> Markup | None:
    """Show the table of scores beside the curves."""
    scored = score_maps(material)
    if not scored:
        return None
    first = scored[0][1]
    share = percent(first.share) if first.share >= 0.01 else f"{100 * first.share:.2g} %"
    best = f"F1 is the best over all thresholds; the fused map reaches it at {shown(first.threshold, 3)}."
    note = element("p", f"{first.n:,} pixels are scored; {share} of them are targets. {best}", class_="note")
    caption = element("figcaption", "ROC: true positive rate against false positive rate")
    body = element(
        "div", element("div", _accuracy_table(scored), note), element("figure", _plot(scored), caption), class_="pair"
    )
    lead = "Scores of the fused map, and of each source alone as it enters the integral."
    return section("scores", "Compared with the truth", body, lead=lead)


def _accuracy_table(scored: list[tuple[str, Scores, Curve]]) -> Markup:
    rows = []
    for k, (name, one, _) in enumerate(scored):
        line = element("svg", element("line", x1=1, x2=25, y1=5, y2=5), viewBox="0 0 26 10", class_=_line(k))
        numbers = (one.auc, one.average_precision, one.best_f1, one.rmse, one.calibration_error)
        cells = [element("th", line, name, scope="row"), *(element("td", shown(number, 3)) for number in numbers)]
        rows.append(element("tr", *cells, class_="first" if k == 0 else None))
    return table(["Map", "AUC", "AP", "F1", "RMSE", "ECE"], rows, "plain numbers")


def _line(k: int) -> str:
    return "curve fused" if k == 0 else f"curve c{(k - 1) % 6} d{(k - 1) // 6 % 3}"


def _plot(scored: list[tuple[str, Scores, Curve]]) -> Markup:
    def place(x: float, y: float) -> str:
        return f"{LEFT + SIDE * x:.1f},{TOP + SIDE * (1 - y):.1f}"

    grid = []
    for tick in TICKS:
        across, down = LEFT + SIDE * tick, TOP + SIDE * (1 - tick)
        grid += [
            element("line", x1=across, x2=across, y1=TOP, y2=TOP + SIDE, class_="grid"),
            element("line", x1=LEFT, x2=LEFT + SIDE, y1=down, y2=down, class_="grid"),
            element("text", f"{tick:g}", x=across, y=TOP + SIDE + 18, text_anchor="middle"),
            element("text", f"{tick:g}", x=LEFT - 8, y=down + 4, text_anchor="end"),
        ]
    lines = [element("polyline", points=f"{place(0, 0)} {place(1, 1)}", class_="chance")]
    for k, (_, _, curve) in reversed(list(enumerate(scored))):
        lines.append(element("polyline", points=" ".join(place(x, y) for x, y in curve), class_=_line(k)))
    label = f"ROC curves; areas under them: {', '.join(f'{name} {one.auc:.3f}' for name, one, _ in scored)}"
    box = f"0 0 {LEFT + SIDE + 12:g} {TOP + SIDE + 30:g}"
    return element("svg", *grid, *lines, viewBox=box, class_="roc", role="img", aria_label=label)


def comparison_section(material: Material) -> Markup | None:
    """Show the table of a comparison with other methods, if there is one."""
    if material.comparison is None:
        return None
    methods = element("div", Markup(material.comparison.table().to_html()), class_="scroll")
    lead = "Of the methods built on a measure, the best is bold, the second underlined."
    return section("comparison", "Compared with other methods", methods, lead=lead)


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


SECTIONS: list[Callable[[Material], Markup | None]] = [
    opening,
    explorer_section,
    strengths_section,
    accuracy_section,
    comparison_section,
    fine_print,
]
"""Each is given all that the report is made from, and returns its markup, or None if it has nothing to show."""
