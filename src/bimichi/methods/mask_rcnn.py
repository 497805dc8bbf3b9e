"""Mask R-CNN [1]_ as the ONNX model zoo [2]_ has it, and as torchvision exports it: run, and its masks painted.

References
----------
.. [1] K. He, G. Gkioxari, P. Dollár and R. Girshick, "Mask R-CNN", ICCV 2017.
.. [2] ONNX model zoo, vision/object_detection_segmentation/mask-rcnn; converted from maskrcnn-benchmark.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats, Ints
from bimichi.methods.networks import FLOAT, WHOLE, Nodes, Wanted, check_outputs, fit, import_pillow, interpolated, run

PERSON, SURE = 1, 0.7
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
        label = PERSON if wanted.target_class is None else wanted.target_class
        least = SURE if wanted.score_threshold is None else wanted.score_threshold
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
