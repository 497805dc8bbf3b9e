"""Boxes, polygons and masks of targets, and the labels of bags that follow from them.

Coordinates are in pixels, x to the right, y down, from the upper left corner of the image: the pixel in row r and
column c is the square from (c, r) to (c + 1, r + 1). It belongs to a region if its square overlaps the region.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_number, is_xarray, refuse_masked
from bimichi._extras import import_optional
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.sources.bands import check_mask, check_shape

TOUCH = 1e-6  # pixels of overlap that may be due to rounding


def box_mask(boxes: ArrayLike, shape: tuple[int, int]) -> Flags:
    """Mark the pixels that overlap any of the boxes.

    Parameters
    ----------
    boxes : array-like of shape (n_boxes, 4)
        Boxes (x, y, width, height) in pixels, fractions allowed. Parts outside the image are cut off; a box without
        area, or entirely outside, is an error.
    shape : (int, int)
        Height and width of the image.

    Returns
    -------
    mask : ndarray of bool, shape (height, width)

    Examples
    --------
    >>> box_mask([(1, 0, 1.5, 1)], (2, 4)).astype(int)
    array([[0, 1, 1, 0],
           [0, 0, 0, 0]])
    """
    mask = np.zeros(check_shape(shape), np.bool_)
    array = _numbers(boxes, "boxes")
    if array.size and array.shape[1:] != (4,):
        raise InvalidInputError(
            f"boxes must have shape (n_boxes, 4): x, y, width, height, got {array.shape}.",
            code="boxes-shape",
            argument="boxes",
            value=array.shape,
        )
    for k, box in enumerate(array.reshape(-1, 4)):
        if (box[2:] <= 0).any():
            raise InvalidInputError(
                f"Box {k} {shown_box(box)} has no area; width and height must be above 0.", code="box-size"
            )
        if is_outside(box, mask.shape):
            raise outside_error(f"Box {k} {shown_box(box)}", mask.shape)
        mask[box_pixels(box, mask.shape)] = True
    return mask


def shown_box(box: Iterable[float]) -> str:
    """Write a box (x, y, width, height) for errors."""
    return f"({', '.join(f'{number:g}' for number in box)})"


def is_outside(box: Floats, shape: tuple[int, ...]) -> bool:
    """Whether a box overlaps no pixel of an image."""
    x, y, w, h = box
    return bool(x > shape[1] - TOUCH or y > shape[0] - TOUCH or x + w < TOUCH or y + h < TOUCH)


def outside_error(what: str, shape: tuple[int, ...]) -> InvalidInputError:
    """Return the error about a box that is outside the image."""
    return InvalidInputError(
        f"{what} lies outside the image of width {shape[1]} and height {shape[0]}. "
        "Boxes are (x, y, width, height) in pixels of this image.",
        code="shape-outside",
    )


def box_pixels(box: Floats, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return rows and columns of the pixels that overlap a box, which must overlap the image."""
    return _pixels(box[1], box[3], shape[0]), _pixels(box[0], box[2], shape[1])


def polygon_mask(polygons: Sequence[ArrayLike], shape: tuple[int, int]) -> Flags:
    """Mark the pixels that overlap any of the polygons.

    Parameters
    ----------
    polygons : sequence of array-like of shape (n_corners, 2)
        Corners (x, y) of each polygon, in order; the last is joined to the first. Where a polygon crosses itself, the
        even-odd rule applies. Parts outside the image are cut off; a polygon that overlaps no pixel is an error.
    shape : (int, int)
        Height and width of the image.

    Returns
    -------
    mask : ndarray of bool, shape (height, width)
    """
    height, width = check_shape(shape)
    mask = np.zeros((height, width), np.bool_)
    for k, polygon in enumerate(polygons):
        corners = _numbers(polygon, f"Polygon {k}")
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
            raise InvalidInputError(
                f"Polygon {k} must have shape (n_corners, 2) with at least 3 corners (x, y), got {corners.shape}.",
                code="polygon-points",
                value=corners.shape,
            )
        within, crossed = ring_pixels(corners, (height, width))
        part = within | crossed
        if not part.any():
            raise InvalidInputError(
                f"Polygon {k} overlaps no pixel of the image of width {width} and height {height}. "
                "Corners are (x, y) in pixels of this image.",
                code="shape-outside",
            )
        mask |= part
    return mask


