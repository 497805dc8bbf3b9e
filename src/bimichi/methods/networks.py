"""Instance-segmentation networks in ONNX files: opened, run, checked against known signatures, and their masks painted.

Mask R-CNN [1]_ is taken as the ONNX model zoo [2]_ has it, and as torchvision exports it. YOLO networks that segment
are taken as they are exported without suppression: boxes, mask coefficients, prototypes. The mask of a detection is the
sum of the prototypes, each times its coefficient [3]_, cut off at the box. Of boxes of the same class that overlap, the
one with the highest score is kept.

References
----------
.. [1] K. He, G. Gkioxari, P. Dollár and R. Girshick, "Mask R-CNN", ICCV 2017.
.. [2] ONNX model zoo, vision/object_detection_segmentation/mask-rcnn; converted from maskrcnn-benchmark.
.. [3] D. Bolya, C. Zhou, F. Xiao and Y. J. Lee, "YOLACT: Real-time Instance Segmentation", ICCV 2019.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bimichi._extras import import_optional
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.integral.planes import check_n_jobs

FLOAT, WHOLE = "tensor(float)", "tensor(int64)"
Sizes = tuple[int | None, ...]
Nodes = Sequence[tuple[str, Sizes]]


class Wanted(NamedTuple):
    """Choice of the detections to paint, and with what: see the parameters of `DetectorMask`."""

    target_class: int | None
    score_threshold: float | None
    mask_threshold: float
    scores: bool


def open_session(path: str | PathLike[str], n_jobs: int | None = None) -> Any:
    """Open an ONNX file in ONNX Runtime; several threads may run the session at once."""
    try:
        exists = Path(path).is_file()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"model must be the path of an ONNX file, got {path!r}.", code="network-path", argument="model", value=path
        ) from error
    if not exists:
        raise ModelFileError(
            f"model {str(path)!r} is not a file; give the path of an ONNX file.", code="network-missing"
        )
    onnxruntime = import_optional("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = check_n_jobs(n_jobs)
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no base of their own
        raise ModelFileError(
            f"model {str(path)!r} cannot be opened as an ONNX file: {error}", code="network-unreadable"
        ) from error


def fit(nodes: Sequence[Any], expected: Nodes) -> bool:
    """Return whether nodes have these types and sizes; sizes that a file leaves open are checked later, in outputs."""
    return len(nodes) == len(expected) and all(
        node.type == kind
        and len(sizes := node.shape or [None] * len(shape)) == len(shape)
        and not any(isinstance(a, int) and b is not None and a != b for a, b in zip(sizes, shape, strict=True))
        for node, (kind, shape) in zip(nodes, expected, strict=True)
    )


def shown(nodes: Sequence[Any]) -> str:
    """Write names, types and sizes of nodes, for errors."""
    return ", ".join(f"{node.name} {node.type} ({', '.join(map(str, node.shape))})" for node in nodes) or "(none)"


def run(session: Any, tensor: NDArray[np.float32], size: str) -> list[NDArray[Any]]:
    """Run a network on its one input, prepared from an image of this `size`; outputs must be finite."""
    try:
        outputs: list[NDArray[Any]] = session.run(None, {session.get_inputs()[0].name: tensor})
    except Exception as error:  # as above
        raise ModelFileError(f"The network failed on {size}: {error}", code="network-failed") from error
    return outputs


def check_outputs(outputs: Sequence[NDArray[Any]], shapes: Sequence[Sizes], expected: str, size: str) -> None:
    """Raise an error unless outputs have these shapes and are finite."""
    for array, shape in zip(outputs, shapes, strict=True):
        if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
            got = ", ".join(str(array.shape) for array in outputs)
            raise ModelFileError(
                f"The network gave outputs of the shapes {got}; expected {expected}.", code="network-outputs"
            )
    if not all(np.isfinite(array).all() for array in outputs):
        raise ModelFileError(f"The network gave NaN or infinite values on {size}.", code="network-nan")


def interpolated(mask: NDArray[Any], rows: Floats, columns: Floats) -> NDArray[Any]:
    """Return the values of a mask between its cells, bilinearly, at all of these rows and columns."""
    row, next_row, down = _between(mask.shape[0], rows)
    column, next_column, across = _between(mask.shape[1], columns)
    lines = mask[row] * (1 - down[:, None]) + mask[next_row] * down[:, None]
    return np.asarray(lines[:, column] * (1 - across) + lines[:, next_column] * across)


def _between(n_cells: int, at: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return the two cells that each place lies between, and how far along; beyond the ends, the end."""
    at = np.clip(at, 0, n_cells - 1)
    cell = at.astype(np.intp)
    return cell, np.minimum(cell + 1, n_cells - 1), at - cell


