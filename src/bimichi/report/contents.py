"""What the page's script works with, as one JSON document."""

from typing import Any

from bimichi.explain import Identifiability
from bimichi.report.colours import MISSING, SCALE
from bimichi.report.embedding import Sampling, embed_elements, embed_indices, embed_plane, learned_range
from bimichi.report.inputs import Material

__all__ = ["contents"]


def contents(material: Material, known: Identifiability, sampling: Sampling) -> dict[str, Any]:
    """Return planes, measure and model of the page."""
    rule = material.rule
    document: dict[str, Any] = {
        "names": list(material.names),
        "height": sampling.shape[0],
        "width": sampling.shape[1],
        "fullHeight": sampling.original[0],
        "fullWidth": sampling.original[1],
        "absolute": material.absolute,
        "centre": rule.centre.tolist(),
        "factor": rule.factor.tolist(),
        "polarity": rule.polarity.tolist(),
        "values": embed_elements(material.measure.values),
        "lower": embed_elements(known.lower),
        "upper": embed_elements(known.upper),
        "sources": [
            embed_plane(sampling(plane), learned_range(material, k)) for k, plane in enumerate(material.planes)
        ],
        "colours": list(SCALE),
        "missing": MISSING,
        "boxes": (material.boxes * _shrinking(sampling)).tolist(),
    }
    if material.truth is not None:
        document["truth"] = embed_indices(sampling(material.truth))
    if material.segments is not None:
        document["segments"] = embed_indices(sampling(material.segments))
        document["labels"] = material.labels
    return document


def _shrinking(sampling: Sampling) -> list[float]:
    down, across = (shown / full for shown, full in zip(sampling.shape, sampling.original, strict=True))
    return [across, down, across, down]