def ring_pixels(corners: Floats, shape: tuple[int, ...]) -> tuple[Flags, Flags]:
    """Return which pixels have their centre inside a ring of corners (x, y), and which ones an edge crosses.

    Corners that miss a line between pixels by rounding alone are moved onto it. A pixel in neither array is wholly
    outside; one in the first alone is wholly inside.
    """
    height, width = shape[0], shape[1]
    whole = np.round(corners)
    exact = np.where(np.abs(corners - whole) < TOUCH, whole, corners)
    within = import_optional("skimage.draw").polygon2mask((height, width), exact[:, ::-1] - 0.5)
    crossed = np.zeros((height, width), np.bool_)
    crossed[_crossed(exact, (height, width))] = True
    return np.asarray(within), crossed


def boxes_of(mask: ArrayLike) -> Floats:
    """Return the bounding boxes (x, y, width, height) of the 8-connected regions of a mask, shape (n_regions, 4).

    Examples
    --------
    >>> boxes_of(np.array([[1, 0, 0, 0], [0, 1, 0, 1]], dtype=bool))
    array([[0., 0., 2., 2.],
           [3., 1., 1., 1.]])
    """
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    regions, _ = ndimage.label(check_mask(mask, "mask"), structure=np.ones((3, 3)))
    found = ndimage.find_objects(regions)
    boxes = [(x.start, y.start, x.stop - x.start, y.stop - y.start) for y, x in found]
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


def label_bags(
    segments: ArrayLike,
    boxes: ArrayLike | None = None,
    polygons: Sequence[ArrayLike] | None = None,
    mask: ArrayLike | None = None,
    min_overlap: float = 0.0,
    ignore: ArrayLike | None = None,
    require_both: bool = True,
) -> dict[int, bool]:
    """Label bags by the positions of targets: a bag that overlaps a box, a polygon or the mask is positive.

    Parameters
    ----------
    segments : array-like of int, shape (height, width)
        The bag of every pixel, such as from `superpixels`; pixels below 0 belong to none. If it is an array of xarray,
        `mask` and `ignore` may be, too.
    boxes, polygons, mask : optional
        Where targets are, as `box_mask` and `polygon_mask` take them, or as an array of bool; at least one of them.
    min_overlap : float in [0, 1], default=0
        The least share of its pixels that makes a bag positive; 0 means that one pixel is enough. Bags with a smaller
        overlap are negative, unless the region is also passed as `ignore`.
    ignore : array-like of bool, shape (height, width), or of shape (n_boxes, 4), optional
        A mask or boxes where targets are unknown; bags that overlap it and are not positive are left out.
    require_both : bool, default=True
        Whether it is an error if no bag is positive, or none negative. Pass False for one of several images.

    Returns
    -------
    labels : dict of int to bool
        As `Bags.from_image` and `Scene` take them.

    Examples
    --------
    >>> label_bags([[0, 0, 1, 1, 2, 2]], boxes=[(1, 0, 2, 1)])
    {0: True, 1: True, 2: False}
    """
    if is_xarray(segments):
        from bimichi.integral.labelled import aligned, as_image

        segments, like = as_image(segments)
        mask, ignore = aligned(mask, like, "mask"), aligned(ignore, like, "ignore")
    ids = np.asarray(refuse_masked(segments, "segments"))
    if ids.dtype.kind not in "iu" or ids.ndim != 2:
        got = f"{ids.dtype} of shape {ids.shape}"
        raise InvalidInputError(
            f"segments must be whole numbers of shape (height, width), got {got}.",
            code="segments-shape",
            argument="segments",
            value=got,
        )
    if not (ids >= 0).any():
        raise InvalidInputError(
            "segments has no pixel in a bag: all are below 0.", code="segments-empty", argument="segments"
        )
    check_number(min_overlap, "min_overlap", 0, 1)
    region = region_mask(boxes, polygons, mask, ids.shape)
    inside = ids >= 0
    names, where = np.unique(ids[inside], return_inverse=True)
    sizes = np.bincount(where, minlength=len(names))
    hits = np.bincount(where[region[inside]], minlength=len(names))
    positive = (hits > 0) & (hits >= min_overlap * sizes - TOUCH)
    kept = np.ones(len(names), np.bool_)
    if ignore is not None:
        unknown = ignored_mask(ignore, ids.shape)
        kept = positive | (np.bincount(where[unknown[inside]], minlength=len(names)) == 0)
    if require_both:
        remedy = "segments, another min_overlap or ignore, or pass require_both=False for one of several images"
        check_both(int(positive.sum()), int((kept & ~positive).sum()), int((~kept).sum()), remedy)
    return {int(name): bool(label) for name, label in zip(names[kept], positive[kept], strict=True)}


