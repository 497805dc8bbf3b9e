"""Readers of public data sets: `kaist`, the KAIST Multispectral Pedestrian Benchmark, and `msrs`, road scenarios."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bimichi.datasets.pedestrians import DataSet, Frame, list_frames, pedestrian_scenes, subfolder
from bimichi.errors import InvalidInputError
from bimichi.imaging import box_mask, boxes_of, read_image
from bimichi.imaging.formats.bbgt import SOURCE, read_bbgt
from bimichi.learning.scene import Scenes

NIGHT_SETS = frozenset({"set03", "set04", "set05", "set09", "set10", "set11"})  # of KAIST; the others are day

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
    preset: str = "default",
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
    preset : {"default", "paper"}
        See `bimichi.imaging.pedestrian_sources`.

    Returns
    -------
    Scenes
        A sequence of `Scene`, by number or name. It is checked now that each has its three files.

    References
    ----------
    .. [1] S. Hwang et al., "Multispectral Pedestrian Detection", CVPR 2015. The licence of the data is CC BY-NC-SA 4.0.
    """
    images, annotations = (subfolder(Path(root), name, source=SOURCE) for name in ("images", "annotations"))
    groups = {}
    for video in sorted(images.glob("set*/V*")):
        part = video.relative_to(images).as_posix()
        groups[f"{part}/"] = Frame(video / "visible", video / "lwir", annotations / part)
    people = frozenset([person_labels] if isinstance(person_labels, str) else person_labels)
    frames = list_frames(groups, names, lambda name: night is None or night == (name[:5] in NIGHT_SETS), root, SOURCE)
    return pedestrian_scenes(
        KAIST, frames, lambda path, shape: _boxes(path, shape, people), n_sources, n_segments, preset
    )


def _boxes(path: Path, shape: tuple[int, int], people: frozenset[str]) -> dict[str, Any]:
    """Read boxes of people, and which pixels to ignore because only other boxes cover them."""
    found = read_bbgt(path, shape)[None]
    wanted = np.array([label in people for label in found.labels], dtype=np.bool_) & ~found.is_ignored
    boxes, others = found.boxes[wanted], found.boxes[~wanted]
    return {"boxes": boxes, "ignore": box_mask(others, shape) & ~box_mask(boxes, shape)}


PERSON = 2  # the class of people in the label images of MSRS

MSRS = DataSet(
    "MSRS, Multi-Spectral Road Scenarios (github.com/Linfeng-Tang/MSRS)",
    "none stated",
    "L. Tang, J. Yuan, H. Zhang, X. Jiang and J. Ma, "
    '"PIAFusion: A progressive infrared and visible image fusion network based on illumination aware", '
    "Information Fusion, 2022; made from Q. Ha et al., "
    '"MFNet: Towards real-time semantic segmentation for autonomous vehicles with multi-spectral scenes", IROS 2017.',
)


def msrs(
    root: str | PathLike[str],
    names: str | Iterable[str] | None = None,
    *,
    night: bool | None = None,
    n_sources: Literal[3, 6] = 3,
    n_segments: int = 300,
    preset: str = "default",
) -> Scenes:
    """List scenes of MSRS [1]_, each read when needed.

    Its layout is ``vi``, ``ir`` and ``label`` (or ``Segmentation_labels``), in `root` or in its folders ``train`` and
    ``test``. A superpixel is a positive bag if the box around some connected region of people touches it; the label
    images themselves are the truth, for scores alone.

    Parameters
    ----------
    root : path
        The folder that holds ``vi``, or ``train`` and ``test``.
    names : str or iterable of str, optional
        Scenes ("00537D"; "test/00537D" where there are such folders), or a folder ("test"); all by default.
    night : bool, optional
        True for night scenes only (their names end in N), False for day scenes (D).
    n_sources, n_segments, preset
        As in `kaist`.

    Returns
    -------
    Scenes
        As in `kaist`. Scenes without people have negative bags only.

    References
    ----------
    .. [1] L. Tang et al., "PIAFusion", Information Fusion, 2022. No licence is stated for the data.
    """
    top = Path(root)
    parts = [part for part in ("train/", "test/") if (top / part / "vi").is_dir()]
    kinds = (("vi",), ("ir",), ("label", "Segmentation_labels"))
    groups = {
        part: Frame(*(subfolder(top / part, *kind, source=MSRS.source) for kind in kinds))
        for part in ([""] if (top / "vi").is_dir() or not parts else parts)
    }
    frames = list_frames(groups, names, lambda name: night is None or night == name.endswith("N"), root, MSRS.source)
    return pedestrian_scenes(MSRS, frames, _labels, n_sources, n_segments, preset)


def _labels(path: Path, shape: tuple[int, int]) -> dict[str, Any]:
    """Read the truth of an image of labels, and boxes around it."""
    classes = read_image(path)
    if classes.shape != shape or classes.dtype.kind not in "iu":
        rule = f"{path} must hold one class (a whole number) per pixel, {shape}"
        raise InvalidInputError(f"{rule}, got {classes.dtype} {classes.shape}. Get it from {MSRS.source}.")
    truth = classes == PERSON
    return {"boxes": boxes_of(truth), "truth": truth}
