"""YOLO networks that segment, as they are exported to ONNX without suppression: boxes, mask coefficients, prototypes.

The mask of a detection is the sum of the prototypes, each times its coefficient [1]_, cut off at the box. Of boxes of
the same class that overlap, the one with the highest score is kept.

References
----------
.. [1] D. Bolya, C. Zhou, F. Xiao and Y. J. Lee, "YOLACT: Real-time Instance Segmentation", ICCV 2019.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bimichi._types import Floats
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.methods.networks import FLOAT, Wanted, check_outputs, fit, import_pillow, interpolated, run

PERSON, SURE = 0, 0.25
"""The class of people in COCO without a background, and the score from which the authors show detections."""
OVERLAP = 0.7
"""Above this intersection over union, two boxes show the same object; as the authors have it."""
STRIDES = (8, 16, 32)
USUAL_SIDE = 640
GREY = 114  # with which the authors fill up images

EXPECTED = (
    "of a YOLO segmentation network, exported without non-maximum suppression, one float32 input (1, 3, height, "
    "width); outputs (1, 4 + classes + prototypes, anchors) and (1, prototypes, mask height, mask width), both float32"
)


class Letterbox(NamedTuple):
    """Place of an image in the input of a network: pixels times `ratio`, plus an offset."""

    ratio: float
    left: int
    top: int


class YoloSeg:
    """A YOLO network with masks."""

    title, expected = "YOLO-seg", EXPECTED

    @staticmethod
    def recognises(inputs: Any, outputs: Any) -> bool:
        """Return whether a file has this signature; the number of anchors says whether boxes are its own."""
        if not (fit(inputs, ((FLOAT, (1, 3, None, None)),)) and len(outputs) == 2 and outputs[0].shape):
            return False
        if not fit(outputs, ((FLOAT, (1, None, None)), (FLOAT, (1, None, None, None)))):
            return False
        size, anchors = inputs[0].shape[2:], outputs[0].shape[2]
        sized = all(isinstance(n, int) for n in (*size, anchors))
        return not sized or anchors == n_anchors(size[0], size[1])

    @staticmethod
    def paint(session: Any, image: NDArray[np.uint8], wanted: Wanted, fused: NDArray[np.float32]) -> None:
        """Raise `fused` on the masks that are wanted."""
        tensor, place = _prepared(image, session.get_inputs()[0].shape[2:])
        shape, inner = image.shape[:2], tensor.shape[2:]
        size = f"an image of {shape[0]} x {shape[1]} pixels, resized to {inner[0]} x {inner[1]}"
        outputs = run(session, tensor, size)
        check_outputs(outputs, [(1, None, n_anchors(*inner)), (1, None, None, None)], EXPECTED, size)
        rows, prototypes = outputs[0][0].T, outputs[1][0]
        n_classes = rows.shape[1] - 4 - len(prototypes)
        if n_classes < 1:
            shapes = f"{outputs[0].shape} and {outputs[1].shape}"
            raise ModelFileError(
                f"The network gave outputs of the shapes {shapes}; expected {EXPECTED}.", code="network-outputs"
            )
        label = PERSON if wanted.target_class is None else wanted.target_class
        if label >= n_classes:
            raise InvalidInputError(
                f"target_class is {label}, but the network has the classes 0 to {n_classes - 1}.",
                code="network-class",
                argument="target_class",
            )
        least = SURE if wanted.score_threshold is None else wanted.score_threshold
        scores = rows[:, 4 : 4 + n_classes]
        chosen = np.flatnonzero((scores.argmax(axis=1) == label) & (scores[:, label] > least))
        boxes = rows[chosen, :2][:, [0, 1, 0, 1]] + rows[chosen, 2:4][:, [0, 1, 0, 1]] * np.array(
            [-0.5, -0.5, 0.5, 0.5]
        )
        for k in suppressed(boxes, scores[chosen, label]):
            mask = np.tensordot(rows[chosen[k], 4 + n_classes :], prototypes, 1)
            value = float(scores[chosen[k], label]) if wanted.scores else 1.0
            _paste(mask, boxes[k], place, (inner[0], inner[1]), wanted.mask_threshold, value, fused)


def n_anchors(height: int, width: int) -> int:
    """Return how many boxes a network predicts for an input of this size: one for each cell of three grids."""
    return sum(-(-height // stride) * -(-width // stride) for stride in STRIDES)


def suppressed(boxes: Floats, scores: NDArray[Any], overlap: float = OVERLAP) -> list[int]:
    """Return the boxes (x1, y1, x2, y2) that no better box overlaps by more than `overlap`, best first.

    Examples
    --------
    >>> import numpy as np
    >>> suppressed(np.array([[0.0, 0, 10, 10], [0, 1, 10, 10], [20, 0, 30, 10]]), np.array([0.5, 0.9, 0.3]))
    [1, 2]
    """
    kept: list[int] = []
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    left = np.argsort(-scores, kind="stable")
    while len(left):
        best, left = int(left[0]), left[1:]
        kept.append(best)
        corners = np.minimum(boxes[best, 2:], boxes[left, 2:]) - np.maximum(boxes[best, :2], boxes[left, :2])
        shared = np.prod(np.maximum(corners, 0), axis=1)
        left = left[shared <= overlap * (areas[best] + areas[left] - shared)]
    return kept


def _prepared(image: NDArray[np.uint8], sizes: Any) -> tuple[NDArray[np.float32], Letterbox]:
    """Resize an image so that it fits into the network's input, and fill up with grey on both sides."""
    pillow = import_pillow()
    shape = image.shape[:2]
    inner = [n if isinstance(n, int) else USUAL_SIDE for n in sizes]
    ratio = min(inner[0] / shape[0], inner[1] / shape[1])
    height, width = (max(1, round(n * ratio)) for n in shape)
    resized = pillow.fromarray(image).resize((width, height), pillow.Resampling.BILINEAR)
    top, left = (inner[0] - height) // 2, (inner[1] - width) // 2
    canvas = np.full((*inner, 3), GREY, np.uint8)
    canvas[top : top + height, left : left + width] = np.asarray(resized)
    tensor = np.ascontiguousarray(np.moveaxis(canvas, -1, 0), np.float32) / np.float32(255)
    return tensor[None], Letterbox(ratio, left, top)


def _paste(
    mask: NDArray[Any],
    box: Floats,
    place: Letterbox,
    inner: tuple[int, int],
    threshold: float,
    value: float,
    out: NDArray[np.float32],
) -> None:
    """Raise `out` to `value` in the pixels of a box where the mask's logit, interpolated, is likely enough."""
    offset = np.array([place.left, place.top] * 2)
    corners = (box - offset) / place.ratio
    left, top = (max(0, int(np.ceil(edge - 0.5))) for edge in corners[:2])  # pixels whose centres lie in the box
    right, bottom = (min(n, int(np.ceil(edge - 0.5))) for edge, n in zip(corners[2:], out.shape[::-1], strict=True))
    if left >= right or top >= bottom:
        return
    rows, columns = (
        ((np.arange(start, stop) + 0.5) * place.ratio + first) * (n_cells / length) - 0.5
        for start, stop, first, n_cells, length in (
            (top, bottom, place.top, mask.shape[0], inner[0]),
            (left, right, place.left, mask.shape[1], inner[1]),
        )
    )
    part, inside = out[top:bottom, left:right], expit(interpolated(mask, rows, columns)) > threshold
    np.maximum(part, np.float32(value), out=part, where=inside)