def check_both(positive: int, negative: int, left_out: int, remedy: str) -> None:
    """Raise an error unless there are bags of both classes, as learning needs."""
    if not positive or not negative:
        raise InvalidInputError(
            f"Of {positive + negative + left_out} bags, {positive} are positive, {negative} negative and {left_out} "
            f"left out; learning needs at least one of each class. Use more and smaller {remedy}.",
            code="one-class",
        )


def region_mask(
    boxes: ArrayLike | None, polygons: Sequence[ArrayLike] | None, mask: ArrayLike | None, shape: tuple[int, int]
) -> Flags:
    """Mark the pixels of all targets, at least one kind of which must be given."""
    if boxes is None and polygons is None and mask is None:
        raise InvalidInputError("Nothing says where targets are; pass boxes, polygons or mask.", code="targets-unnamed")
    region = box_mask([] if boxes is None else boxes, shape)
    if polygons is not None:
        region |= polygon_mask(polygons, shape)
    return region if mask is None else region | check_mask(mask, "mask", shape)


def ignored_mask(ignore: ArrayLike, shape: tuple[int, int]) -> Flags:
    """Mark the pixels where targets are unknown, given as a mask or as boxes."""
    is_mask = np.asarray(ignore).dtype == np.bool_
    return check_mask(ignore, "ignore", shape) if is_mask else box_mask(ignore, shape)


def _pixels(start: float, length: float, extent: int) -> slice:
    """Return the pixels along one axis of the image that overlap [start, start + length]."""
    first = max(0, int(np.floor(start + TOUCH)))
    return slice(first, max(first + 1, int(np.ceil(min(start + length - TOUCH, extent)))))


def _crossed(corners: Floats, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """Return rows and columns of all pixels whose inside an edge of the polygon crosses."""
    extent, stops, n = np.array(shape[::-1]), np.roll(corners, -1, axis=0), len(corners)
    step = stops - corners
    edges, at = [np.tile(np.arange(n), 2)], [np.repeat([0.0, 1.0], n)]  # each edge: its ends, and where it meets ...
    for axis in range(2):  # ... lines between pixels
        low, high = np.minimum(corners[:, axis], stops[:, axis]), np.maximum(corners[:, axis], stops[:, axis])
        first, last = np.maximum(np.ceil(low), 0), np.minimum(np.floor(high), extent[axis])
        counts = np.where(step[:, axis] == 0, 0, np.maximum(last - first + 1, 0)).astype(np.int64)
        edge = np.repeat(np.arange(n), counts)
        lines = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        edges.append(edge)
        at.append(np.clip((lines - corners[edge, axis]) / step[edge, axis], 0, 1))
    owner, cuts = np.concatenate(edges), np.concatenate(at)
    order = np.lexsort((cuts, owner))
    owner, cuts = owner[order], cuts[order]
    between = (owner[1:] == owner[:-1]) & (cuts[1:] > cuts[:-1])
    own, half = owner[1:][between], (cuts[1:] + cuts[:-1])[between] / 2
    middles = corners[own] + step[own] * half[:, None]
    within = (middles != np.floor(middles)) & (middles > 0) & (middles < extent)  # not on a line between two pixels
    columns, rows = np.floor(middles[within.all(axis=1)]).astype(np.int64).T
    return rows, columns


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        array = np.asarray(refuse_masked(values, what), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} must be numbers, in rows of equal length: {error}.", code="rows-length", argument=what
        ) from error
    if not np.isfinite(array).all():
        raise InvalidInputError(
            f"{what} must be finite numbers, got NaN or infinity among them.", code="finite", argument=what
        )
    return array
