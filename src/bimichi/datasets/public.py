"""Readers of public data sets: `kaist`, the KAIST Multispectral Pedestrian Benchmark, and `msrs`, road scenarios."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_choice
from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.text import SOURCE, read_bbgt
from bimichi.io.images import read_image
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.labels import label_bags
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import box_mask, boxes_of
from bimichi.scenes.superpixels import superpixels
from bimichi.sources import operators as make
from bimichi.sources.bands import Plane

PRESETS: dict[str, tuple[float, float]] = {"default": (0.0, 1.5), "paper": (0.1, 0.8)}
"""Offset of the adaptive threshold, and gamma of the thermal image."""
FULL_THERMAL = (0.0, 99.9)  # percentiles, as the range in use varies from scene to scene; the hottest pixels are lamps


def pedestrian_sources(
    rgb: ArrayLike, thermal: ArrayLike, n_sources: int = 3, preset: str = "default"
) -> tuple[list[Plane], list[str]]:
    """Make sources of a night scene: those of the paper [1]_, or six.

    Parameters
    ----------
    rgb : array-like of shape (height, width, 3) or (height, width)
        The visible image.
    thermal : array-like of shape (height, width) or (height, width, 3)
        The thermal image of the same size, warm bright.
    n_sources : {3, 6}
        3: adaptive threshold of the grey image, whose bright areas (lamps and what they light) are negative; equalised
        grey; gamma corrected thermal. 6: also local contrast and edge strength of the thermal image, and thermal minus
        grey.
    preset : {"default", "paper"}
        "default" was chosen by how well learned measures rank people in night scenes. "paper" comes near the errors
        that the paper prints for single sources: an offset of the threshold by which about 5 % of a night frame count
        as bright, and a gamma that leaves the thermal image brighter.

    Returns
    -------
    planes : list of ndarray of float32, shape (height, width)
        In [-1, 1].
    names : list of str
        One per plane.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.
    """
    check_choice(n_sources, "n_sources", (3, 6))
    offset, gamma = PRESETS[check_choice(preset, "preset", tuple(PRESETS))]
    light = make.grey(rgb)
    warm = (make.to_bipolar(thermal, percentiles=FULL_THERMAL) + 1) / 2
    if light.shape != warm.shape:
        raise InvalidInputError(
            f"rgb has height and width {light.shape}, thermal {warm.shape}; resample them to the same pixels.",
            code="image-sizes",
            argument="rgb",
        )
    sources = {
        "adaptive threshold": make.adaptive_threshold(light, offset=offset),
        "equalised grey": make.equalize(light),
        "gamma thermal": make.gamma_correction(warm, gamma),
    }
    if n_sources == 6:
        sources["thermal contrast"] = make.local_contrast(warm)
        sources["thermal minus grey"] = make.difference(warm, light)
        sources["thermal edges"] = make.edge_strength(warm, spread=8.0)
    return list(sources.values()), list(sources)


SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".txt")


class DataSet(NamedTuple):
    """The origin of a data set, its licence, and its citation."""

    source: str
    licence: str
    citation: str


class Frame(NamedTuple):
    """The colour image, the thermal image and the annotations of a frame; or the folders that hold those of many."""

    visible: Path
    thermal: Path
    annotations: Path


def subfolder(folder: Path, *names: str, source: str) -> Path:
    """Return the first of these folders in `folder` that exists; `source` says where the data come from."""
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    missing = " or ".join(map(repr, names))
    raise InvalidInputError(
        f"{folder} has no folder {missing}; as root, pass the folder of {source}.", code="data-folder"
    )


def list_frames(
    groups: Mapping[str, Frame],
    names: str | Iterable[str] | None,
    keep: Callable[[str], bool],
    root: str | PathLike[str],
    source: str,
) -> dict[str, Frame]:
    """Find the wanted frames, and check that all their files exist, before any is read.

    `groups` are folders whose files belong together by name, under the prefix of the frames' names. `names` lists
    frames, or folders of them ("set09/V000" takes all in it); `keep` selects names.
    """
    files = cache(_files)  # folders are only read where frames are wanted
    places = {f"{prefix}{stem}": (group, stem) for prefix, group in groups.items() for stem in files(group.visible)}
    places = {name: where for name, where in places.items() if keep(name)}
    if not places:
        raise InvalidInputError(f"{Path(root)} holds no such frame. Get the data from {source}.", code="frame-missing")
    frames = {}
    for name in _select_names(list(places), names, root):
        group, stem = places[name]
        for folder in group:
            if stem not in files(folder):
                missing = f"{folder / stem} (with an ending such as .png or .txt) is missing"
                raise InvalidInputError(
                    f"{missing}, but there is {files(group.visible)[stem]}. Get it from {source}.", code="frame-count"
                )
        frames[name] = Frame(*(files(folder)[stem] for folder in group))
    return frames


def _files(folder: Path) -> dict[str, Path]:
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.stem: path for path in inside if path.suffix.lower() in SUFFIXES}


def _select_names(available: list[str], names: str | Iterable[str] | None, root: str | PathLike[str]) -> list[str]:
    if names is None:
        return available
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if not any(f"{frame}/".startswith(f"{name}/") for frame in available):
            rule = f"names has {name!r}, which is neither a frame nor a folder of frames in {Path(root)}"
            raise InvalidInputError(
                f"{rule}; the first of {len(available)} there is {available[0]!r}.", code="frame-count"
            )
    return [frame for frame in available if f"{frame}/".startswith(tuple(f"{name}/" for name in wanted))]


def pedestrian_scenes(
    data: DataSet,
    frames: Mapping[str, Frame],
    read_annotations: Callable[..., dict[str, Any]],
    n_sources: Literal[3, 6],
    n: int,
    preset: str = "default",
) -> Dataset:
    """List frames of a data set, each made into a scene of about `n` bags when it is read.

    `read_annotations` reads annotations from a path, given the image's shape: `boxes`, and `truth` or `ignore`.
    """

    def read(name: str) -> Scene:
        rgb, thermal = _read_pair(frames[name])
        annotations = read_annotations(frames[name].annotations, rgb.shape[:2])
        return pedestrian_scene(
            rgb, thermal, **annotations, data=data, name=name, n_sources=n_sources, n_segments=n, preset=preset
        )

    return Dataset(list(frames), read)


def pedestrian_scene(
    rgb: NDArray[np.uint8],
    thermal: NDArray[Any],
    boxes: ArrayLike,
    *,
    data: DataSet,
    name: str,
    n_sources: Literal[3, 6],
    n_segments: int,
    truth: Flags | None = None,
    ignore: Flags | None = None,
    preset: str = "default",
) -> Scene:
    """Make sources and bags as in the paper: superpixels of the colour image; those that meet a box are positive.

    Without `truth`, it is the inside of the boxes. Bags that only meet `ignore` are left out. A scene without people
    has negative bags alone.
    """
    planes, names = pedestrian_sources(rgb, thermal, n_sources, preset)
    segments = superpixels(rgb, n_segments)
    boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    shape = (rgb.shape[0], rgb.shape[1])
    return Scene(
        np.stack(planes, axis=-1),
        name,
        tuple(names),
        segments=segments,
        labels=label_bags(segments, boxes=boxes, ignore=ignore, require_both=False),
        truth=box_mask(boxes, shape) if truth is None else truth,
        ignore=ignore,
        boxes=boxes,
        rgb=rgb,
        thermal=thermal,
        truth_from="boxes" if truth is None else "pixels",
        licence=data.licence,
        citation=data.citation,
    )


def _read_pair(frame: Frame) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Read a colour image and the thermal one that belongs to it, of one size; grey stored as colour becomes grey."""
    rgb, thermal = read_image(frame.visible), read_image(frame.thermal)
    if thermal.ndim == 3:
        thermal = np.ascontiguousarray(thermal[..., 0])
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise InvalidInputError(
            f"{frame.visible} must be an RGB image of 8 bits, got {rgb.dtype} {rgb.shape}.", code="image-8-bit"
        )
    if rgb.shape[:2] != thermal.shape:
        both = f"{frame.visible} and {frame.thermal}"
        raise InvalidInputError(
            f"{both} must be of one size, got {rgb.shape[:2]} and {thermal.shape}.", code="image-sizes"
        )
    return rgb, thermal


