"""The parts of the page that are words: what was fused and learned, the summary, parameters and versions."""

import platform

import numpy as np

from bimichi._version import __version__
from bimichi.learning.objectives import REGISTRY
from bimichi.learning.selection import selection_of
from bimichi.report.contents import view_of
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import listed, section
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
