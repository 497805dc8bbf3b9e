"""`kaist`: frames of the KAIST Multispectral Pedestrian Benchmark."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi.datasets.folders import Folders, list_frames, subfolder
from bimichi.datasets.pedestrians import DataSet, pedestrian_scenes
from bimichi.errors import InvalidInputError
from bimichi.imaging import box_mask
from bimichi.learning.scene import Scenes

__all__ = ["NIGHT_SETS", "kaist"]

NIGHT_SETS = frozenset({"set03", "set04", "set05", "set09", "set10", "set11"})
"""The sets that its authors list as night; the others, 00 to 02 and 06 to 08, are day."""

KAIST = DataSet(
    "the KAIST Multispectral Pedestrian Benchmark (github.com/SoonminHwang/rgbt-ped-detection)",
    "CC BY-NC-SA 4.0",
    "S. Hwang, J. Park, N. Kim, Y. Choi and I. S. Kweon, "
    '"Multispectral Pedestrian Detection: Benchmark Dataset and Baseline", CVPR 2015.',
)


def kaist(
    root: str | PathLike[str],
    names: str | Iterable[str] | None = None,
    *,
    night: bool | None = None,
    person_labels: str | Iterable[str] = ("person", "people", "cyclist"),
    n_sources: Literal[3, 6] = 3,
    n_segments: int = 300,
) -> Scenes:
    """List frames of the KAIST Multispectral Pedestrian Benchmark [1]_, each read when needed.

    Its layout is ``images/setSS/VVVV/{visible,lwir}/IFFFFF.{jpg,png}`` and ``annotations/setSS/VVVV/IFFFFF.txt``. There
    is no truth for each pixel: the inside of the boxes stands for it, and the scenes say so (``truth_from="boxes"``).

    Parameters
    ----------
    root : path
        The folder that holds ``images`` and ``annotations``.
    names : str or iterable of str, optional
        Frames ("set09/V000/I01139") or folders of them ("set09", "set09/V000"); all by default.
    night : bool, optional
        True for night sets only, False for day sets.
    person_labels : str or iterable of str, default=("person", "people", "cyclist")
        Annotations that count as people. All others (by default, "person?"), and those that the annotators marked to
        be ignored, are excluded from scoring, and the bags that only they touch are excluded from learning.
    n_sources : {3, 6}
        See `bimichi.imaging.pedestrian_sources`.
    n_segments : int, default=300
        Approximate number of superpixels (bags) per frame.

    Returns
    -------
    Scenes
        A sequence of `Scene`, by number or name. It is checked now that each has its three files.

    References
    ----------
    .. [1] S. Hwang et al., "Multispectral Pedestrian Detection: Benchmark Dataset and Baseline", CVPR 2015. The data
       are licensed CC BY-NC-SA 4.0.
    """
    images, annotations = (subfolder(Path(root), name, source=KAIST.source) for name in ("images", "annotations"))
    groups = [
        Folders(f"{part}/", images / part / "visible", images / part / "lwir", annotations / part)
        for part in (video.relative_to(images).as_posix() for video in sorted(images.glob("set*/V*")))
    ]
    people = frozenset([person_labels] if isinstance(person_labels, str) else person_labels)
    frames = list_frames(
        groups, names, lambda name: night is None or night == (name[:5] in NIGHT_SETS), root, KAIST.source
    )
    return pedestrian_scenes(KAIST, frames, lambda path, shape: _known(path, shape, people), n_sources, n_segments)


def _known(path: Path, shape: tuple[int, int], people: frozenset[str]) -> dict[str, Any]:
    """Read boxes of people, and which pixels to ignore because only other boxes cover them."""
    boxes, others = _annotations(path, people, shape)
    return {"boxes": boxes, "ignore": box_mask(others, shape) & ~box_mask(boxes, shape)}


def _annotations(
    path: Path, people: frozenset[str], shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return boxes of people, and of what is ignored, from a file of the format ``bbGt version=3``.

    Its lines are: label, x, y, width, height, occlusion, the same four of the visible part, ignore, angle.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror}. Get it from {KAIST.source}.") from error
    boxes: dict[bool, list[list[float]]] = {True: [], False: []}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("%"):
            continue
        label, *fields = line.split()
        try:
            values = [float(field) for field in fields]
            x, y, width, height = values[:4]
        except ValueError:
            raise _damaged(path, number, line, "'label x y width height ...' is expected") from None
        if not np.isfinite(values).all() or width <= 0 or height <= 0:
            raise _damaged(path, number, line, "width and height must be above 0, and all numbers finite")
        if x >= shape[1] or y >= shape[0] or x + width <= 0 or y + height <= 0:
            raise _damaged(path, number, line, f"the box lies outside the image of {shape[1]} x {shape[0]} pixels")
        ignored = any(values[9:10])
        boxes[label in people and not ignored].append([x, y, width, height])
    return np.reshape(boxes[True], (-1, 4)), np.reshape(boxes[False], (-1, 4))


def _damaged(path: Path, number: int, line: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}, line {number}: {line!r} is damaged: {why}. Correct it, or get it from {KAIST.source}."
    )
