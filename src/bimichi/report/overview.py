"""The parts of the page that are words: what was fused and learned, the summary, parameters and versions."""

import platform

import numpy as np

import bimichi
from bimichi.explain import Summary
from bimichi.report.embedding import Sampling
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element, joined
from bimichi.report.wording import listed, section

__all__ = ["fine_print", "introduction", "notices", "opening"]

OBJECTIVES = {
    "bipolar": "targets to +1, the rest to −1; one pixel decides a bag",
    "magnitude": "targets to +1 or −1, the rest to 0; one pixel decides a bag",
    "mean": "targets to +1, the rest to −1; every pixel of a bag counts",
}


def introduction(material: Material) -> str:
    """Say in one sentence what this is."""
    m = len(material.names)
    count = "One source" if m == 1 else f"{m} sources"
    return f"{count} ({listed(material.names)}) fused by a Choquet integral over a learned bi-capacity."


def _facts(material: Material) -> Markup:
    """List what was fused, and how the model was trained."""
    rule, record = material.rule, material.record
    name = record.objective
    rounds = f"{record.n_iter:,} round{'' if record.n_iter == 1 else 's'}"
    scale = "none: sources lie in [−1, 1]" if rule.scale is None else f"{rule.scale}, learned in training"
    value = f"{record.objective_value:.6g}"
    if record.lower_bound is not None:
        value += f" (lower bound {record.lower_bound:.6g})"
    rows = {
        "Objective": f"{name}: {OBJECTIVES[name]}" if name in OBJECTIVES else name,
        "Solver": f"{record.solver}, {record.status} after {rounds}",
        "J": value,
        "Learned from": f"{rule.n_instances:,} instances",
        "Polarity": f"{record.parameters.get('polarity', 'given')}; inverted: {listed(rule.inverted or ['none'])}",
        "Scale": scale,
        "Image": _size(material),
    }
    if material.labels:
        known = [label for label in material.labels if label is not None]
        rows["Bags of the image"] = f"{len(known):,} labelled, {sum(known):,} of them positive"
    rows |= material.notes
    return element(
        "dl", *(element("div", element("dt", key), element("dd", rows[key])) for key in rows), class_="facts"
    )


def _size(material: Material) -> str:
    height, width = material.integral.shape
    missing = int(np.isnan(material.integral).sum())
    return f"{width:,} × {height:,} pixels" + (f", {missing:,} without data" if missing else "")


def notices(material: Material, sampling: Sampling) -> Markup:
    """Say what the page does not show as it is."""
    notes = []
    if sampling.shrunk:
        (height, width), (full_height, full_width) = sampling.shape, sampling.original
        notes.append(
            f"The maps are thinned: {width:,} × {height:,} evenly spaced pixels stand for {full_width:,} × "
            f"{full_height:,}. Sentences, bars and scores are about all pixels."
        )
    beyond = [
        name for k, name in enumerate(material.names) if material.rule.scale is not None and _outside(material, k)
    ]
    if beyond:
        notes.append(
            f"Values of {listed(beyond)} reach beyond the range that the model saw in training; "
            "they enter the integral as its ends."
        )
    return joined(*(element("p", note, class_="notice") for note in notes))


def _outside(material: Material, k: int) -> bool:
    scale, plane = material.rule, material.planes[k]
    low, high = ((end(plane) - scale.centre[k]) * scale.factor[k] for end in (np.nanmin, np.nanmax))
    return bool(low < -1 - 1e-6 or high > 1 + 1e-6)


def opening(material: Material, summary: Summary) -> Markup:
    """Show the sentences, and beside them what they are about."""
    sentences = element("ul", *(element("li", text) for text in summary.sentences), class_="sentences")
    return element(
        "div",
        section("summary", "In short", sentences),
        section("training", "How it was trained", _facts(material)),
        class_="opening",
    )


def fine_print(material: Material) -> Markup:
    """List parameters and versions."""
    parameters = material.record.parameters
    rows = [element("tr", element("th", key, scope="row"), element("td", repr(parameters[key]))) for key in parameters]
    versions = {"bimichi": bimichi.__version__, "numpy": np.__version__, "Python": platform.python_version()}
    return section(
        "parameters",
        "Parameters and versions",
        element("div", element("table", element("tbody", *rows), class_="plain"), class_="scroll"),
        element("p", ", ".join(f"{key} {versions[key]}" for key in versions), class_="versions"),
    )
