"""What the page's script works with, as one JSON document."""

from types import ModuleType
from typing import Any

from bimichi.report import elements, terms
from bimichi.report.inputs import Material
from bimichi.report.page import MISSING, SCALE, embed_indices, embed_plane, learned_range

VIEWS = {"elements": elements, "terms": terms}
"""How the page shows a measure; this is the one place that knows the two kinds apart."""


def view_of(material: Material) -> ModuleType:
    """Return a module with the `title` of the measure, its `panel`, and its `contents` in the data of the page."""
    return VIEWS[material.rule.measure.parts]


def rule_contents(material: Material) -> dict[str, Any]:
    """Return the measure, and what is done before and after its integral."""
    rule = material.rule
    return {
        "names": list(material.names),
        "absolute": material.absolute,
        "link": None if rule.link is None else {"slope": rule.link.slope, "offset": rule.link.offset},
        "low": rule.low,
        "outputLow": rule.output_range[0],
        "centre": rule.centre.tolist(),
        "factor": rule.factor.tolist(),
        "polarity": rule.polarity.tolist(),
        "measure": {"parts": rule.measure.parts} | view_of(material).contents(material),
    }


def contents(material: Material) -> dict[str, Any]:
    """Return planes, measure and rule of the page."""
    rule, sampling = material.rule, material.sampling
    down, across = (shown / full for shown, full in zip(sampling.shape, sampling.original, strict=True))
    document: dict[str, Any] = rule_contents(material) | {
        "height": sampling.shape[0],
        "width": sampling.shape[1],
        "fullHeight": sampling.original[0],
        "fullWidth": sampling.original[1],
        "sources": [embed_plane(sampling(plane), learned_range(rule, k)) for k, plane in enumerate(material.planes)],
        "colours": list(SCALE),
        "missing": MISSING,
        "boxes": (material.boxes * [across, down, across, down]).tolist(),
    }
    if material.truth is not None:
        document["truth"] = embed_indices(sampling(material.truth))
    if material.detections is not None:
        rings = [ring for target in material.detections.polygons for polygon in target for ring in polygon]
        document["detections"] = [(ring * [across, down]).round(2).tolist() for ring in rings]
    if material.segments is not None:
        document["segments"] = embed_indices(sampling(material.segments))
        document["labels"] = material.labels
    return document
