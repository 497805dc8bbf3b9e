"""`msrs`: scenes of MSRS, multi-spectral road scenarios."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Literal

from bimichi.datasets.folders import Folders, Frame, list_frames, read_pair, subfolder
from bimichi.datasets.pedestrians import pedestrian_scene
from bimichi.errors import InvalidInputError
from bimichi.imaging import boxes_of, read_image
from bimichi.learning.scene import Scene, Scenes

__all__ = ["msrs"]

PERSON = 2
"""The class of people in its label images."""

SOURCE = "MSRS, Multi-Spectral Road Scenarios (github.com/Linfeng-Tang/MSRS)"
CITATION = (
    "L. Tang, J. Yuan, H. Zhang, X. Jiang and J. Ma, "
    '"PIAFusion: A progressive infrared and visible image fusion network based on illumination aware", '
    "Information Fusion, 2022; made from Q. Ha et al., "
    '"MFNet: Towards real-time semantic segmentation for autonomous vehicles with multi-spectral scenes", IROS 2017.'
)


def msrs(
    root: str | PathLike[str],
    names: str | Iterable[str] | None = None,
    *,
    night: bool | None = None,
    n_sources: Literal[3, 6] = 3,
    n_segments: int = 300,
) -> Scenes:
    """List scenes of MSRS [1]_, to be read one at a time.

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
        True for scenes of the night alone (their names end in N), False for those of the day (D).
    n_sources : {3, 6}
        See `bimichi.imaging.pedestrian_sources`.
    n_segments : int, default=300
        About how many superpixels (bags) a scene has.

    Returns
    -------
    Scenes
        A sequence of `Scene`, by number or name. That each has its three files is checked now. Scenes without people
        have negative bags alone.

    References
    ----------
    .. [1] L. Tang et al., "PIAFusion: A progressive infrared and visible image fusion network based on illumination
       aware", Information Fusion, 2022. No licence is stated for the data.
    """
    top = Path(root)
    parts = [part for part in ("train", "test") if (top / part / "vi").is_dir()]
    if (top / "vi").is_dir() or not parts:
        parts = [""]
    groups = []
    for part in parts:
        kinds = (("vi",), ("ir",), ("label", "Segmentation_labels"))
        folders = [subfolder(top / part, *kind, source=SOURCE) for kind in kinds]
        groups.append(Folders(f"{part}/" if part else "", *folders))
    frames = list_frames(groups, names, lambda name: night is None or night == name.endswith("N"), root, SOURCE)
    return Scenes(list(frames), lambda name: _read(name, frames[name], n_sources, n_segments))


def _read(name: str, frame: Frame, n_sources: Literal[3, 6], n_segments: int) -> Scene:
    rgb, thermal = read_pair(frame)
    classes = read_image(frame.known)
    if classes.shape != thermal.shape or classes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{frame.known} must hold one class (a whole number) a pixel, {thermal.shape}, got {classes.dtype} "
            f"{classes.shape}. Get it from {SOURCE}."
        )
    truth = classes == PERSON
    return pedestrian_scene(
        rgb,
        thermal,
        boxes_of(truth),
        truth=truth,
        name=name,
        n_sources=n_sources,
        n_segments=n_segments,
        licence="none stated",
        citation=CITATION,
    )
