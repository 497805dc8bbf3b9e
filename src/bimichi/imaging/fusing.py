"""Images of one scene fused by a rule, strip by strip, so that memory is little more than that of the images."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi.errors import InvalidInputError
from bimichi.imaging.collecting import SceneCollection, SceneFiles
from bimichi.imaging.reading import read_images
from bimichi.imaging.recipes import AS_IS, RECIPES, choose_recipes, make_source
from bimichi.imaging.writing import write_image
from bimichi.integral.matching import match_sources
from bimichi.integral.planes import Planes, check_n_jobs
from bimichi.rule import FusionRule

__all__ = ["FusedScene", "fuse_scene", "fused_strips", "read_for_rule", "write_strips"]

STRIP = 1 << 16
"""Pixels that a thread fuses at a time, so that intermediate results stay small."""

Strip = NDArray[np.float32]


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
) -> FusedScene:
    """Fuse the images of a scene to a file; see `read_for_rule`, `fused_strips` and `write_strips`."""
    images, recipes = read_for_rule(rule, scene, collection, names)
    height, width = images[0].shape[:2]
    files, missing = write_strips(output, fused_strips(rule, images, recipes, n_jobs), (height, width), png)
    return FusedScene(files, height * width, missing)


def read_for_rule(
    rule: FusionRule, scene: SceneFiles, collection: SceneCollection, names: Sequence[str] | None = None
) -> tuple[list[NDArray[Any]], list[str]]:
    """Return the images of a scene in the order of a rule's sources, values as in the files, and their recipes.

    The `collection` that the scene is from names the sources, unless `names` are given, in the order of the files.
    Recipes are those of the rule, or follow from the types of the images if it has none.
    """
    images = read_images(scene.files)
    called, expected = collection.names_of_sources(names, len(images)), rule.source_names
    quote = " Quote patterns, or the shell replaces each by all its files." if len(called) > len(expected) else ""
    remedy = f"If they are the same, name them with names (--names), in the order given.{quote}"
    positions = match_sources(expected, len(expected), called, len(called), f"Scene {scene.name!r}", remedy)
    images = [images[k] for k in positions]
    return images, choose_recipes(rule.recipes, images, expected)


def fused_strips(
    rule: FusionRule, images: Sequence[NDArray[Any]], recipes: Sequence[str], n_jobs: int | None = None
) -> Iterator[Strip]:
    """Yield the fused map in strips of rows, from the top; only a few of them are in memory at a time.

    There is one image per source of the rule, of shape (height, width) or (height, width, 3), and one recipe.
    """
    pointwise = [RECIPES[recipe].pointwise for recipe in recipes]
    whole = [
        image if alone else make_source(image, recipe)
        for image, recipe, alone in zip(images, recipes, pointwise, strict=True)
    ]
    rest = [recipe if alone else AS_IS for recipe, alone in zip(recipes, pointwise, strict=True)]
    height, width = images[0].shape[:2]
    rows = max(1, STRIP // width)

    def strip(start: int) -> Strip:
        planes = [make_source(image[start : start + rows], recipe) for image, recipe in zip(whole, rest, strict=True)]
        try:
            fused: Strip = rule.fuse(planes, n_jobs=1).astype(np.float32, copy=False)
        except InvalidInputError:
            remedy = "Map it to the range that the model was trained on."
            Planes(planes, names=rule.source_names).check_range(-1.0, remedy)
            raise
        return fused

    starts, jobs = range(0, height, rows), check_n_jobs(n_jobs)
    with ThreadPoolExecutor(jobs) as pool:
        for k in range(0, len(starts), 2 * jobs):
            yield from pool.map(strip, starts[k : k + 2 * jobs])


def write_strips(path: Path, strips: Iterator[Strip], shape: tuple[int, int], png: bool) -> tuple[list[Path], int]:
    """Write a map in [-1, 1]: a TIFF of float32, a PNG of 8 bits, or both; each whole or not at all.

    `strips` of float32 are the map from the top; all but the last have the same number of rows. Returns the files, and
    the number of pixels that are NaN and so 0 in the PNG.
    """
    picture = path.with_suffix(".png") if png or path.suffix.lower() == ".png" else None
    levels = np.empty(shape if picture else (0, 0), np.uint8)
    missing = 0

    def watched() -> Iterator[Strip]:
        nonlocal missing
        row = 0
        for strip in strips:
            if picture:
                missing += int(np.isnan(strip).sum())
                levels[row : row + len(strip)] = np.rint((np.nan_to_num(strip, nan=-1.0) + 1) * np.float32(127.5))
                row += len(strip)
            yield strip

    files = []
    if path == picture:
        for _ in watched():
            pass
    else:
        _write_tiff(path, watched(), shape)
        files.append(path)
    if picture:
        write_image(picture, levels)
        files.append(picture)
    return files, missing


def _write_tiff(path: Path, strips: Iterator[Strip], shape: tuple[int, int]) -> None:
    first = next(strips)
    content = (np.ascontiguousarray(strip).tobytes() for strip in chain([first], strips))
    options = {"shape": shape, "dtype": np.float32, "rowsperstrip": len(first), "photometric": "minisblack"}
    atomic_write(path, lambda file: import_optional("tifffile").imwrite(file, content, metadata=None, **options))
