"""Scores of a fused map against the truth: AUC, average precision, best F1, RMSE and calibration; and of objects.

Ranking scores take values that differ by rounding alone for ties; see `bimichi.scenes.sample`.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from bimichi._checks import check_binary, check_boxes, check_choice, check_number, real_array
from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.link import reliability_of
from bimichi.scenes.sample import tally

__all__ = ["Scores", "auc", "average_precision", "best_f1", "calibration_error", "rmse", "scores"]


RANGE_TOLERANCE = 1e-6


class Scores(NamedTuple):
    """All scores of one map; see `scores`.

    Attributes
    ----------
    auc, average_precision : float
        Area under the ROC curve, and precision averaged over recall.
    best_f1, threshold : float
        The largest F1, and the threshold on the raw output that reaches it: a pixel at or above it counts as found.
    rmse : float
        Root mean square error on [-1, 1].
    n, share : int, float
        Number of pixels, and the share of targets among them, which is the average precision of a constant map.
    calibration_error : float
        The expected calibration error of the output as a probability.
    """

    auc: float
    average_precision: float
    best_f1: float
    threshold: float
    rmse: float
    n: int
    share: float
    calibration_error: float = float("nan")


def auc(truth: ArrayLike, fused: ArrayLike, ignore: ArrayLike | None = None) -> float:
    """Return the area under the ROC curve of the raw output: how often a target is above a pixel that is not one.

    A tie counts half. Values that differ by less than two millionths of themselves are ties (near 0, by less than
    2e-9), so that a map in float32 has the score of one in float64. Costs a sort of the map, O(n log n), and some
    copies of it.

    Parameters
    ----------
    truth : array-like
        Whether each pixel is a target: bool, 0/1 or -1/+1. Both classes must occur.
    fused : array-like of the same shape
        The map, on any scale.
    ignore : array-like of bool of the same shape, optional
        Pixels that do not count.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [-0.9, 0.2, 0.2, 0.8])
    0.875
    """
    return _ranking_scores(*split_classes(truth, fused, ignore))[0]


def average_precision(truth: ArrayLike, fused: ArrayLike, ignore: ArrayLike | None = None) -> float:
    """Return the precision at each threshold, weighted by what it adds to recall, without interpolation.

    Parameters and cost as in `auc`.

    Examples
    --------
    >>> average_precision([0, 1, 0, 1], [-0.9, 0.2, 0.5, 0.8])
    0.8333333333333333
    """
    return _ranking_scores(*split_classes(truth, fused, ignore))[1]


def best_f1(truth: ArrayLike, fused: ArrayLike, ignore: ArrayLike | None = None) -> tuple[float, float]:
    """Return the largest F1 over all thresholds, and the highest threshold on the raw output that reaches it.

    A pixel at or above the threshold counts as found. Parameters and cost as in `auc`.

    Examples
    --------
    >>> best_f1([0, 1, 0, 1], [-0.9, 0.2, 0.5, 0.8])
    (0.8, 0.2)
    """
    return _ranking_scores(*split_classes(truth, fused, ignore))[2:]


def rmse(
    truth: ArrayLike, fused: ArrayLike, output_range: tuple[float, float], ignore: ArrayLike | None = None
) -> float:
    """Return the root mean square error against a truth of -1 and +1.

    An output f on [0, 1] is first mapped to [-1, 1] by 2f - 1. Where targets are few, a map of -1 has a small error,
    too: look at `average_precision` as well. Costs one pass and a copy in float64.

    Parameters
    ----------
    truth : array-like
        Whether each pixel is a target: bool, 0/1 or -1/+1. One class alone will do.
    fused : array-like of the same shape
        The map.
    output_range : {(-1, 1), (0, 1)}
        The scale that the map is on.
    ignore : array-like of bool of the same shape, optional
        Pixels that do not count.

    Examples
    --------
    >>> rmse([0, 1], [-0.5, 0.5], (-1, 1))
    0.5
    >>> rmse([0, 1], [0.25, 0.75], (0, 1))
    0.5
    """
    return _rmse(*split_classes(truth, fused, ignore), output_range)


def calibration_error(
    truth: ArrayLike, fused: ArrayLike, output_range: tuple[float, float] = (0.0, 1.0), ignore: ArrayLike | None = None
) -> float:
    """Return the expected calibration error: how far shares of targets are from the probabilities that were given.

    Pixels are put into 15 bins of equal width by their probability; the distance between its mean and the share of
    targets in a bin is averaged over pixels. An output f on [-1, 1] counts as the probability (f + 1) / 2. Where
    targets are few, so is what can be wrong: compare with the share of targets, which is the error of a map of 0.

    Parameters as in `rmse`. One pass, and a copy in float64.

    Examples
    --------
    >>> calibration_error([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    """
    return _calibration_error(*split_classes(truth, fused, ignore), output_range)


def _calibration_error(targets: NDArray[Any], others: NDArray[Any], output_range: tuple[float, float]) -> float:
    low, high = _check_reach(targets, others, output_range)
    both = np.concatenate([targets, others]).astype(np.float64)
    positive = np.arange(both.size) < targets.size
    return reliability_of(positive, np.clip((both - low) / (high - low), 0, 1)).error


def scores(
    truth: ArrayLike, fused: ArrayLike, output_range: tuple[float, float] = (-1.0, 1.0), ignore: ArrayLike | None = None
) -> Scores:
    """Return all scores of a map, at the cost of one.

    Parameters as in `rmse`, but both classes must occur.

    Examples
    --------
    >>> perfect = scores([[0, 0], [0, 1]], [[-1.0, -1.0], [-1.0, 1.0]])
    >>> perfect.auc, perfect.rmse, perfect.n, perfect.share
    (1.0, 0.0, 4, 0.25)
    """
    targets, others = split_classes(truth, fused, ignore)
    error = _rmse(targets, others, output_range)  # before the other pixels are sorted, so that sums round as in rmse
    calibration, n = _calibration_error(targets, others, output_range), targets.size + others.size
    return Scores(*_ranking_scores(targets, others), error, n, targets.size / n, calibration)


def _ranking_scores(targets: NDArray[Any], others: NDArray[Any]) -> tuple[float, float, float, float]:
    """Return AUC, average precision, best F1 and its threshold; sorts `others` in place."""
    if not targets.size or not others.size:
        counted = f"{targets.size:,} targets and {others.size:,} other pixels count"
        raise InvalidInputError(
            f"truth has one class only: {counted}. Only rmse is defined for one.",
            code="truth-one-class",
            argument="truth",
        )
    counts = tally(targets, others)
    precision, area = counts.ranking()
    f1 = counts.f1
    best = np.argmax(f1)
    return area, precision, float(f1[best]), float(counts.thresholds[best])


def _check_reach(targets: NDArray[Any], others: NDArray[Any], output_range: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the range, which the map must not leave."""
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    if (low, high) not in ((-1.0, 1.0), (0.0, 1.0)):
        raise InvalidInputError(
            f"output_range must be (-1, 1) or (0, 1), got {output_range!r}.",
            code="output-range",
            argument="output_range",
            value=output_range,
        )
    for part in (targets, others):
        for value in (float(end(part)) for end in (np.min, np.max) if part.size):
            if not low - RANGE_TOLERANCE <= value <= high + RANGE_TOLERANCE:
                where = f"beyond output_range ({low:g}, {high:g})"
                raise InvalidInputError(
                    f"fused reaches {value!r}, {where}. Rescale it, or pass its own range.",
                    code="output-range-exceeded",
                    argument="fused",
                )
    return low, high


def _rmse(targets: NDArray[Any], others: NDArray[Any], output_range: tuple[float, float]) -> float:
    low, high = _check_reach(targets, others, output_range)
    total = 0.0
    for part, wanted in ((targets, high), (others, low)):
        error = np.subtract(part, wanted, dtype=np.float64)
        total += float(np.square(error, out=error).sum())
    return float(2 / (high - low) * np.sqrt(total / (targets.size + others.size)))


def split_classes(
    truth: ArrayLike, fused: ArrayLike, ignore: ArrayLike | None, names: tuple[str, str] = ("truth", "fused")
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the values of the map on targets, and on the other pixels that count; both are copies.

    Errors call the first two arguments by their `names`.
    """
    known, map_ = names
    output, given = _numbers(fused, map_), _numbers(truth, known)
    if given.shape != output.shape:
        raise InvalidInputError(
            f"{known} has shape {given.shape} and {map_} {output.shape}; they must be the same.", code="shapes-differ"
        )
    if ignore is not None:
        mask = np.asarray(ignore)
        if mask.dtype != np.bool_ or mask.shape != output.shape:
            got = f"{mask.dtype} of shape {mask.shape}"
            raise InvalidInputError(
                f"ignore must be bool, of the shape of {map_}, {output.shape}, got {got}.",
                code="ignore-shape",
                argument="ignore",
                value=got,
            )
        output, given = output[~mask], given[~mask]
    if not output.size:
        why = f"{map_} is empty" if ignore is None or not mask.size else f"ignore leaves out all {mask.size:,} pixels"
        raise InvalidInputError(f"There is nothing to score: {why}.", code="nothing-to-score")
    holes = int(np.isnan(output).sum())
    if holes:
        where = f"{holes:,} of {output.size:,} pixels that count"
        raise InvalidInputError(f"{map_} has NaN in {where}. Fill them, or pass ignore=np.isnan({map_}).", code="nan")
    positive = check_binary(given, known)
    return output[positive], output[~positive]


def _numbers(values: ArrayLike, what: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{what} is a masked array; pass its data, and its mask as ignore.", code="masked-array", argument=what
        )
    return real_array(values, what)


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
        Boxes (x, y, width, height) of the targets in an image; `bimichi.scenes.boxes_of` gives those of a mask.
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
    >>> matches = object_scores([(0, 0, 10, 20), (50, 0, 10, 20)], [(1, 0, 10, 20), (30, 30, 5, 5)])
    >>> matches.precision, matches.recall, matches.miss_rate
    (0.5, 0.5, 0.5)
    """
    check_number(min_overlap, "min_overlap", 0, 1)
    if min_overlap == 0:
        raise InvalidInputError(
            "min_overlap must be above 0, or boxes that are far apart would match.",
            code="min-overlap",
            argument="min_overlap",
        )
    check_choice(overlap, "overlap", ("iou", "smaller"))
    wanted = check_boxes(targets, "targets")
    detected = check_boxes(getattr(detections, "boxes", detections), "detections")
    shared = _shared(wanted, detected)
    sizes = [boxes[:, 2] * boxes[:, 3] for boxes in (wanted, detected)]
    both = sizes[0][:, None] + sizes[1] - shared
    share = shared / (both if overlap == "iou" else np.minimum(sizes[0][:, None], sizes[1]))
    can = share >= min_overlap
    gain = np.where(can, 1 + share / (min(share.shape) + 1), 0)  # the number of matches first, then their overlap
    rows, columns = linear_sum_assignment(gain, maximize=True)
    matched = can[rows, columns]
    n_matched, counted = int(matched.sum()), len(detected)
    if ignore is not None:
        alone: Flags = np.ones(len(detected), np.bool_)
        alone[columns[matched]] = False
        unknown = (_shared(check_boxes(ignore, "ignore"), detected) >= 0.5 * sizes[1]).any(axis=0)
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
