"""How well targets were found as objects: precision, recall and miss rate after matching boxes one to one."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from bimichi._checks import check_boxes, check_choice, check_number
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError

Overlap = Literal["iou", "smaller"]


class ObjectScores(NamedTuple):
    """Scores of detected objects; see `object_scores`.

    Attributes
    ----------
    precision : float
        The share of detections that match a target; NaN if there are none.
    recall, miss_rate : float
        The share of targets that are found, and its complement; NaN if there are no targets.
    f1 : float
        Twice the matches over targets and detections together.
    n_targets, n_detections, n_matched : int
        Numbers of objects.
    """

    precision: float
    recall: float
    miss_rate: float
    f1: float
    n_targets: int
    n_detections: int
    n_matched: int

    def __add__(self, other: Any) -> "ObjectScores":
        """Return the scores of two images together."""
        return _scores(*(a + b for a, b in zip(self[4:], other[4:], strict=True)))


def object_scores(
    targets: ArrayLike,
    detections: Any,
    *,
    min_overlap: float = 0.5,
    overlap: Overlap = "iou",
    ignore: ArrayLike | None = None,
) -> ObjectScores:
    """Match detections with targets, one to one, and count.

    A detection can match a target if they overlap by at least `min_overlap`. Of all ways to match them one to one, the
    one with the most matches counts, and among these the one that overlaps most. Add up the scores of several images.

    Parameters
    ----------
    targets : array-like of shape (n_targets, 4)
        Boxes (x, y, width, height) of the targets in an image; `bimichi.imaging.boxes_of` gives those of a mask.
    detections : Detections, or array-like of shape (n_detections, 4)
        What was found.
    min_overlap : float in (0, 1], default=0.5
        The least overlap of a match.
    overlap : {"iou", "smaller"}
        The area that two boxes share, over the area that they cover together, or over that of the smaller box. The
        second suits targets of which a part is found.
    ignore : array-like of shape (n_boxes, 4), optional
        Boxes where targets are unknown: a detection without a match that has at least half of its area in one of them
        does not count.

    Returns
    -------
    ObjectScores
        Costs O(n³) for n objects in an image.

    Examples
    --------
    >>> found = object_scores([(0, 0, 10, 20), (50, 0, 10, 20)], [(1, 0, 10, 20), (30, 30, 5, 5)])
    >>> found.precision, found.recall, found.miss_rate
    (0.5, 0.5, 0.5)
    """
    check_number(min_overlap, "min_overlap", 0, 1)
    if min_overlap == 0:
        raise InvalidInputError("min_overlap must be above 0, or boxes that are far apart would match.")
    check_choice(overlap, "overlap", ("iou", "smaller"))
    wanted, found = check_boxes(targets, "targets"), check_boxes(getattr(detections, "boxes", detections), "detections")
    shared = _shared(wanted, found)
    sizes = [boxes[:, 2] * boxes[:, 3] for boxes in (wanted, found)]
    both = sizes[0][:, None] + sizes[1] - shared
    share = shared / (both if overlap == "iou" else np.minimum(sizes[0][:, None], sizes[1]))
    can = share >= min_overlap
    gain = np.where(can, 1 + share / (min(share.shape) + 1), 0)  # the number of matches first, then their overlap
    rows, columns = linear_sum_assignment(gain, maximize=True)
    matched = can[rows, columns]
    n_matched, counted = int(matched.sum()), len(found)
    if ignore is not None:
        alone: Flags = np.ones(len(found), np.bool_)
        alone[columns[matched]] = False
        unknown = (_shared(check_boxes(ignore, "ignore"), found) >= 0.5 * sizes[1]).any(axis=0)
        counted -= int((alone & unknown).sum())
    return _scores(len(wanted), counted, n_matched)


def _scores(n_targets: int, n_detections: int, n_matched: int) -> ObjectScores:
    precision = n_matched / n_detections if n_detections else np.nan
    recall = n_matched / n_targets if n_targets else np.nan
    f1 = 2 * n_matched / (n_targets + n_detections) if n_targets + n_detections else np.nan
    return ObjectScores(precision, recall, 1 - recall, f1, n_targets, n_detections, n_matched)


def _shared(first: Floats, second: Floats) -> Floats:
    """Return the area that each pair of boxes shares."""
    ends = [np.minimum((a := first[:, None])[..., k] + a[..., k + 2], second[:, k] + second[:, k + 2]) for k in (0, 1)]
    starts = [np.maximum(first[:, None, k], second[:, k]) for k in (0, 1)]
    return np.asarray(np.prod([np.maximum(end - start, 0) for start, end in zip(starts, ends, strict=True)], axis=0))
