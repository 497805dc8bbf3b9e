"""Annotation formats, one per module, and the one shape that files of every format are read into.

`bimichi.imaging.annotations` registers the formats.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError

__all__ = ["AnnotationFormat", "Annotations", "ImageAnnotations", "boxes_array"]


@dataclass(frozen=True, eq=False)
class ImageAnnotations:
    """Where the targets of one image are.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels.
    labels : sequence of str or None
        The class of each box; None where the file gives none.
    ignored : sequence of bool, optional
        Whether each box is neither target nor background. By default none is ignored.
    mask : ndarray of shape (height, width), optional
        The class of each pixel as a number, 0 for background.
    """

    boxes: Floats
    labels: Sequence[str | None]
    ignored: Sequence[bool] = ()
    mask: NDArray[Any] | None = None

    def boxes_of(self, label: str | None) -> Floats:
        """Return the boxes of this class, or of all for None, without the ignored ones."""
        wanted = np.array([label in (None, own) for own in self.labels], dtype=np.bool_)
        return self.boxes[wanted & ~self.is_ignored]

    @property
    def is_ignored(self) -> Flags:
        """`ignored` as an array, one flag per box."""
        return np.array(self.ignored or np.zeros(len(self.boxes)), dtype=np.bool_)

    def mask_of(self, label: str | None) -> Flags | None:
        """Return where the mask has this class, a number, or any class for None; None if there is no mask."""
        if self.mask is None:
            return None
        if label is None:
            return np.asarray(self.mask > 0)
        try:
            return np.asarray(self.mask == float(label))
        except ValueError as error:
            raise InvalidInputError(f"target must be a value of the mask, a number, got {label!r}.") from error


Annotations = Mapping[str | None, ImageAnnotations]
"""Annotations by image, as the file names it; under None if the file is about one image and does not name it."""


@dataclass(frozen=True)
class AnnotationFormat:
    """A kind of annotation file.

    Parameters
    ----------
    name : str
        A short name, such as "csv".
    description : str
        One line for the documentation and for errors, without a full stop.
    recognises : callable
        ``recognises(path, start)`` decides by the name or the first bytes of a file whether it is of this kind.
    read : callable
        ``read(path)`` returns `ImageAnnotations` by image, or raises `InvalidInputError` naming file, place, remedy.
    """

    name: str
    description: str
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Annotations]


def boxes_array(boxes: Sequence[Sequence[float]]) -> Floats:
    """Return boxes as an array of shape (n_boxes, 4), also if there are none."""
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)