NIGHT_SETS = frozenset({"set03", "set04", "set05", "set09", "set10", "set11"})  # of KAIST; the others are day

KAIST = DataSet(
    SOURCE,
    "CC BY-NC-SA 4.0",
    "S. Hwang, J. Park, N. Kim, Y. Choi and I. S. Kweon, "
    '"Multispectral Pedestrian Detection: Benchmark Dataset and Baseline", CVPR 2015.',
)

PERSON = 2  # the class of people in the label images of MSRS

MSRS = DataSet(
    "MSRS, Multi-Spectral Road Scenarios (github.com/Linfeng-Tang/MSRS)",
    "none stated",
    "L. Tang, J. Yuan, H. Zhang, X. Jiang and J. Ma, "
    '"PIAFusion: A progressive infrared and visible image fusion network based on illumination aware", '
    "Information Fusion, 2022; made from Q. Ha et al., "
    '"MFNet: Towards real-time semantic segmentation for autonomous vehicles with multi-spectral scenes", IROS 2017.',
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
) -> Dataset:
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
        See `bimichi.datasets.pedestrian_sources`.
    n_segments : int, default=300
        Approximate number of superpixels (bags) per frame.
    preset : {"default", "paper"}
        See `bimichi.datasets.pedestrian_sources`.

    Returns
    -------
    Dataset
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
    annotations = read_bbgt(path, shape)[None]
    wanted = np.array([label in people for label in annotations.labels], dtype=np.bool_) & ~annotations.is_ignored
    boxes, others = annotations.boxes[wanted], annotations.boxes[~wanted]
    return {"boxes": boxes, "ignore": box_mask(others, shape) & ~box_mask(boxes, shape)}


def msrs(
    root: str | PathLike[str],
    names: str | Iterable[str] | None = None,
    *,
    night: bool | None = None,
    n_sources: Literal[3, 6] = 3,
    n_segments: int = 300,
    preset: str = "default",
) -> Dataset:
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
    Dataset
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
        raise InvalidInputError(
            f"{rule}, got {classes.dtype} {classes.shape}. Get it from {MSRS.source}.", code="frame-image"
        )
    truth = classes == PERSON
    return {"boxes": boxes_of(truth), "truth": truth}
