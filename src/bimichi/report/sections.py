"""The sections of the page, in their order.

A new one is a template, a function that fills it, and a line in `SECTIONS`.
"""

import platform
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._html import decimal, listed, render
from bimichi._version import __version__
from bimichi.errors import InvalidInputError
from bimichi.evaluate.metrics import Scores, scores
from bimichi.explain import indices
from bimichi.explain.parts import parts_of, percent
from bimichi.fit.choose import selection_of
from bimichi.fit.objectives import REGISTRY
from bimichi.plot.charts import roc_points
from bimichi.report.inputs import Material
from bimichi.report.measure import FAINT, MOST_PAIRS, measure_panel, measure_title
from bimichi.rule import FusionRule

if TYPE_CHECKING:
    from markupsafe import Markup

NAMED = 12
"""Sources that are named in the first sentence."""

LEAST_SQUARES = "squared distance of every pixel to its label"
"""The objective where every pixel has a label."""


def introduction(material: Material) -> str:
    """Say in one sentence what was fused, and by what."""
    measure = measure_title(material)
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
    meanings = {objective.name: objective.about for objective in REGISTRY.values() if objective.measure == measure}
    words = (meanings | {"least squares": LEAST_SQUARES}).get(record.objective, "")
    rounds = f"{record.n_iter:,} round{'' if record.n_iter == 1 else 's'}"
    bound = "" if record.lower_bound is None else f" (lower bound {record.lower_bound:.6g})"
    rows = {
        "Method": record.method,
        "Objective": f"{record.objective}: {words}" if words else record.objective,
        "Solver": f"{record.solver}, {record.ending} after {rounds}",
        "J": f"{record.objective_value:.6g}{bound}",
    }
    if record.proof:
        rows["Optimality"] = record.proof
    if rule.n_instances is not None:
        rows["Learned from"] = f"{rule.n_instances:,} instances"
    if "polarity" in record.parameters or rule.inverted:
        how = "learned" if record.parameters.get("polarity") == "learn" else "as given"
        rows["Polarity"] = f"{how}; inverted: {listed(rule.inverted or ['none'])}"
    selection = selection_of(record)
    if selection is not None:
        rows["Chosen by"] = "cross-validation over scenes. " + " ".join(
            filter(None, (selection.sentence(), selection.warning()))
        )
        if selection.weak:
            rows["Weak sources"] = selection.weakness()
    return rows


def _scale(rule: FusionRule) -> str:
    if rule.scale is not None:
        return f"{rule.scale}, learned in training"
    ends = {(float(c + rule.low / f), float(c + 1 / f)) for c, f in zip(rule.centre, rule.factor, strict=True)}
    ranges = " or ".join(f"[{low:g}, {high:g}]".replace("-", "−") for low, high in sorted(ends))
    enters = f"[{rule.low:g}, 1]".replace("-", "−")
    return (
        f"none: sources lie in {ranges}" if ranges == enters else f"fixed: sources in {ranges} are mapped to {enters}"
    )


def notices(material: Material) -> list[str]:
    """Say what the page does not show as it is."""
    notes: list[str] = []
    sampling = material.sampling
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
    return notes


def _outside(material: Material, k: int) -> bool:
    """Return whether values of a source lie outside its learned range."""
    rule, plane = material.rule, material.planes[k]
    low, high = ((end(plane) - rule.centre[k]) * rule.factor[k] for end in (np.nanmin, np.nanmax))
    return bool(low < rule.low - 1e-6 or high > 1 + 1e-6)


def opening(material: Material) -> "Markup":
    """Show the sentences, and beside them what they are about."""
    height, width = material.integral.shape
    missing = int(np.isnan(material.integral).sum())
    size = f"{width:,} × {height:,} pixels" + (f", {missing:,} without data" if missing else "")
    facts = _training(material.rule) | {"Scale": _scale(material.rule), "Image": size}
    if material.labels:
        labels = [label for label in material.labels if label is not None]
        facts["Bags of the image"] = f"{len(labels):,} labelled, {sum(labels):,} of them positive"
    return render("opening.html", sentences=material.summary.sentences, facts=facts | dict(material.notes))


def parameters_section(material: Material) -> "Markup":
    """List parameters and versions."""
    record = material.rule.training
    parameters = {} if record is None else {name: repr(value) for name, value in record.parameters.items()}
    versions = f"bimichi {__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    return render("parameters.html", parameters=parameters, versions=versions)


CORNERS = 400

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
    scored: list[tuple[str, Scores, Curve]] = []
    for name, plane, limits in maps:
        false_rate, true_rate, _ = roc_points(truth, plane[~skipped], CORNERS)
        curve = list(zip(false_rate.tolist(), true_rate.tolist(), strict=True))
        scored.append((name, scores(truth, plane[~skipped], limits), curve))
    return scored


