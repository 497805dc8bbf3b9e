"""What the page's script works with, as one JSON document."""

from typing import Any

from bimichi.report.colours import MISSING, SCALE
from bimichi.report.embedding import embed_indices, embed_plane, learned_range
from bimichi.report.inputs import Material
from bimichi.report.measure import view_of


def contents(material: Material) -> dict[str, Any]:
    """Return planes, measure and rule of the page."""
    rule, sampling = material.rule, material.sampling
    down, across = (shown / full for shown, full in zip(sampling.shape, sampling.original, strict=True))
    document: dict[str, Any] = {
        "names": list(material.names),
        "height": sampling.shape[0],
        "width": sampling.shape[1],
        "fullHeight": sampling.original[0],
        "fullWidth": sampling.original[1],
        "absolute": material.absolute,
        "link": None if rule.link is None else {"slope": rule.link.slope, "offset": rule.link.offset},
        "low": rule.low,
        "outputLow": rule.output_range[0],
        "centre": rule.centre.tolist(),
        "factor": rule.factor.tolist(),
        "polarity": rule.polarity.tolist(),
        "measure": {"parts": rule.measure.parts} | view_of(material).contents(material),
        "sources": [embed_plane(sampling(plane), learned_range(rule, k)) for k, plane in enumerate(material.planes)],
        "colours": list(SCALE),
        "missing": MISSING,
        "boxes": (material.boxes * [across, down, across, down]).tolist(),
    }
    if material.truth is not None:
        document["truth"] = embed_indices(sampling(material.truth))
    if material.segments is not None:
        document["segments"] = embed_indices(sampling(material.segments))
        document["labels"] = material.labels
    return document