def import_pillow() -> Any:
    """Return Pillow's Image module."""
    return import_optional("PIL.Image", extra="detector")


RCNN_PERSON, RCNN_SURE = 1, 0.7
"""The class of people in COCO, where 0 is the background; and the score from which the authors show detections."""
SHORTER_SIDE = 800
STRIDE = 32
MEAN_BGR = np.array([102.9801, 115.9465, 122.7717], np.float32)
CELLS = 28

FOUND: Nodes = ((FLOAT, (None, 4)), (WHOLE, (None,)), (FLOAT, (None,)))
ZOO_EXPECTED = (
    "of the ONNX model zoo's Mask R-CNN one float32 input (3, height, width); outputs boxes (n, 4) float32, labels "
    "(n,) int64, scores (n,) float32, masks (n, 1, 28, 28) float32"
)
TORCHVISION_EXPECTED = (
    "of torchvision's Mask R-CNN one float32 input (3, height, width) or (1, 3, height, width); outputs as those of "
    "the zoo's, but masks (n, 1, height, width) as large as the image"
)


class Detections(NamedTuple):
    """Detections of a network in an image, with one entry each per detection.

    Boxes are corners (x1, y1, x2, y2) in pixels of the image, labels are classes. The masks are how likely each cell of
    a box belongs to the object, (n, 1, 28, 28), or each pixel of the image, (n, 1, height, width).
    """

    boxes: NDArray[np.float32]
    labels: Ints
    scores: NDArray[np.float32]
    masks: NDArray[np.float32]

    def wanted(self, wanted: Wanted) -> list[tuple[int, float]]:
        """Return which detections to paint, and the value of each."""
        label = RCNN_PERSON if wanted.target_class is None else wanted.target_class
        least = RCNN_SURE if wanted.score_threshold is None else wanted.score_threshold
        chosen = np.flatnonzero((self.labels == label) & (self.scores > least)).tolist()
        return [(k, float(self.scores[k]) if wanted.scores else 1.0) for k in chosen]


class ZooMaskRCNN:
    """The Mask R-CNN of the ONNX model zoo, whose masks are pasted into their boxes."""

    title, expected = "Mask R-CNN", ZOO_EXPECTED

    @staticmethod
    def recognises(inputs: Any, outputs: Any) -> bool:
        """Return whether a file has this signature."""
        masks = (FLOAT, (None, 1, CELLS, CELLS))
        sized = not outputs or len(outputs) < 4 or not outputs[3].shape or outputs[3].shape[3:] == [CELLS]
        return sized and fit(inputs, ((FLOAT, (3, None, None)),)) and fit(outputs, (*FOUND, masks))

    @staticmethod
    def paint(session: Any, image: NDArray[np.uint8], wanted: Wanted, fused: NDArray[np.float32]) -> None:
        """Raise `fused` on the masks that are wanted."""
        detections = detect(session, image)
        for k, value in detections.wanted(wanted):
            paste_mask(detections.masks[k, 0], detections.boxes[k], wanted.mask_threshold, value, fused)


class TorchvisionMaskRCNN:
    """The Mask R-CNN of torchvision, which resizes images itself and gives masks of the whole image."""

    title, expected = "Mask R-CNN", TORCHVISION_EXPECTED

    @staticmethod
    def recognises(inputs: Any, outputs: Any) -> bool:
        """Return whether a file has this signature: masks are of one size only if images are, and then of the same."""
        if not any(fit(inputs, ((FLOAT, sizes),)) for sizes in ((3, None, None), (1, 3, None, None))):
            return False
        size, n = inputs[0].shape[-2:], len(outputs)
        if n != 4 or not outputs[3].shape or not fit(outputs, (*FOUND, (FLOAT, (None, 1, None, None)))):
            return False
        return all(
            not isinstance(side, int) or side == other for side, other in zip(outputs[3].shape[2:], size, strict=True)
        )

    @staticmethod
    def paint(session: Any, image: NDArray[np.uint8], wanted: Wanted, fused: NDArray[np.float32]) -> None:
        """Raise `fused` on the masks that are wanted."""
        tensor = np.ascontiguousarray(np.moveaxis(image, -1, 0), np.float32) / np.float32(255)
        batch = tensor[None] if len(session.get_inputs()[0].shape) == 4 else tensor
        size = f"an image of {image.shape[0]} x {image.shape[1]} pixels"
        outputs = run(session, batch, size)
        n = outputs[0].size // 4
        check_outputs(outputs, [(n, 4), (n,), (n,), (n, 1, *image.shape[:2])], TORCHVISION_EXPECTED, size)
        detections = Detections(*outputs)
        for k, value in detections.wanted(wanted):
            np.maximum(fused, np.float32(value), out=fused, where=detections.masks[k, 0] > wanted.mask_threshold)


