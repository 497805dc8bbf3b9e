"""Masks: an image of one band that gives the class of each pixel, 0 for background."""

from pathlib import Path

from bimichi.io.images import is_image
from bimichi.io.open import read_band
from bimichi.scenes.annotations import AnnotationFormat, Annotations, ImageAnnotations, boxes_array


def read_mask(path: Path) -> Annotations:
    """Read the mask of one image, under None; -1 where it has no data."""
    return {None: ImageAnnotations(boxes_array([]), [], mask=read_band(path))}


MASK = AnnotationFormat(
    "mask",
    "an image of one band, 0 for background, above 0 for targets and below 0 for unknown; one file per image",
    lambda path, start: is_image(start),
    read_mask,
)
