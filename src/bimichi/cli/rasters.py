"""Georeferenced rasters on the command line: fused in windows, on the grid of the first file."""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi.cli.recipes import AS_IS, POINTWISE
from bimichi.errors import InvalidInputError
from bimichi.imaging import SOURCE_RECIPES
from bimichi.rule import FusionRule

__all__ = ["are_rasters", "fuse_georeferenced"]

GEO_TAGS = {33550, 33922, 34264, 34735}
"""Tags of a TIFF by which it says where it lies: scale, tie points, transform, keys."""

BESIDE = (".tfw", ".tifw", ".tiffw", ".wld")
"""Endings of files that say so in its place."""


def are_rasters(files: Sequence[Path]) -> bool:
    """Whether all files are TIFFs and one of them says where on Earth it lies."""
    if not all(file.suffix.lower() in (".tif", ".tiff") for file in files) or find_spec("rasterio") is None:
        return False
    return any(_placed(file) for file in files)


def _placed(file: Path) -> bool:
    if not _may_be_placed(file):
        return False
    from bimichi.scale.gdal import open_source

    try:
        with open_source(file) as opened:
            return opened.crs is not None or not opened.transform.is_identity
    except InvalidInputError:  # what is wrong with it is told where it is read
        return False


def _may_be_placed(file: Path) -> bool:
    """Whether there is anything for rasterio to look at; to import that takes longer than to fuse an image."""
    if any(file.with_suffix(ending).exists() for ending in BESIDE) or file.with_name(f"{file.name}.aux.xml").exists():
        return True
    tifffile = import_optional("tifffile")
    try:
        with tifffile.TiffFile(file) as opened:
            return any(tag.code in GEO_TAGS for tag in opened.pages[0].tags)
    except (OSError, ValueError, IndexError, tifffile.TiffFileError):  # told where it is read
        return False


def fuse_georeferenced(
    model: FusionRule, files: Sequence[Path], output: Path, names: Sequence[str] | None, **options: Any
) -> int:
    """Fuse rasters by `bimichi.scale.fuse_raster`, whose options these are, by the recipes of the model.

    Returns the number of pixels.
    """
    from bimichi.integral.matching import Fuser
    from bimichi.scale.gdal import open_source
    from bimichi.scale.rasters import fuse_raster

    fuse = partial(_fuse, model, _ranges(model, files))
    fuse_raster(Fuser(fuse, len(model.source_names), model.source_names), files, output, names=names, **options)
    with open_source(output) as written:
        return int(written.width * written.height)


def _fuse(
    model: FusionRule, ranges: Sequence[tuple[str, float, float] | None], planes: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    ready = [
        plane if made is None else SOURCE_RECIPES[made[0]](plane, low=made[1], high=made[2])
        for plane, made in zip(planes, ranges, strict=True)
    ]
    return model.fuse(ready, n_jobs=1)


def _ranges(model: FusionRule, files: Sequence[Path]) -> list[tuple[str, float, float] | None]:
    """Of each source, its recipe and the range of its type, since windows are read as floats; None for as it is."""
    from bimichi.scale.gdal import open_source

    kinds = set()
    for file in files:
        with open_source(file) as opened:
            kinds.update(opened.dtypes)
    kind = np.dtype(kinds.pop())
    whole = kind.kind in "iu"
    recipes = model.recipes or ["to_bipolar" if whole else AS_IS] * len(model.source_names)
    wrong = next((recipe for recipe in recipes if recipe not in POINTWISE), None)
    if wrong is not None:
        raise InvalidInputError(
            f"The model makes a source by {wrong}, which looks at a whole image; rasters are fused in windows. "
            "Apply the recipe first and train on what it gives, or remove the georeference."
        )
    if all(recipe == AS_IS for recipe in recipes):
        return [None] * len(recipes)
    if kinds:
        raise InvalidInputError("The bands are of several types; convert them to one, so that their range is known.")
    low, high = (float(np.iinfo(kind).min), float(np.iinfo(kind).max)) if whole else (0.0, 1.0)
    return [None if recipe == AS_IS else (recipe, low, high) for recipe in recipes]
