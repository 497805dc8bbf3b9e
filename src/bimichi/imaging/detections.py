"""From a fused map to targets: connected regions above a threshold, with boxes, outlines and scores."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._types import Flags, Floats, Ints
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.imaging.outlines import Polygon, outline


@dataclass(frozen=True, eq=False, repr=False)  # arrays do not compare to one bool, and do not fit on a line
class Detections:
    """Targets that were found in a map, the highest score first.

    Attributes
    ----------
    regions : ndarray of int, shape (height, width)
        Which target each pixel belongs to, from 1; 0 for none.
    boxes : ndarray of shape (n, 4)
        The box (x, y, width, height) around each target, in pixels.
    scores : ndarray of shape (n,)
        The mean of the map over each target.
    sizes : ndarray of int, shape (n,)
        The number of pixels of each target.
    """

    regions: Ints
    boxes: Floats
    scores: Floats
    sizes: Ints

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        height, width = self.regions.shape
        return f"Detections({len(self)} in {width} x {height} pixels)"

    @property
    def mask(self) -> Flags:
        """Which pixels belong to a target, shape (height, width)."""
        return np.asarray(self.regions > 0)

    @cached_property
    def polygons(self) -> list[list[Polygon]]:
        """The outline of each target along the edges of its pixels: polygons of rings of corners (x, y).

        Parts that meet only at corners are polygons of their own. The first ring of a polygon is its outer one, the
        others are holes; each is closed.
        """
        found = []
        for k, box in enumerate(self.boxes.astype(int).tolist()):
            x, y, width, height = box
            found.append(outline(self.regions[y : y + height, x : x + width] == k + 1, x, y))
        return found


def detect(
    fused: ArrayLike,
    decision: Any = None,
    *,
    threshold: float | None = None,
    min_size: int | None = None,
    smooth: tuple[float, float] | None = None,
) -> Detections:
    """Find targets in a fused map: 8-connected regions of pixels at or above a threshold.

    Parameters
    ----------
    fused : array-like of float, shape (height, width)
        The map, as `FusionRule.fuse` returns it. Pixels with NaN belong to no target.
    decision : Decision, or FusionRule or fitted model with one, optional
        The threshold, least size and smoothing.
    threshold, min_size, smooth
        In place of those of the decision; see `bimichi.Decision`.

    Returns
    -------
    Detections
        With mask, boxes, scores, sizes and outlines.

    Examples
    --------
    >>> found = detect(np.array([[0.9, 0.8, 0.0, 0.6], [0.1, 0.9, 0.0, 0.2]]), threshold=0.5, min_size=2)
    >>> found.boxes, found.sizes
    (array([[0., 0., 2., 2.]]), array([3]))
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    used = decision_of(decision, threshold, min_size, smooth)
    given = np.asarray(fused)
    array = given if given.dtype.kind == "f" else given.astype(np.float64)
    if array.ndim != 2:
        raise InvalidInputError(f"fused must be a map of shape (height, width), got shape {array.shape}.")
    array = used.smoothed(array)
    regions, n = ndimage.label(used.find(array), structure=np.ones((3, 3)))
    sizes = np.bincount(regions.ravel(), minlength=n + 1)[1:]
    total = np.bincount(regions.ravel(), np.where(regions.ravel() > 0, array.ravel(), 0), minlength=n + 1)[1:]
    scores = total / np.maximum(sizes, 1)
    kept = np.flatnonzero(sizes >= used.min_size)
    order = kept[np.argsort(-scores[kept], kind="stable")]
    number = np.zeros(n + 1, np.int64)
    number[order + 1] = np.arange(1, len(order) + 1)
    slices = ndimage.find_objects(regions)
    boxes = [(c.start, r.start, c.stop - c.start, r.stop - r.start) for r, c in (slices[k] for k in order)]
    return Detections(number[regions], np.array(boxes, float).reshape(-1, 4), scores[order], sizes[order])


def decision_of(
    given: Any = None,
    threshold: float | None = None,
    min_size: int | None = None,
    smooth: tuple[float, float] | None = None,
) -> Decision:
    """Return the decision of a rule or model, or as given, with some of its parts replaced."""
    found = getattr(getattr(given, "rule_", given), "decision", given)
    found = Decision() if found is None else found
    if not isinstance(found, Decision):
        raise InvalidInputError(
            f"decision must be a Decision, or a rule or model with one, got {type(given).__name__}."
        )
    changed: dict[str, Any] = {"threshold": threshold, "min_size": min_size, "smooth": smooth}
    changed["chosen"] = None if threshold is None else "given"
    return replace(found, **{name: value for name, value in changed.items() if value is not None})
