"""Images of one scene fused by a rule, strip by strip, so that memory is little more than that of the images."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Image, Plane
from bimichi.imaging.collecting import SceneCollection, SceneFiles
from bimichi.imaging.reading import read_images
from bimichi.imaging.recipes import AS_IS, RECIPES, choose_recipes, make_source
from bimichi.imaging.writing import write_image
from bimichi.integral.matching import match_sources
from bimichi.integral.planes import Planes, check_n_jobs
from bimichi.rule import FusionRule

STRIP = 1 << 16  # pixels that a thread fuses at a time, so that intermediate results stay small


class FusedScene(NamedTuple):
    """The files that were written for a scene, its pixels, and how many of them are NaN and so 0 in a PNG."""

    files: list[Path]
    pixels: int
    missing: int = 0


def fuse_scene(
    rule: FusionRule,
    scene: SceneFiles,
    collection: SceneCollection,
    output: Path,
    names: Sequence[str] | None = None,
    png: bool = False,
    n_jobs: int | None = None,
    prior_shift: bool = False,
) -> FusedScene:
    """Fuse the images of a scene, as `read_for_rule` reads them, to a TIFF, a PNG, or (`png`) both.

    With `prior_shift`, the share of targets is estimated on the scene itself; see `FusionRule.shifted`.
    """
    images, recipes = read_for_rule(rule, scene, collection, names)
    height, width = images[0].shape[:2]
    strips = (shifted_strips if prior_shift else fused_strips)(rule, images, recipes, n_jobs)
    files, missing = _write_strips(output, strips, (height, width), png)
    return FusedScene(files, height * width, missing)


def shifted_strips(
    rule: FusionRule, images: Sequence[Image], recipes: Sequence[str], n_jobs: int | None = None
) -> Iterator[Plane]:
    """Yield probabilities for the share of targets that the scene itself suggests; its integrals are held in memory."""
    if rule.link is None:
        raise InvalidInputError(
            "Only the share of targets behind probabilities can be shifted, and this model gives none. Train it with "
            "objective='logistic', or leave out prior_shift (--prior-shift)."
        )
    strips = list(fused_strips(replace(rule, link=None), images, recipes, n_jobs))
    link = rule.link.adapted(np.concatenate([strip.ravel() for strip in strips]))
    for strip in strips:
        yield link.probability(strip).astype(np.float32, copy=False)


def read_for_rule(
    rule: FusionRule, scene: SceneFiles, collection: SceneCollection, names: Sequence[str] | None = None
) -> tuple[list[Image], list[str]]:
    """Return the images of a scene in the order of a rule's sources, values as in the files, and their recipes.

    The sources have the `names`, or those of the scene's `collection`, in the order of the files. Recipes are those of
    the rule, or follow from the types of the images if it has none.
    """
    images = read_images(scene.files)
    called, expected = collection.names_of_sources(names, len(images)), rule.source_names
    quote = " Quote patterns, or the shell replaces each by all its files." if len(called) > len(expected) else ""
    remedy = f"If they are the same, name them with names (--names), in the order given.{quote}"
    positions = match_sources(expected, len(expected), called, len(called), f"Scene {scene.name!r}", remedy)
    images = [images[k] for k in positions]
    return images, choose_recipes(rule.recipes, images, expected)


def fused_strips(
    rule: FusionRule, images: Sequence[Image], recipes: Sequence[str], n_jobs: int | None = None
) -> Iterator[Plane]:
    """Yield the fused map in strips of rows, from the top; only a few of them are in memory at a time."""
    pointwise = [RECIPES[recipe].pointwise for recipe in recipes]
    whole = [
        image if alone else make_source(image, recipe)
        for image, recipe, alone in zip(images, recipes, pointwise, strict=True)
    ]
    rest = [recipe if alone else AS_IS for recipe, alone in zip(recipes, pointwise, strict=True)]
    rows = max(1, STRIP // images[0].shape[1])

    def strip(start: int) -> Plane:
        planes = [make_source(image[start : start + rows], recipe) for image, recipe in zip(whole, rest, strict=True)]
        try:
            fused: Plane = rule.fuse(planes, n_jobs=1).astype(np.float32, copy=False)
        except InvalidInputError:
            remedy = "Map it to the range that the model was trained on."
            Planes(planes, names=rule.source_names).check_range(-1.0, remedy)
            raise
        return fused

    starts, jobs = range(0, len(images[0]), rows), check_n_jobs(n_jobs)
    with ThreadPoolExecutor(jobs) as pool:
        for k in range(0, len(starts), 2 * jobs):
            yield from pool.map(strip, starts[k : k + 2 * jobs])


def _write_strips(path: Path, strips: Iterator[Plane], shape: tuple[int, int], png: bool) -> tuple[list[Path], int]:
    """Write a map in [-1, 1]: a TIFF of float32, a PNG of 8 bits, or both; each whole or not at all.

    All `strips` but the last have the same number of rows. Returns the files, and the number of pixels that are NaN and
    so 0 in the PNG.
    """
    picture = path.with_suffix(".png") if png or path.suffix.lower() == ".png" else None
    levels: list[NDArray[np.uint8]] = []
    missing = 0

    def watched() -> Iterator[Plane]:
        nonlocal missing
        for strip in strips:
            if picture:
                missing += int(np.isnan(strip).sum())
                levels.append(np.rint((np.nan_to_num(strip, nan=-1.0) + 1) * np.float32(127.5)).astype(np.uint8))
            yield strip

    if path == picture:
        deque(watched(), maxlen=0)
    else:
        _write_tiff(path, watched(), shape)
    if picture:
        write_image(picture, np.concatenate(levels))
    return [path] if picture in (None, path) else [path, picture], missing


def _write_tiff(path: Path, strips: Iterator[Plane], shape: tuple[int, int]) -> None:
    first = next(strips)
    content = (np.ascontiguousarray(strip).tobytes() for strip in chain([first], strips))
    options = {"shape": shape, "dtype": np.float32, "rowsperstrip": len(first), "photometric": "minisblack"}
    atomic_write(path, lambda file: import_optional("tifffile").imwrite(file, content, metadata=None, **options))
