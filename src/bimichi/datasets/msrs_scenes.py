"""`msrs`: scenes of MSRS, multi-spectral road scenarios."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from bimichi.datasets.folders import Folders, list_frames, subfolder
from bimichi.datasets.pedestrians import DataSet, pedestrian_scenes
from bimichi.errors import InvalidInputError
from bimichi.imaging import boxes_of, read_image
from bimichi.learning.scene import Scenes

__all__ = ["msrs"]

PERSON = 2
"""The class of people in its label images."""

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
    n_sources, n_segments
        As in `kaist`.

    Returns
    -------
    Scenes
        As in `kaist`. Scenes without people have negative bags only.

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
        folders = [subfolder(top / part, *kind, source=MSRS.source) for kind in kinds]
        groups.append(Folders(f"{part}/" if part else "", *folders))
    frames = list_frames(groups, names, lambda name: night is None or night == name.endswith("N"), root, MSRS.source)
    return pedestrian_scenes(MSRS, frames, _known, n_sources, n_segments)


def _known(path: Path, shape: tuple[int, int]) -> dict[str, Any]:
    """Read the truth of an image of labels, and boxes around it."""
    classes = read_image(path)
    if classes.shape != shape or classes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{path} must hold one class (a whole number) per pixel, {shape}, got {classes.dtype} {classes.shape}. "
            f"Get it from {MSRS.source}."
        )
    truth = classes == PERSON
    return {"boxes": boxes_of(truth), "truth": truth}
