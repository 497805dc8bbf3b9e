"""From files to sources in [-1, 1]: every source by a named recipe, which is kept in the model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.cli.inputs import ImageSet, ImageSets
from bimichi.cli.recipes import AS_IS
from bimichi.errors import InvalidInputError
from bimichi.imaging import SOURCE_RECIPES, read_image
from bimichi.measures.base import check_names

__all__ = ["choose_recipes", "make_source", "read_images", "size", "source_names"]


def read_images(image_set: ImageSet) -> list[NDArray[Any]]:
    """Read the images of one scene, one a source, as they are in the files; bands of a single file are sources."""
    files = image_set.files
    images = [read_image(file) for file in files]
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != images[0].shape[:2]:
            raise InvalidInputError(
                f"{files[0]} is {size(images[0])} and {file} is {size(image)}; sources must be of one size, pixel upon "
                "pixel. Register and resample them first."
            )
    if len(images) == 1 and images[0].ndim == 3:
        return list(np.moveaxis(images[0], -1, 0))
    return images


def choose_recipes(recipes: Sequence[str] | None, images: Sequence[NDArray[Any]], names: Sequence[str]) -> list[str]:
    """Return one recipe a source.

    Parameters
    ----------
    recipes : sequence of str, optional
        What was asked for, one for all or one each. By default `to_bipolar` for whole numbers, over the range of their
        type, and none for floats.
    images : sequence of ndarray
        Images of one band, or, if a recipe was asked for, of three.
    names : sequence of str
        What the sources are called.
    """
    if recipes is not None and len(recipes) not in (1, len(images)):
        raise InvalidInputError(
            f"{len(recipes)} recipes for {len(images)} sources: {', '.join(recipes)}. Name one for all, or one each."
        )
    by_type = [AS_IS if image.dtype.kind == "f" else "to_bipolar" for image in images]
    chosen = by_type if recipes is None else list(recipes) * (len(images) // len(recipes))
    for image, recipe, name in zip(images, chosen, names, strict=True):
        if image.ndim == 3 and (image.shape[2] != 3 or recipes is None or recipe == AS_IS):
            remedy = " --recipe to_bipolar takes the lightness of RGB." if image.shape[2] == 3 else ""
            raise InvalidInputError(
                f"Source {name!r} has {image.shape[2]} bands; of several sources each must have one.{remedy}"
            )
    return chosen


def source_names(image_sets: ImageSets, given: Sequence[str] | None, n_sources: int) -> list[str]:
    """Return the names of the sources: what was `given`, or those of files, folders or patterns, or of bands."""
    if given is not None:
        return list(check_names(given, n_sources))
    if len(image_sets.source_names) != n_sources:
        return [f"band {k + 1}" for k in range(n_sources)]
    return list(check_names(image_sets.source_names, n_sources))


def make_source(image: NDArray[Any], recipe: str) -> NDArray[Any]:
    """Return one source of an image, or of a strip of it if the recipe is in `POINTWISE`."""
    return image if recipe == AS_IS else SOURCE_RECIPES[recipe](image)


def size(image: NDArray[Any]) -> str:
    """Write the size of an image for people."""
    return f"{image.shape[1]} x {image.shape[0]} pixels"