def scores_section(material: Material) -> "Markup | None":
    """Show the table of scores beside the curves."""
    scored = score_maps(material)
    if not scored:
        return None
    fused = scored[0][1]
    share = percent(fused.share) if fused.share >= 0.01 else f"{100 * fused.share:.2g} %"
    best = f"F1 is the best over all thresholds; the fused map reaches it at {decimal(fused.threshold, 3)}."
    maps = [
        {"number": k, "name": name, "scores": numbers, "curve": curve}
        for k, (name, numbers, curve) in enumerate(scored)
    ]
    return render("scores.html", maps=maps, note=f"{fused.n:,} pixels are scored; {share} of them are targets. {best}")


def comparison_section(material: Material) -> "Markup | None":
    """Show the table of a comparison with other methods, if there is one."""
    if material.comparison is None:
        return None
    return render("comparison.html", methods=material.comparison.table())


def maps_section(material: Material) -> "Markup":
    """Show the maps, what explains a pixel, and the measure: beside them, or below if it is wide."""
    rule, (height, width), (low, high) = material.rule, material.integral.shape, material.rule.output_range
    maps = [
        _map(f"source-{k}", name, material.planes[k]) | {"inverted": name in rule.inverted}
        for k, name in enumerate(material.names)
    ]
    if material.truth is not None:
        maps.append(_map("truth", "Truth", material.truth.astype(np.float64)))
    steps = [name.capitalize() if len(name) > 1 and name.isalpha() else name for name in parts_of(rule.measure).columns]
    if rule.link is not None:
        steps[3] = "Log-odds"
    return render(
        "maps.html",
        height=height,
        width=width,
        low=low,
        high=high,
        ends=("no target", "target") if low == 0 else ("against a target", "for a target"),
        gaps=np.isnan(material.integral).any(),
        fused=_map("fused", "Fused" + (", |C|" if material.absolute else ""), material.fused),
        maps=maps,
        overlays=_overlays(material),
        names=material.names,
        link=rule.link,
        changed=bool(rule.centre.any() or (rule.factor != 1).any() or (rule.polarity < 0).any()),
        steps=steps,
        panel=measure_panel(material),
    )


def _map(key: str, title: str, plane: NDArray[Any]) -> dict[str, Any]:
    height, width = plane.shape
    low, mean, high = (float(end(plane)) for end in (np.nanmin, np.nanmean, np.nanmax))
    missing = int(np.isnan(plane).sum())
    alt = f"{title}: {width} by {height} pixels, from {low:.3g} to {high:.3g}, mean {mean:.3g}"
    alt += f"; {missing:,} without data." if missing else "."
    return {"key": key, "title": title, "alt": alt, "inverted": False}


def _overlays(material: Material) -> list[tuple[str, str, bool]]:
    """Return key and name of what can be drawn over the maps, and whether it is at first."""
    boxes = len(material.boxes) > 0
    overlays = [("boxes", "Boxes", True)] if boxes else []
    overlays += [("truth", "Truth", not boxes)] if material.truth is not None else []
    if material.detections is not None:
        overlays.append(("detections", f"{len(material.detections)} found", not boxes))
    return overlays + ([("bags", "Bags", False)] if material.segments is not None else [])


TABLES = 12
"""Sources up to which the pairs of the whole measure are listed."""

SHORT = 0.02
"""Interactions below it have short bars, even if none is stronger."""

SIDES = " A source is high or low as it enters the integral: scaled and, if so marked, inverted."


def strengths_section(material: Material) -> "Markup":
    """Show importances and interactions, on this image and over the whole measure."""
    averages, whole, one_sided = material.averages, indices(material.rule), material.rule.low == 0
    names, m = averages.source_names, len(material.names)
    sources = [
        {"name": names[k], "share": averages.share[k], "signed": float(averages.signed[k])}
        | {"up": averages.share_up[k], "down": averages.share_down[k]}
        for k in np.argsort(-averages.share, kind="stable").tolist()
    ]
    columns = averages.interactions(one_sided, "high", "low")
    pairs: list[dict[str, Any]] = []
    for i, j in combinations(range(m), 2):
        numbers = [float(values[i, j]) for values in columns.values()]
        pairs.append({"names": (names[i], names[j]), "numbers": numbers, "strength": max(map(abs, numbers))})
    pairs.sort(key=lambda pair: -pair["strength"])
    return render(
        "strengths.html",
        lead=f"Averages over the {averages.n_instances:,} pixels of this image." + ("" if one_sided else SIDES),
        one_sided=one_sided,
        sources=sources,
        columns=list(columns),
        pairs=pairs,
        most=MOST_PAIRS,
        n_strong=sum(pair["strength"] >= FAINT for pair in pairs),
        longest=max([SHORT, *(pair["strength"] for pair in pairs[:1])]),
        tables=[whole.to_table(), *([whole.interaction_table()] if 1 < m <= TABLES else [])],
    )


SECTIONS: list[Callable[[Material], "Markup | None"]] = [
    opening,
    maps_section,
    strengths_section,
    scores_section,
    comparison_section,
    parameters_section,
]
"""Each takes all that the report is made from, and returns its markup, or None if it has nothing to show."""
