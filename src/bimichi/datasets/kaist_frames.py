"""`kaist`: frames of the KAIST Multispectral Pedestrian Benchmark."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bimichi.datasets.folders import Folders, list_frames, subfolder
from bimichi.datasets.pedestrians import DataSet, pedestrian_scenes
from bimichi.imaging import box_mask
from bimichi.imaging.formats.bbgt import SOURCE, read_bbgt
from bimichi.learning.scene import Scenes

__all__ = ["NIGHT_SETS", "kaist"]

NIGHT_SETS = frozenset({"set03", "set04", "set05", "set09", "set10", "set11"})
"""The sets that its authors list as night; the others, 00 to 02 and 06 to 08, are day."""

KAIST = DataSet(
    SOURCE,
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
    images, annotations = (subfolder(Path(root), name, source=SOURCE) for name in ("images", "annotations"))
    groups = [
        Folders(f"{part}/", images / part / "visible", images / part / "lwir", annotations / part)
        for part in (video.relative_to(images).as_posix() for video in sorted(images.glob("set*/V*")))
    ]
    people = frozenset([person_labels] if isinstance(person_labels, str) else person_labels)
    frames = list_frames(groups, names, lambda name: night is None or night == (name[:5] in NIGHT_SETS), root, SOURCE)
    return pedestrian_scenes(KAIST, frames, lambda path, shape: _known(path, shape, people), n_sources, n_segments)


def _known(path: Path, shape: tuple[int, int], people: frozenset[str]) -> dict[str, Any]:
    """Read boxes of people, and which pixels to ignore because only other boxes cover them."""
    found = read_bbgt(path, shape)[None]
    wanted = np.array([label in people for label in found.labels], dtype=np.bool_) & ~found.is_ignored
    boxes, others = found.boxes[wanted], found.boxes[~wanted]
    return {"boxes": boxes, "ignore": box_mask(others, shape) & ~box_mask(boxes, shape)}
