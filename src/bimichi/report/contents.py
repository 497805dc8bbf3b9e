"""The data that the page's script works with: planes as whole numbers, the measure, and the rule."""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._colours import MISSING, SCALE
from bimichi.report.inputs import Material
from bimichi.report.measure import measure_values
from bimichi.rule import FusionRule

LISTED = 4096
MISSING_CODE = 2**16 - 1
STEPS = 2**16 - 2


def embed_plane(plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)) -> dict[str, Any]:
    """Return a plane as a part of the page's data; values beyond `limits` may be set to them."""
    indices, meaning = index_plane(plane, limits)
    return meaning | {"data": embed_indices(indices)}


def index_plane(
    plane: NDArray[Any], limits: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[NDArray[np.uint16], dict[str, Any]]:
    """Return a plane as whole numbers of 16 bits, `MISSING_CODE` for NaN, and their meaning."""
    missing = np.isnan(plane)
    values = plane.astype(np.float64)
    present = values[~missing]
    sample = present[:: max(1, len(present) // (4 * LISTED))]  # if it has more levels, so has the whole
    levels = np.unique(present) if len(np.unique(sample)) <= LISTED else present
    if len(levels) > LISTED:
        low, high = np.clip([levels.min(), levels.max()], *limits)
        step = (high - low) / STEPS or 1.0
        indices = np.rint((np.clip(np.where(missing, low, values), low, high) - low) / step)
        meaning: dict[str, Any] = {"low": float(low), "step": float(step)}
    else:
        indices = np.searchsorted(levels, values)
        meaning = {"levels": levels.tolist()}
    return np.where(missing, MISSING_CODE, indices).astype(np.uint16), meaning


def embed_indices(indices: NDArray[Any]) -> str:
    """Return whole numbers below 2^16 of an image as text."""
    numbers = indices.astype(np.uint16)
    steps = np.diff(numbers, axis=1, prepend=np.uint16(0)).astype(np.int16)
    folded = ((steps << 1) ^ (steps >> 15)).astype("<u2")
    return _packed(folded.reshape(-1, 1).view(np.uint8).T)


def embed_numbers(values: NDArray[np.float64]) -> str:
    """Return numbers, such as the values of a measure, as text."""
    return _packed(values.astype("<f8"))


def learned_range(rule: FusionRule, k: int) -> tuple[float, float]:
    """Return the values of source k between which the rule's scale is not flat."""
    centre, factor = float(rule.centre[k]), float(rule.factor[k])
    if (centre, factor) == (0.0, 1.0) or factor == 0:
        return (-np.inf, np.inf)
    return (centre + rule.low / factor, centre + 1 / factor)


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()


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
        "measure": {"parts": rule.measure.parts}
        | {name: embed_numbers(values) for name, values in measure_values(material).items()},
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
