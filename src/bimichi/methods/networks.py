"""ONNX files of instance-segmentation networks: opened, run, and checked against the signatures that are known."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._types import Floats
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
