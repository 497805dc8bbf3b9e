"""Bags of an image: superpixels, grids, and the cores of regions that are larger than the targets in them.

The middle of a region shows its target; towards the edge, the background does. So pixels in the core of a region are
positive, the rest of it is left out, and all pixels outside are negative.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_integer, check_number, is_number, is_xarray
from bimichi._extras import import_optional
from bimichi._types import Flags, Ints
from bimichi.errors import InvalidInputError
from bimichi.scenes.checks import distinct
from bimichi.scenes.masks import TOUCH, ignored_mask, polygon_mask, region_mask
from bimichi.sources.bands import Image, check_image, check_mask, check_shape


def superpixels(
    image: ArrayLike,
    n_segments: int = 300,
    compactness: float | None = None,
    mask: ArrayLike | None = None,
    sigma: float = 1.0,
    lab: bool | None = None,
) -> Ints:
    """Divide an image into superpixels: connected, of about equal size, along its edges (SLIC [1]_).

    The same image gives the same superpixels. It takes about 0.4 s for 640 x 480 pixels.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, n_channels)
        Grey, RGB, or a stack of sources that share one scale; also an array of xarray, of two dimensions or with a
        third one "source", or a dataset. Pixels with NaN are masked out.
    n_segments : int, default=300
        Approximate number of superpixels.
    compactness : float, optional
        Larger values give squarer superpixels, smaller ones follow edges more closely. The default is 10 in Lab, whose
        distances reach 100, and otherwise 0.2 times the root of the number of bands, which distances reach then.
    mask : array-like of bool, shape (height, width), optional
        Where superpixels are wanted.
    sigma : float, default=1
        Width in pixels of the Gaussian that smooths the image first; 0 for none.
    lab : bool, optional
        Whether to measure colours in Lab; by default for images of uint8 with three channels, which are taken as RGB.

    Returns
    -------
    segments : ndarray of int64, shape (height, width)
        The superpixel of each pixel, numbered from 0 without gaps; -1 where masked out. Of xarray, an array with the
        coordinates of the image.

    References
    ----------
    .. [1] R. Achanta et al., "SLIC Superpixels Compared to State-of-the-Art Superpixel Methods", IEEE TPAMI 34 (11),
       2012.
    """
    if is_xarray(image):
        from bimichi.integral.labelled import aligned, as_image, relabelled

        plain, like = as_image(image)
        found = superpixels(plain, n_segments, compactness, aligned(mask, like, "mask"), sigma, lab)
        return relabelled(found, like, "segments")  # type: ignore[return-value]  # as the image is
    given = check_image(image, bands=None)
    check_integer(n_segments, "n_segments")
    lab = given.dtype == np.uint8 and given.shape[2:] == (3,) if lab is None else lab
    if lab and given.shape[2:] != (3,):
        raise InvalidInputError(
            f"lab=True needs an RGB image of shape (height, width, 3), got {given.shape}.",
            code="image-rgb",
            value=given.shape,
        )
    if compactness is None:
        compactness = 10.0 if lab else 0.2 * (given.size / (given.shape[0] * given.shape[1])) ** 0.5
    check_number(compactness, "compactness", minimum=0, exclusive=True)
    check_number(sigma, "sigma", minimum=0)
    wanted, filled = _wanted(given, mask)
    slic = import_optional("skimage.segmentation").slic
    found = slic(
        filled,
        n_segments=n_segments,
        compactness=compactness,
        sigma=sigma,
        convert2lab=lab,
        start_label=1,
        mask=None if wanted.all() else wanted,
        channel_axis=None if given.ndim == 2 else -1,
    )
    # SLIC adds islands of the mask that are too small to superpixels elsewhere; here they become their own
    regions = import_optional("skimage.measure").label(np.where(wanted, found, 0), background=0, connectivity=1)
    return np.asarray(regions, dtype=np.int64) - 1


def grid_segments(shape: tuple[int, int], size: int | tuple[int, int]) -> Ints:
    """Divide an image into rectangles; those at the right and lower border may be smaller.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image; or an image of xarray, whose coordinates the result then has.
    size : int or (int, int)
        Side of a square, or height and width of a rectangle, in pixels.

    Returns
    -------
    segments : ndarray of int64, shape (height, width)
        The rectangle of each pixel, numbered from 0, row by row.

    Examples
    --------
    >>> grid_segments((3, 5), 2)
    array([[0, 0, 1, 1, 2],
           [0, 0, 1, 1, 2],
           [3, 3, 4, 4, 5]])
    """
    if is_xarray(shape):
        from bimichi.integral.labelled import as_image, relabelled

        like = as_image(shape)[1]
        return relabelled(grid_segments(like.shape, size), like, "segments")  # type: ignore[return-value,arg-type]
    height, width = check_shape(shape)
    tall, wide = check_shape((size, size) if np.ndim(size) == 0 else size, "size")
    per_row = -(-width // wide)
    return np.asarray(np.arange(height)[:, None] // tall * per_row + np.arange(width) // wide, dtype=np.int64)


def _wanted(image: Image, mask: ArrayLike | None) -> tuple[Flags, Image]:
    """Return where superpixels are wanted, and the image with NaN filled, which smoothing would spread."""
    shape = image.shape[:2]
    wanted = np.ones(shape, np.bool_) if mask is None else check_mask(mask, "mask", shape)
    missing = np.isnan(image)
    if missing.any():
        wanted = wanted & ~(missing if image.ndim == 2 else missing.any(axis=2))
    if not wanted.any():
        raise InvalidInputError(
            "No pixel is left for superpixels: all are masked out or NaN.", code="superpixels-empty"
        )
    return wanted, np.where(missing, image[wanted].mean(), image) if missing.any() else image


CORE = (0.6, 0.9)
"""The share of the width and of the height of a box that shows its target: measured for people."""

Pixels = tuple[Ints, Ints]


def label_pixels(
    shape: tuple[int, int],
    boxes: ArrayLike | None = None,
    core: tuple[float, float] = CORE,
    *,
    polygons: Sequence[ArrayLike] | None = None,
    mask: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    negative: ArrayLike | None = None,
) -> NDArray[np.int8]:
    """Label pixels by regions around targets: 1 in the core of a region, 0 (left out) in the rest of it, -1 outside.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image.
    boxes, polygons, mask : optional
        Regions around targets, as `box_mask` and `polygon_mask` take them, or as an array of bool, whose 8-connected
        parts are the regions; at least one of them.
    core : (float, float) in (0, 1], default=(0.6, 0.9)
        The share of the width and of the height that the core takes. The core of a box is in its middle, and is taken
        before the box is cut off at the border of the image. Polygons and regions of the mask are eroded from both
        sides by the rest of these shares of their thickness, the side of the largest square that fits into them; the
        border of the image does not erode them. Where the core of one region lies in the rest of another, it counts.
    ignore : array-like of bool, shape (height, width), or of shape (n_boxes, 4), optional
        A mask or boxes where targets are unknown: pixels there are left out unless they are in a core.
    negative : array-like of bool, shape (height, width), optional
        Where there is surely no target, also within regions and cores, or where targets are unknown.

    Returns
    -------
    labels : ndarray of int8, shape (height, width)
        Each region has at least one pixel of core, unless that lies outside the image.

    Examples
    --------
    >>> label_pixels((3, 7), [(1, 0, 5, 3)], core=(0.6, 1))
    array([[-1,  0,  1,  1,  1,  0, -1],
           [-1,  0,  1,  1,  1,  0, -1],
           [-1,  0,  1,  1,  1,  0, -1]], dtype=int8)
    """
    size = check_shape(shape)
    labels = np.full(size, -1, np.int8)
    if ignore is not None:
        labels[ignored_mask(ignore, size)] = 0
    labels[region_mask(boxes, polygons, mask, size)] = 0
    for pixels in _cores(size, boxes, polygons, mask, check_core(core)):
        labels[pixels] = 1
    if negative is not None:
        labels[check_mask(negative, "negative", size)] = -1
    return labels


def core_bags(
    shape: tuple[int, int],
    boxes: ArrayLike | None = None,
    core: tuple[float, float] = CORE,
    *,
    valid: ArrayLike | None = None,
    n_blocks: int = 300,
    polygons: Sequence[ArrayLike] | None = None,
    mask: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    negative: ArrayLike | None = None,
) -> tuple[Ints, dict[int, bool]]:
    """Make bags of labelled pixels: each core is a positive bag, and blocks of the pixels outside are negative ones.

    All pixels of a bag have its label, so that methods that learn from each pixel can use them as well as those that
    learn from bags.

    Parameters
    ----------
    shape, boxes, core, polygons, mask, ignore, negative
        As in `label_pixels`.
    valid : array-like of bool, shape (height, width), optional
        Which pixels can be used, such as those without NaN.
    n_blocks : int, default=300
        About how many blocks the image is divided into.

    Returns
    -------
    segments : ndarray of int64, shape (height, width)
        The bag of each pixel; -1 where it is left out.
    labels : dict of int to bool
        Whether a bag is positive. `Scene.with_bags` takes both. An objective that sums over the instances of a bag,
        such as the logistic one, counts each pixel once; for one that takes their mean, add the weights of `bag_sizes`.

    Examples
    --------
    >>> segments, labels = core_bags((2, 6), [(0, 0, 1, 2)], core=(1, 1), n_blocks=3)
    >>> segments
    array([[0, 1, 2, 2, 3, 3],
           [0, 1, 2, 2, 3, 3]])
    >>> labels
    {0: True, 1: False, 2: False, 3: False}
    """
    size = check_shape(shape)
    check_integer(n_blocks, "n_blocks")
    known = label_pixels(size, boxes, core, polygons=polygons, mask=mask, ignore=ignore, negative=negative)
    if valid is not None:
        known[~check_mask(valid, "valid", size)] = 0
    segments = np.full(size, -1, np.int64)
    n_cores = 0
    for n_cores, pixels in enumerate(_cores(size, boxes, polygons, mask, check_core(core)), 1):
        segments[pixels] = n_cores - 1
    segments[known < 1] = -1
    side = max(1, round((size[0] * size[1] / n_blocks) ** 0.5))
    segments[known < 0] = n_cores + grid_segments(size, side)[known < 0]
    names, where = distinct(segments)
    kept = names >= 0
    numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    labels = {k: bool(name < n_cores) for k, name in enumerate(names[kept].tolist())}
    return numbers[where].reshape(size), labels


def bag_sizes(segments: ArrayLike) -> dict[int, float]:
    """Return the number of pixels of each bag, as weights by which each pixel counts once in the objective `mean`.

    Parameters
    ----------
    segments : array-like of int
        The bag of each pixel; those below 0 belong to none.

    Examples
    --------
    >>> bag_sizes([[0, 0, 3], [-1, 0, 3]])
    {0: 3.0, 3: 2.0}
    """
    given = np.asarray(segments)
    names, counts = np.unique(given[given >= 0], return_counts=True)
    return {int(name): float(count) for name, count in zip(names, counts, strict=True)}


def _cores(
    shape: tuple[int, int],
    boxes: ArrayLike | None,
    polygons: Sequence[ArrayLike] | None,
    mask: ArrayLike | None,
    core: tuple[float, float],
) -> Iterator[Pixels]:
    """Yield rows and columns of the core of each region that has any in the image."""
    for box in np.asarray([] if boxes is None else boxes, dtype=np.float64).reshape(-1, 4):
        rows, columns = (_middle(*ends) for ends in zip(box[1::-1], box[:1:-1], core[::-1], shape, strict=True))
        if rows.size and columns.size:
            yield np.repeat(rows, columns.size), np.tile(columns, rows.size)
    for polygon in polygons or ():
        yield from _eroded(polygon_mask([polygon], shape), core)
    if mask is not None:
        yield from _eroded(check_mask(mask, "mask", shape), core)


def _middle(start: float, length: float, share: float, extent: int) -> Ints:
    """Return the pixels of the image whose centre is in the middle share of a box, along one axis; at least one."""
    centre, half = start + length / 2, share * length / 2
    first, last = int(np.ceil(centre - half - 0.5 - TOUCH)), int(np.floor(centre + half - 0.5 + TOUCH))
    if last < first:
        first = last = int(np.floor(centre))
    return np.arange(max(first, 0), min(last, extent - 1) + 1)


def _eroded(mask: Flags, core: tuple[float, float]) -> Iterator[Pixels]:
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    regions, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    for k, found in enumerate(ndimage.find_objects(regions)):
        around = tuple(slice(max(0, part.start - 1), part.stop + 1) for part in found)
        region = regions[around] == k + 1
        depth = 1 if region.all() else int(ndimage.distance_transform_cdt(region, "chessboard").max())
        steps = [int((1 - share) * (depth - 0.5) + 0.5) for share in core[::-1]]  # of rows and columns, below depth
        kept = ndimage.minimum_filter(region, [2 * step + 1 for step in steps], mode="nearest")
        rows, columns = np.nonzero(kept)
        yield rows + around[0].start, columns + around[1].start


def check_core(core: Any) -> tuple[float, float]:
    """Return the shares of the width and of the height that a core takes."""
    pair = list(core) if isinstance(core, Sequence | np.ndarray) else []
    if len(pair) != 2 or not all(is_number(share) and 0 < share <= 1 for share in pair):
        raise InvalidInputError(
            f"core must be two shares in (0, 1], of the width and the height, got {core!r}.",
            code="core",
            argument="core",
            value=core,
        )
    return float(pair[0]), float(pair[1])