def detect(session: Any, image: NDArray[np.uint8]) -> Detections:
    """Run the zoo's network on an RGB image (height, width, 3)."""
    tensor, ratio = prepare_image(image)
    size = f"an image of {image.shape[0]} x {image.shape[1]} pixels, resized to {tensor.shape[1]} x {tensor.shape[2]}"
    outputs = run(session, tensor, size)
    n = outputs[0].size // 4
    check_outputs(outputs, [(n, 4), (n,), (n,), (n, 1, CELLS, CELLS)], ZOO_EXPECTED, size)
    return Detections(np.asarray(outputs[0] / np.float32(ratio), np.float32), *outputs[1:])


def prepare_image(image: NDArray[np.uint8]) -> tuple[NDArray[np.float32], float]:
    """Return the image as the zoo's network needs it, and the factor by which it was resized.

    The shorter side becomes 800; channels go first, blue to red, less their means; zeros fill up to multiples of 32.
    """
    pillow = import_pillow()
    height, width = image.shape[:2]
    ratio = SHORTER_SIDE / min(height, width)
    new_height, new_width = int(ratio * height), int(ratio * width)
    resized = np.asarray(pillow.fromarray(image).resize((new_width, new_height), pillow.Resampling.BILINEAR))
    padded = (-(-length // STRIDE) * STRIDE for length in (new_height, new_width))  # rounded up
    tensor = np.zeros((3, *padded), np.float32)
    tensor[:, :new_height, :new_width] = np.moveaxis(resized[..., ::-1] - MEAN_BGR, -1, 0)
    return tensor, ratio


def paste_mask(
    mask: NDArray[np.float32], box: NDArray[np.float32], threshold: float, value: float, out: NDArray[np.float32]
) -> None:
    """Raise `out` to `value` where the mask, stretched over its box, is above the threshold.

    As the network's authors do, the mask first gets a border of zeros, and the box grows by as much, so that it fades
    at its edges; corners are cut to whole pixels, both of which belong to the box.
    """
    n_cells = len(mask) + 2
    centre, half = (box[2:] + box[:2]) * 0.5, (box[2:] - box[:2]) * 0.5 * (n_cells / len(mask))
    left, top = (int(edge) for edge in centre - half)
    right, bottom = (int(edge) for edge in centre + half)
    rows, down = _cells(top, bottom, out.shape[0], n_cells)
    columns, across = _cells(left, right, out.shape[1], n_cells)
    part = out[rows, columns]
    np.maximum(part, np.float32(value), out=part, where=interpolated(np.pad(mask, 1), down, across) > threshold)


def _cells(first: int, last: int, n_pixels: int, n_cells: int) -> tuple[slice, Floats]:
    """Return, along one axis, a box's pixels in the image, and where among the cells each lies."""
    start = max(first, 0)
    stop = max(start, min(last + 1, n_pixels))
    pixels = np.arange(start, stop) - first
    return slice(start, stop), np.asarray((pixels + 0.5) * (n_cells / max(last - first + 1, 1)) - 0.5, np.float64)


YOLO_PERSON, YOLO_SURE = 0, 0.25
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
        label = YOLO_PERSON if wanted.target_class is None else wanted.target_class
        if label >= n_classes:
            raise InvalidInputError(
                f"target_class is {label}, but the network has the classes 0 to {n_classes - 1}.",
                code="network-class",
                argument="target_class",
            )
        least = YOLO_SURE if wanted.score_threshold is None else wanted.score_threshold
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
