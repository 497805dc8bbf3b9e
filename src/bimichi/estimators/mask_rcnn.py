"""A Mask R-CNN with the signature of the ONNX model zoo's [2]_: opened, run on images, its masks pasted [1]_.

References
----------
.. [1] K. He, G. Gkioxari, P. Dollár and R. Girshick, "Mask R-CNN", ICCV 2017.
.. [2] ONNX model zoo, vision/object_detection_segmentation/mask-rcnn; converted from maskrcnn-benchmark.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.integral.planes import check_n_jobs

SHORTER_SIDE = 800
STRIDE = 32
MEAN_BGR = np.array([102.9801, 115.9465, 122.7717], np.float32)

INPUTS = (("tensor(float)", (3, None, None)),)
OUTPUTS = (
    ("tensor(float)", (None, 4)),
    ("tensor(int64)", (None,)),
    ("tensor(float)", (None,)),
    ("tensor(float)", (None, 1, 28, 28)),
)
EXPECTED = (
    "expected the signature of the ONNX model zoo's Mask R-CNN: one float32 input (3, height, width); outputs boxes "
    "(n, 4) float32, labels (n,) int64, scores (n,) float32, masks (n, 1, 28, 28) float32"
)


class Detections(NamedTuple):
    """What a network found in an image, with one entry each per detection.

    Boxes are corners (x1, y1, x2, y2) in pixels of the image, labels are classes; the masks, (n, 1, 28, 28), are how
    likely each cell of a box belongs to the object.
    """

    boxes: NDArray[np.float32]
    labels: Ints
    scores: NDArray[np.float32]
    masks: NDArray[np.float32]


def open_network(path: str | PathLike[str], n_jobs: int | None = None) -> Any:
    """Open an ONNX file in ONNX Runtime and check its signature; several threads may run the session at once."""
    try:
        found = Path(path).is_file()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"model must be the path of an ONNX file, got {path!r}.") from error
    if not found:
        raise ModelFileError(f"model {str(path)!r} is not a file; give the path of an ONNX file.")
    onnxruntime = import_optional("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = check_n_jobs(n_jobs)
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no base of their own
        raise ModelFileError(f"model {str(path)!r} cannot be opened as an ONNX file: {error}") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if not (_fit(inputs, INPUTS) and _fit(outputs, OUTPUTS)):
        raise ModelFileError(
            f"model {str(path)!r} has inputs {_signature(inputs)} and outputs {_signature(outputs)}; {EXPECTED}."
        )
    return session


def detect(session: Any, image: NDArray[np.uint8]) -> Detections:
    """Run the network on an RGB image (height, width, 3)."""
    tensor, ratio = prepare_image(image)
    size = f"an image of {image.shape[0]} x {image.shape[1]} pixels, resized to {tensor.shape[1]} x {tensor.shape[2]}"
    try:
        found = session.run(None, {session.get_inputs()[0].name: tensor})
    except Exception as error:  # as above
        raise ModelFileError(f"The network failed on {size}: {error}") from error
    n = found[0].size // 4
    if any(array.shape != (n, *shape[1:]) for array, (_, shape) in zip(found, OUTPUTS, strict=True)):
        shapes = ", ".join(str(array.shape) for array in found)
        raise ModelFileError(f"The network gave outputs of the shapes {shapes}; {EXPECTED}.")
    if not all(np.isfinite(array).all() for array in found):
        raise ModelFileError(f"The network gave NaN or infinite values on {size}.")
    return Detections(found[0] / np.float32(ratio), *found[1:])


def prepare_image(image: NDArray[np.uint8]) -> tuple[NDArray[np.float32], float]:
    """Return the image as the network needs it, and the factor by which it was resized.

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
    rows, row, next_row, down = _cells(top, bottom, out.shape[0], n_cells)
    columns, column, next_column, across = _cells(left, right, out.shape[1], n_cells)
    padded = np.pad(mask, 1)
    lines = padded[row] * (1 - down[:, None]) + padded[next_row] * down[:, None]
    inside = lines[:, column] * (1 - across) + lines[:, next_column] * across > threshold
    part = out[rows, columns]
    np.maximum(part, np.float32(value), out=part, where=inside)


def import_pillow() -> Any:
    """Return Pillow's Image module."""
    return import_optional("PIL.Image", extra="detector")


def _cells(
    first: int, last: int, n_pixels: int, n_cells: int
) -> tuple[slice, NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return, along one axis, a box's pixels in the image, the two cells each lies between, and how far along."""
    start = max(first, 0)
    stop = max(start, min(last + 1, n_pixels))
    pixels = np.arange(start, stop) - first
    at = np.clip((pixels + 0.5) * (n_cells / max(last - first + 1, 1)) - 0.5, 0, n_cells - 1)
    cell = at.astype(np.intp)
    return slice(start, stop), cell, np.minimum(cell + 1, n_cells - 1), at - cell


def _fit(nodes: Sequence[Any], expected: Sequence[tuple[str, tuple[int | None, ...]]]) -> bool:
    """Whether nodes have these types and sizes; sizes that a file leaves open are checked when the network has run."""
    return len(nodes) == len(expected) and all(
        node.type == kind
        and len(sizes := node.shape or [None] * len(shape)) == len(shape)
        and not any(isinstance(a, int) and b is not None and a != b for a, b in zip(sizes, shape, strict=True))
        for node, (kind, shape) in zip(nodes, expected, strict=True)
    )


def _signature(nodes: Sequence[Any]) -> str:
    return ", ".join(f"{node.name} {node.type} ({', '.join(map(str, node.shape))})" for node in nodes) or "(none)"
