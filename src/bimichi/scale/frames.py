"""Thousands of frames: all cores, one progress bar, and what fails is told at the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from bimichi._progress import progress_bar
from bimichi.errors import InvalidInputError
from bimichi.integral.matching import fuser_of
from bimichi.integral.planes import check_n_jobs
from bimichi.scale.gdal import gdal_settings
from bimichi.scale.rasters import fuse_raster
from bimichi.scale.stacks import Sources

__all__ = ["FrameResults", "fuse_frames"]


@dataclass(frozen=True)
class FrameResults:
    """What became of the frames.

    Attributes
    ----------
    done : list of Path
        Files that were written, in the order of the frames.
    skipped : list of Path
        Files that were there already.
    failed : dict of str to str
        Names of frames that could not be fused, and why.
    """

    done: list[Path] = field(default_factory=list)
    skipped: list[Path] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = f"{len(self.done):,} done, {len(self.skipped):,} skipped, {len(self.failed):,} failed"
        return "\n".join([counts, *(f"{name}: {reason}" for name, reason in self.failed.items())])


def fuse_frames(
    model: Any,
    frames: Mapping[str, Sources] | Sequence[Sources],
    output_folder: str | PathLike[str],
    *,
    resume: bool = False,
    names: Sequence[str] | None = None,
    align: bool = False,
    compress: str | None = "deflate",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FrameResults:
    """Fuse many frames, each a set of files, each to a GeoTIFF of its own.

    Parameters
    ----------
    model : fitted Fusion, BiCapacity or Capacity
        What decides.
    frames : mapping of name to sources, or sequence of sources
        Of each frame, what `fuse_raster` takes as `sources`. Frames of a sequence are named by their first file,
        without folder and ending.
    output_folder : path
        Where ``<name>.tif`` goes; it is created if need be.
    resume : bool, default=False
        Whether frames whose file is there are skipped. Files appear when they are whole, so one that is there is done.
    names, align, compress
        As in `fuse_raster`.
    n_jobs : int, optional
        How many frames are fused at a time; as many as there are cores by default. The results do not depend on it.
    verbose : int, default=0
        Above 0, a progress bar is shown on a terminal.

    Returns
    -------
    FrameResults
        What was done, skipped, and failed. A frame that fails, for whatever reason, stops no other.

    Notes
    -----
    However large it is, a frame under way takes about 130 MB at most.
    """
    jobs = check_n_jobs(n_jobs)
    fuser_of(model)
    named = _named(frames)
    folder = Path(output_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"output_folder cannot be {folder}: {error.strerror or error}.") from error
    targets = {name: folder / f"{name}.tif" for name in named}
    left = [name for name, path in targets.items() if not (resume and path.exists())]
    failed: dict[str, str] = {}

    def fuse(name: str) -> None:
        try:
            fuse_raster(model, named[name], targets[name], names=names, align=align, compress=compress, n_jobs=1)
        except Exception as error:  # whatever it is, the other frames are worth their fusion
            failed[name] = str(error) or type(error).__name__

    with gdal_settings(), progress_bar("fusing frames", len(left), verbose) as advance:
        pool = ThreadPoolExecutor(jobs)
        try:
            for _ in pool.map(fuse, left):
                advance(1, None)
        finally:
            pool.shutdown(cancel_futures=True)
    return FrameResults(
        done=[targets[name] for name in left if name not in failed],
        skipped=[targets[name] for name in named if name not in set(left)],
        failed={name: failed[name] for name in left if name in failed},
    )


def _named(frames: Mapping[str, Sources] | Sequence[Sources]) -> Mapping[str, Sources]:
    if isinstance(frames, str | PathLike):
        raise InvalidInputError(f"frames must be several sets of files, got the single path {frames!s}.")
    if not frames:
        raise InvalidInputError("frames is empty; give at least one.")
    if not isinstance(frames, Mapping):
        firsts = [frame if isinstance(frame, str | PathLike) else next(iter(frame), "") for frame in frames]
        stems = [Path(first).stem for first in firsts]
        name, times = Counter(stems).most_common(1)[0]
        if times > 1:
            raise InvalidInputError(
                f"{times} frames would be named {name!r} by their first file; give a mapping of names to files."
            )
        frames = dict(zip(stems, frames, strict=True))
    for name in frames:
        if not isinstance(name, str) or Path(name).name != name or "\0" in name:
            raise InvalidInputError(f"The name of a frame must be that of a file, without folder, got {name!r}.")
    return frames
