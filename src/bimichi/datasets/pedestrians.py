"""Scenes of people in colour and thermal images: list the frames of a data set's folders, read them, make scenes."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._types import Flags
from bimichi.errors import InvalidInputError
from bimichi.imaging import box_mask, label_bags, pedestrian_sources, read_image, superpixels
from bimichi.learning.scene import Scene, Scenes

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".txt")


class DataSet(NamedTuple):
    """Where a data set comes from, its licence, and its citation."""

    source: str
    licence: str
    citation: str


class Frame(NamedTuple):
    """The colour image, the thermal image and the annotations of a frame; or the folders that hold those of many."""

    visible: Path
    thermal: Path
    known: Path


def subfolder(folder: Path, *names: str, source: str) -> Path:
    """Return the first of these folders in `folder` that exists; `source` says where the data come from."""
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    missing = " or ".join(map(repr, names))
    raise InvalidInputError(f"{folder} has no folder {missing}; as root, pass the folder of {source}.")


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
    found = {f"{prefix}{stem}": (group, stem) for prefix, group in groups.items() for stem in files(group.visible)}
    found = {name: where for name, where in found.items() if keep(name)}
    if not found:
        raise InvalidInputError(f"{Path(root)} holds no such frame. Get the data from {source}.")
    frames = {}
    for name in _choose(list(found), names, root):
        group, stem = found[name]
        for folder in group:
            if stem not in files(folder):
                missing = f"{folder / stem} (with an ending such as .png or .txt) is missing"
                raise InvalidInputError(f"{missing}, but there is {files(group.visible)[stem]}. Get it from {source}.")
        frames[name] = Frame(*(files(folder)[stem] for folder in group))
    return frames


def _files(folder: Path) -> dict[str, Path]:
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.stem: path for path in inside if path.suffix.lower() in SUFFIXES}


def _choose(found: list[str], names: str | Iterable[str] | None, root: str | PathLike[str]) -> list[str]:
    if names is None:
        return found
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if not any(f"{one}/".startswith(f"{name}/") for one in found):
            rule = f"names has {name!r}, which is neither a frame nor a folder of frames in {Path(root)}"
            raise InvalidInputError(f"{rule}; the first of {len(found)} there is {found[0]!r}.")
    return [one for one in found if f"{one}/".startswith(tuple(f"{name}/" for name in wanted))]


def pedestrian_scenes(
    data: DataSet,
    frames: Mapping[str, Frame],
    known: Callable[..., dict[str, Any]],
    n_sources: Literal[3, 6],
    n: int,
    preset: str = "default",
) -> Scenes:
    """List frames of a data set, each made into a scene of about `n` bags when it is read.

    `known` reads annotations from a path, given the image's shape: `boxes`, and `truth` or `ignore`.
    """

    def read(name: str) -> Scene:
        rgb, thermal = _read_pair(frames[name])
        found = known(frames[name].known, rgb.shape[:2])
        return pedestrian_scene(
            rgb, thermal, **found, data=data, name=name, n_sources=n_sources, n_segments=n, preset=preset
        )

    return Scenes(list(frames), read)


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
        raise InvalidInputError(f"{frame.visible} must be an RGB image of 8 bits, got {rgb.dtype} {rgb.shape}.")
    if rgb.shape[:2] != thermal.shape:
        both = f"{frame.visible} and {frame.thermal}"
        raise InvalidInputError(f"{both} must be of one size, got {rgb.shape[:2]} and {thermal.shape}.")
    return rgb, thermal
