"""Fusing images by a model, strip by strip."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.cli.inputs import ImageSets
from bimichi.cli.model import FusionModel
from bimichi.cli.recipes import AS_IS, POINTWISE
from bimichi.cli.sources import choose_recipes, make_source, source_names
from bimichi.errors import InvalidInputError
from bimichi.planes import Planes, check_n_jobs

__all__ = ["fused_strips", "matched"]

STRIP = 1 << 16
"""Pixels that a thread takes at a time: all that is made of them on the way stays small."""


def matched(
    model: FusionModel, images: list[NDArray[Any]], image_sets: ImageSets, names: Sequence[str] | None
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
    model: FusionModel, images: Sequence[NDArray[Any]], n_jobs: int | None = None
) -> Iterator[NDArray[np.float32]]:
    """Yield the fused map in strips of rows, from above; few of them are in memory at a time.

    Parameters
    ----------
    model : FusionModel
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
