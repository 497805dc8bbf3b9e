"""Fusing images by a model, strip by strip, and many scenes side by side."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.cli.inputs import ImageSet, ImageSets
from bimichi.cli.recipes import AS_IS, POINTWISE
from bimichi.cli.sources import choose_recipes, make_source, read_images, source_names
from bimichi.cli.strips import write_strips
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.integral.planes import Planes, check_n_jobs
from bimichi.rule import FusionRule

__all__ = ["FusedScene", "SceneFuser", "fused_strips", "matched"]

STRIP = 1 << 16
"""Pixels that a thread takes at a time: all that is made of them on the way stays small."""


@dataclass
class FusedScene:
    """What became of a scene."""

    name: str
    files: list[Path] = field(default_factory=list)
    pixels: int = 0
    missing: int = 0
    problem: str = ""


@dataclass(frozen=True)
class SceneFuser:
    """Fuses scenes, each to its file; rasters in windows, other images in strips."""

    model: FusionRule
    image_sets: ImageSets
    names: Sequence[str] | None
    png: bool = False
    align: bool = False
    overviews: bool = False

    def run(self, scenes: Sequence[tuple[ImageSet, Path]], n_jobs: int | None) -> Iterator[FusedScene]:
        """Yield what became of each scene, in order; many are fused at a time, a thread each.

        One scene alone takes all threads, and what goes wrong with it is raised.
        """
        if not self.image_sets.many:
            for one, path in scenes:
                yield self.fuse(one, path, n_jobs)
            return
        pool = ThreadPoolExecutor(check_n_jobs(n_jobs))
        try:
            yield from pool.map(lambda scene: self._try(*scene), scenes)
        finally:
            pool.shutdown(cancel_futures=True)

    def _try(self, one: ImageSet, path: Path) -> FusedScene:
        try:
            return self.fuse(one, path, 1)
        except (BimichiError, OSError, MemoryError) as error:
            return FusedScene(one.name, problem=str(error) or type(error).__name__)

    def fuse(self, one: ImageSet, path: Path, n_jobs: int | None) -> FusedScene:
        """Fuse one scene."""
        from bimichi.cli.rasters import are_rasters, fuse_georeferenced

        if path.suffix.lower() != ".png" and are_rasters(one.files):
            if self.png:
                raise InvalidInputError(
                    f"{one.files[0]} is georeferenced, and fused to a GeoTIFF alone; leave out --png."
                )
            options = {"align": self.align, "overviews": self.overviews, "n_jobs": n_jobs}
            pixels = fuse_georeferenced(self.model, one.files, path, self.names, **options)
            return FusedScene(one.name, [path], pixels)
        images = matched(self.model, read_images(one), self.image_sets, self.names)
        shape = (images[0].shape[0], images[0].shape[1])
        files, missing = write_strips(path, fused_strips(self.model, images, n_jobs), shape, self.png)
        return FusedScene(one.name, files, shape[0] * shape[1], missing)


def matched(
    model: FusionRule, images: list[NDArray[Any]], image_sets: ImageSets, names: Sequence[str] | None
) -> list[NDArray[Any]]:
    """Return images in the order of the model's sources."""
    called = source_names(image_sets, names, len(images))
    if sorted(called) != sorted(model.source_names):
        hint = " Quote patterns, else the shell replaces them." if len(called) > len(model.source_names) else ""
        raise InvalidInputError(
            f"The model fuses {len(model.source_names)} sources: {', '.join(model.source_names)}. "
            f"Given are {len(called)}: {', '.join(called)}. "
            f"If they are the same, say which is which with --names, in the order given.{hint}"
        )
    return [images[called.index(name)] for name in model.source_names]


def fused_strips(
    model: FusionRule, images: Sequence[NDArray[Any]], n_jobs: int | None = None
) -> Iterator[NDArray[np.float32]]:
    """Yield the fused map in strips of rows, from above; few of them are in memory at a time.

    Parameters
    ----------
    model : FusionRule
        The model.
    images : sequence of ndarray of shape (height, width) or (height, width, 3)
        One a source, in the order of the model.
    n_jobs : int, optional
        Number of threads; all cores by default.
    """
    recipes = model.recipes or choose_recipes(None, images, model.source_names)
    whole = [
        image if recipe in POINTWISE else make_source(image, recipe)
        for image, recipe in zip(images, recipes, strict=True)
    ]
    rest = [recipe if recipe in POINTWISE else AS_IS for recipe in recipes]
    height, width = images[0].shape[:2]
    rows = max(1, STRIP // width)

    def strip(start: int) -> NDArray[np.float32]:
        planes = [make_source(image[start : start + rows], recipe) for image, recipe in zip(whole, rest, strict=True)]
        try:
            return model.fuse(planes, n_jobs=1).astype(np.float32, copy=False)
        except InvalidInputError:
            remedy = "Bring it to the range that the model was trained on."
            Planes(planes, names=model.source_names).check_range(-1.0, remedy)
            raise

    starts, jobs = range(0, height, rows), check_n_jobs(n_jobs)
    with ThreadPoolExecutor(jobs) as pool:
        for k in range(0, len(starts), 2 * jobs):
            yield from pool.map(strip, starts[k : k + 2 * jobs])
