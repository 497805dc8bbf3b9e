"""Thousands of frames or scenes on all cores, with one progress bar, and failures reported at the end."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from bimichi._progress import progress_bar
from bimichi.errors import InvalidInputError, with_code
from bimichi.fuse.images import FusedScene, fuse_scene, match_scene, unknown_share
from bimichi.fuse.rasters import Sources, fuse_raster, fuse_windows
from bimichi.integral.labelled import fuser_of
from bimichi.integral.planes import check_n_jobs, in_threads
from bimichi.io.dataset import SceneCollection
from bimichi.io.raster import gdal_settings
from bimichi.rule import FusionRule


@dataclass(frozen=True)
class FrameResults:
    """The frames that were fused, skipped, or failed.

    Attributes
    ----------
    done : list of Path
        Files that were written, in the order of the frames.
    skipped : list of Path
        Files that existed already.
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
    """Fuse many frames, each of which is a set of files, to one GeoTIFF each.

    Parameters
    ----------
    model : fitted method, FusionRule, or Measure
        What fuses.
    frames : mapping of name to sources, or sequence of sources
        For each frame, the `sources` of `fuse_raster`. Frames of a sequence are named by their first file, without
        folder and suffix.
    output_folder : path
        Where ``<name>.tif`` is written; it is created if it does not exist.
    resume : bool, default=False
        Whether frames whose file exists are skipped. Files appear only when they are complete.
    names, align, compress
        As in `fuse_raster`.
    n_jobs : int, optional
        How many frames are fused at a time; by default one per core. The results do not depend on it.
    verbose : int, default=0
        Above 0, a progress bar is shown on a terminal.

    Returns
    -------
    FrameResults
        What was done, skipped, and failed. A frame that fails, for whatever reason, does not stop the others.

    Notes
    -----
    A frame in progress takes at most about 130 MB, whatever its size.
    """
    fuser_of(model)
    named = _frames_by_name(frames)
    folder = Path(output_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"output_folder cannot be {folder}: {error.strerror or error}.",
            code="output-folder-unusable",
            argument="output_folder",
        ) from error
    outputs = {name: [folder / f"{name}.tif"] for name in named}

    def fuse(name: str) -> None:
        fuse_raster(model, named[name], *outputs[name], names=names, align=align, compress=compress, n_jobs=1)

    with gdal_settings():
        return _fuse_each(fuse, outputs, resume, n_jobs, verbose)


def fuse_scenes(
    rule: FusionRule,
    scenes: SceneCollection,
    outputs: Mapping[str, Sequence[Path]],
    *,
    overviews: bool = False,
    prior_shift: bool = False,
    resume: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[dict[str, FusedScene], dict[str, str]]:
    """Fuse the scenes of a collection, each to its files in `outputs`: the map, and a PNG beside it if there are two.

    Returns what was written and why the others failed, both by scene. The errors of a lone scene are raised. `resume`,
    `n_jobs` and `verbose` are as in `fuse_frames`, `prior_shift` as in `fuse_scene`.
    """
    fused: dict[str, FusedScene] = {}
    threads = 1 if scenes.many else n_jobs

    def fuse(name: str) -> None:
        scene, path, png = scenes.open(name), outputs[name][0], len(outputs[name]) > 1
        if not scene.placed or path.suffix.lower() == ".png":
            fused[name] = fuse_scene(rule, scene, path, png, threads, prior_shift)
            return
        if png:
            raise InvalidInputError(
                f"Scene {name!r} is georeferenced and fused to a GeoTIFF only; leave out --png.", code="geotiff-only"
            )
        if prior_shift:
            raise unknown_share(name)
        matched, recipes = match_scene(rule, scene)
        own = rule if rule.bank is not None else replace(rule, recipes=tuple(recipes))
        fuse_windows(own, matched, path, overviews=overviews, n_jobs=threads)
        fused[name] = FusedScene([path], matched.shape[0] * matched.shape[1])

    if scenes.many:
        return fused, _fuse_each(fuse, outputs, resume, n_jobs, verbose).failed
    for name, paths in outputs.items():
        if not (resume and all(path.exists() for path in paths)):
            fuse(name)
    return fused, {}


def _fuse_each(
    fuse: Callable[[str], None],
    outputs: Mapping[str, Sequence[Path]],
    resume: bool,
    n_jobs: int | None,
    verbose: int,
) -> FrameResults:
    """Call ``fuse(name)`` for each of many frames, several at a time; one that fails does not stop the others.

    It writes the files of the frame, ``outputs[name]``, each whole or not at all, on one thread. Raises `ImportError`
    if a package is missing, as no frame can do without it.
    """
    skipped = [name for name, paths in outputs.items() if resume and all(path.exists() for path in paths)]
    left = [name for name in outputs if name not in set(skipped)]
    failed: dict[str, str] = {}

    def attempt(name: str) -> None:
        try:
            fuse(name)
        except ImportError:
            raise
        except Exception as error:  # whatever it is, the other frames can still be fused
            failed[name] = with_code(error) or type(error).__name__

    with (
        progress_bar("fusing frames", len(left), verbose) as advance,
        closing(in_threads(attempt, left, check_n_jobs(n_jobs))) as attempts,
    ):
        for _ in attempts:
            advance(1, None)
    return FrameResults(
        done=[path for name in left if name not in failed for path in outputs[name]],
        skipped=[path for name in skipped for path in outputs[name]],
        failed={name: failed[name] for name in left if name in failed},
    )


def _frames_by_name(frames: Mapping[str, Sources] | Sequence[Sources]) -> Mapping[str, Sources]:
    if isinstance(frames, str | PathLike):
        raise InvalidInputError(
            f"frames must be several sets of files, got the single path {frames!s}.",
            code="frames-single",
            argument="frames",
        )
    if not frames:
        raise InvalidInputError("frames is empty; give at least one.", code="frames-empty", argument="frames")
    if not isinstance(frames, Mapping):
        firsts = [frame if isinstance(frame, str | PathLike) else next(iter(frame), "") for frame in frames]
        stems = [Path(first).stem for first in firsts]
        name, times = Counter(stems).most_common(1)[0]
        if times > 1:
            raise InvalidInputError(
                f"{times} frames would be named {name!r} by their first file; give a mapping of names to files.",
                code="frames-names",
            )
        frames = dict(zip(stems, frames, strict=True))
    for name in frames:
        if not isinstance(name, str) or Path(name).name != name or "\0" in name:
            raise InvalidInputError(
                f"The name of a frame must be that of a file, without folder, got {name!r}.",
                code="frame-name",
                value=name,
            )
    return frames
