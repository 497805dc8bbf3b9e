"""Folders of images as in public data sets: list the frames, choose some, and report missing files."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.imaging import read_image

__all__ = ["Folders", "Frame", "list_frames", "read_pair", "subfolder"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".txt")


class Folders(NamedTuple):
    """Folders whose files belong together by name: colour images, thermal images, and their annotations."""

    prefix: str
    visible: Path
    thermal: Path
    known: Path


class Frame(NamedTuple):
    """The files of one frame."""

    visible: Path
    thermal: Path
    known: Path


def subfolder(folder: Path, *names: str, source: str) -> Path:
    """Return the first of these folders in `folder` that exists; `source` says where the data come from."""
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    raise InvalidInputError(
        f"{folder} has no folder {' or '.join(map(repr, names))}; as root, pass the folder of {source}."
    )


def list_frames(
    groups: Sequence[Folders],
    names: str | Iterable[str] | None,
    keep: Callable[[str], bool],
    root: str | PathLike[str],
    source: str,
) -> dict[str, Frame]:
    """Find the wanted frames, and check that all their files exist, before any is read.

    `names` lists frames, or folders of them ("set09/V000" takes all in it); `keep` selects names.
    """
    found = {f"{group.prefix}{stem}": (group, path) for group in groups for stem, path in _files(group.visible).items()}
    found = {name: where for name, where in found.items() if keep(name)}
    if not found:
        raise InvalidInputError(f"{Path(root)} holds no such frame. Get the data from {source}.")
    chosen = _choose(list(found), names, root)
    used = {found[name][0] for name in chosen}
    thermal = {group: _files(group.thermal) for group in used}
    known = {group: _files(group.known) for group in used}
    frames = {}
    for name in chosen:
        group, path = found[name]
        for folder, files in ((group.thermal, thermal), (group.known, known)):
            if path.stem not in files[group]:
                raise InvalidInputError(
                    f"{folder / path.stem} (with an ending such as .png or .txt) is missing, but there is {path}. "
                    f"Get it from {source}."
                )
        frames[name] = Frame(path, thermal[group][path.stem], known[group][path.stem])
    return frames


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES}


def _choose(found: list[str], names: str | Iterable[str] | None, root: str | PathLike[str]) -> list[str]:
    if names is None:
        return found
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if not any(f"{one}/".startswith(f"{name}/") for one in found):
            raise InvalidInputError(
                f"names has {name!r}, which is neither a frame nor a folder of frames in "
                f"{Path(root)}; the first of {len(found)} there is {found[0]!r}."
            )
    return [one for one in found if f"{one}/".startswith(tuple(f"{name}/" for name in wanted))]


def read_pair(frame: Frame) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Read a colour image and the thermal one that belongs to it, of one size; grey stored as colour becomes grey."""
    rgb, thermal = read_image(frame.visible), read_image(frame.thermal)
    if thermal.ndim == 3:
        thermal = np.ascontiguousarray(thermal[..., 0])
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise InvalidInputError(f"{frame.visible} must be an RGB image of 8 bits, got {rgb.dtype} {rgb.shape}.")
    if rgb.shape[:2] != thermal.shape:
        raise InvalidInputError(
            f"{frame.visible} and {frame.thermal} must be of one size, got {rgb.shape[:2]} and {thermal.shape}."
        )
    return rgb, thermal
