"""Which pixels of an image are targets, and which are unknown, by its annotations."""

from typing import NamedTuple

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import check_shape
from bimichi.imaging.formats import ImageAnnotations
from bimichi.imaging.regions import box_pixels, is_outside, outside_error, shown_box
from bimichi.imaging.shapes import Disc, Shape


class Regions(NamedTuple):
    """Masks of the targets of an image, and of what is neither target nor background."""

    targets: Flags
    ignored: Flags


def rasterise(
    found: ImageAnnotations,
    shape: tuple[int, int],
    target: str | None = None,
    point_radius: float = 0.0,
    count_ignored: bool = False,
) -> Regions:
    """Mark the pixels of targets and of ignored objects.

    Parameters
    ----------
    found : ImageAnnotations
        In pixels; `bimichi.imaging.placement.in_pixels` converts other units.
    shape : (int, int)
        Height and width of the image.
    target : str, optional
        The class of targets: a label, or a value of the mask; by default all classes.
    point_radius : float, default=0
        The radius in pixels of points that have none; 0 is the pixel that holds the point.
    count_ignored : bool, default=False
        Whether objects that a file marks to be ignored (crowds, difficult ones) count as any other.

    Returns
    -------
    Regions
        A pixel belongs to a box, polygon or disc if its square overlaps it, as in `box_mask`. Pixels of targets are
        not ignored.

    Raises
    ------
    InvalidInputError
        If an object lies outside the image, or the mask has another size.
    """
    height, width = check_shape(shape)
    if found.units != "pixels":
        raise InvalidInputError(f"Annotations are in {found.units}; convert them by in_pixels first.")
    targets, ignored = np.zeros((height, width), np.bool_), np.zeros((height, width), np.bool_)
    out = np.zeros(len(found.boxes), np.bool_) if count_ignored else found.is_ignored
    outlines = found.outlines
    for k, label in enumerate(found.labels):
        if out[k]:
            _paint(ignored, found.boxes[k], outlines[k], point_radius, k, strict=False)
        elif target in (None, label):
            _paint(targets, found.boxes[k], outlines[k], point_radius, k)
    mask, unknown = found.mask_of(target), found.unknown
    if mask is not None and unknown is not None:
        if mask.shape != targets.shape:
            raise InvalidInputError(
                f"The mask has {mask.shape[1]} x {mask.shape[0]} pixels, but the image {width} x {height}."
            )
        targets |= mask
        ignored |= unknown
    return Regions(targets, ignored & ~targets)


def _paint(mask: Flags, box: Floats, shape: Shape | None, radius: float, k: int, strict: bool = True) -> None:
    """Mark the pixels of one object; outside the image, it is an error if `strict`."""
    if isinstance(shape, Disc) and not shape.radius:
        shape = Disc(shape.x, shape.y, radius)
        box = shape.box
    if is_outside(box, mask.shape):
        if strict:
            raise outside_error(f"Object {k + 1}, in the box {shown_box(box)},", mask.shape)
    elif shape is None:
        mask[box_pixels(box, mask.shape)] = True
    else:
        shape.paint(mask)
