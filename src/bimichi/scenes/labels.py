"""One meaning of a label: from what was drawn on an image to labels of its pixels, and to bags.

An object is larger than its target: its middle shows the target, its edge the background. So

* pixels in the **core** of an object, the central 60 % of its width and 90 % of its height, are targets (1), and in its
  innermost part, 40 % x 70 %, surely so (2);
* pixels of objects that are no targets are not (-1), even inside other objects;
* the rest of an object is unknown (0), and so are objects that are ignored, pixels of a mask without a class, and
  pixels without data;
* all other pixels are not targets, unless `Labelling.rest` says that they are unknown.

Models learn from targets and non-target pixels. **Scores count** the innermost part of targets against non-target
pixels: their average precision follows that against the truth of every pixel closely, while a larger core favours
blurred maps. Thresholds are chosen on whole cores against non-target pixels. Nothing else looks at what was drawn, be
it boxes, polygons, discs, strokes, superpixels or masks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_choice, check_integer, check_number, is_number, is_xarray, refuse_masked
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError, warn
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.checks import distinct
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import (
    TOUCH,
    Disc,
    Shape,
    box_mask,
    box_pixels,
    is_outside,
    outside_error,
    polygon_mask,
    shown_box,
)
from bimichi.scenes.superpixels import grid_segments, superpixels
from bimichi.sources.bands import check_mask, check_shape
from bimichi.sources.operators import to_bipolar

CORE = (0.6, 0.9)
"""The share of the width and of the height of an object that shows its target: measured for people."""

INNER = (0.4, 0.7)
"""The same of what surely shows it, which scores count."""

COUNTED = "AP and AUC count the innermost part of targets against non-target pixels; of bags, their largest value."
"""Printed beside scores of learning."""

BAG_WORDS = ("superpixels", "boxes")
"""Ways to make bags, beside a file that numbers them."""

PixelLabels = NDArray[np.int8]
"""2 and 1 for targets, -1 for what is none, 0 for unknown; see `bimichi.scenes.labels`."""

Pixels = tuple[Ints, Ints]


@dataclass(frozen=True)
class Labelling:
    """The meaning of annotations, and their files; the options of `bimichi train` describe each field.

    `boxes` and `labels` name annotation files of any format; `bags` and `ignore` are files for one scene, folders or
    patterns for many. `bags` may also be the word "superpixels", the default, or "boxes", for `core_bags`; a file of
    such a name is reached by "./boxes".
    """

    boxes: Path | None = None
    labels: str | None = None
    bags: str | None = None
    ignore: str | None = None
    target: str | None = None
    superpixels: int = 300
    min_overlap: float = 0.0
    point_radius: float = 0.0
    count_ignored: bool = False
    by_pixel: bool = False
    """Whether bags of cores count by their number of pixels, as objectives that take the mean over a bag need it."""
    core: tuple[float, float] = CORE
    """The share of the width and of the height of an object that shows its target, for bags of cores."""
    negative: str | None = None
    """Label of objects that are no targets: their pixels are negative, also within objects that are."""
    rest: Literal["negative", "unknown"] = "negative"
    """What pixels outside all objects are, for bags of cores."""
    labelled_only: bool = False
    """Whether scenes that the annotations do not name are left out, instead of having no targets."""

    def __post_init__(self) -> None:
        check_choice(self.rest, "rest", ("negative", "unknown"))
        if self.bags != "boxes" and (self.negative is not None or self.rest != "negative" or self.core != CORE):
            raise InvalidInputError(
                "negative, rest and core (--negative, --rest, --core) are about pixels of regions; use them with "
                "bags='boxes' (--bags boxes).",
                code="regions-options",
            )
        if self.negative is not None and self.negative == self.target:
            raise InvalidInputError(
                f"target and negative are both {self.target!r}; give two labels.", code="labels-same"
            )

    @property
    def annotations(self) -> str | None:
        """`boxes` or `labels`, whichever is given."""
        return self.labels if self.boxes is None else str(self.boxes)

    def companions(self, scenes: Any, partial: bool = False) -> dict[str, dict[str, Path]]:
        """Return the files of `bags` and `ignore`, as far as given, by the scene; `partial` if some may have none."""
        files = {"bags": None if self.bags in BAG_WORDS else self.bags, "ignore": self.ignore}
        return {what: scenes.companions(path, what, partial) for what, path in files.items() if path}


class BagCounts(NamedTuple):
    """Numbers of bags of a scene that are positive, negative, and left out of learning."""

    positive: int
    negative: int
    left_out: int


class Regions(NamedTuple):
    """Masks of the targets of an image, and of what is neither target nor background."""

    targets: Flags
    ignored: Flags


class _Objects(NamedTuple):
    """Pixels of the objects of an image: whole targets, unknown ones, and those that are no targets."""

    targets: Flags
    boxes: Floats
    mask: Flags | None
    unknown: Flags
    negative: Flags | None
    bounds: Floats

    @classmethod
    def of(
        cls, annotations: ImageAnnotations, shape: tuple[int, int], how: Labelling, ignore: Flags | None
    ) -> "_Objects":
        """Divide targets into boxes and a mask of the others, as their cores differ; `bounds` are boxes around all."""
        some, others = split_negative(annotations, how)
        targets, unknown = rasterise(some, shape, how.target, how.point_radius)
        boxed = some.selected(how.target) & np.array([outline is None for outline in some.outlines], dtype=np.bool_)
        mask = rasterise(some.taken(~boxed), shape, how.target, how.point_radius).targets
        negative = rasterise(others, shape, point_radius=how.point_radius).targets if len(others.labels) else None
        unknown = unknown if ignore is None else unknown | ignore
        unknown = np.ones(shape, np.bool_) if how.rest == "unknown" else unknown
        bounds = np.where(boxed[:, None], some.boxes, _whole_pixels(some.boxes))[some.selected(how.target)]
        return cls(targets, some.boxes[boxed], mask if mask.any() else None, unknown, negative, bounds)

    def cores(self, share: tuple[float, float]) -> list[Pixels]:
        """Return rows and columns of the core of each target that has any in the image."""
        return list(_cores(self.targets.shape, self.boxes, None, self.mask, share))

    def labels(self, cores: list[Pixels]) -> PixelLabels:
        """Return the labels of all pixels."""
        return _labelled(self.targets, cores, self.cores(INNER), self.unknown, self.negative)


def _whole_pixels(boxes: Floats) -> Floats:
    """Return boxes of the pixels that boxes overlap: the same for an outline as drawn and as a file keeps it."""
    starts = np.floor(boxes[:, :2])
    return np.hstack([starts, np.ceil(boxes[:, :2] + boxes[:, 2:]) - starts])


def split_negative(annotations: ImageAnnotations, how: Labelling) -> tuple[ImageAnnotations, ImageAnnotations]:
    """Return targets and ignored objects, and the objects that are no targets by their label."""
    annotations = replace(annotations, ignored=()) if how.count_ignored else annotations
    sure = np.zeros(len(annotations.labels), np.bool_)
    if how.negative is not None:
        sure = annotations.selected(how.negative)
    return (annotations.taken(~sure) if sure.any() else annotations), replace(annotations.taken(sure), mask=None)


def pixel_labels(
    annotations: ImageAnnotations, shape: tuple[int, int], how: Labelling | None = None, ignore: Flags | None = None
) -> PixelLabels:
    """Return what annotations mean for each pixel: 2 and 1 for targets, -1 for what is none, 0 for unknown.

    Parameters
    ----------
    annotations : ImageAnnotations
        In pixels; `in_pixels` converts other units.
    shape : (int, int)
        Height and width of the image.
    how : Labelling, optional
        How they are meant; its files are not read.
    ignore : ndarray of bool, shape (height, width), optional
        Where targets are unknown, beyond what the annotations say.

    Examples
    --------
    >>> from bimichi.scenes.annotations import Found, image_annotations
    >>> drawn = image_annotations([Found(np.array([1.0, 0, 10, 1]), "target")])
    >>> pixel_labels(drawn, (1, 12))
    array([[-1,  0,  0,  1,  2,  2,  2,  2,  1,  0,  0, -1]], dtype=int8)
    """
    how = how or Labelling()
    objects = _Objects.of(annotations, check_shape(shape), how, ignore)
    return objects.labels(objects.cores(how.core))


def scene_labels(scene: Scene) -> PixelLabels | None:
    """Return the labels of the pixels of a scene, 0 for those without data; None if bags alone are labelled.

    Where a scene has boxes but no `pixels`, labels follow from them: pixels outside are no targets, or unknown if their
    bags are left out of learning.
    """
    if scene.pixels is not None:
        labels = scene.pixels.copy()
    elif len(scene.shape) != 2 or (not len(scene.boxes) and (scene.labels is None or any(scene.labels.values()))):
        return None
    else:
        left_out = None
        if scene.segments is not None and scene.labels is not None:
            left_out = ~np.isin(scene.segments, list(scene.labels))
        labels = label_pixels((scene.shape[0], scene.shape[1]), scene.boxes, ignore=left_out, inner=INNER)
    unknown = np.isnan(scene.sources).any(axis=-1)
    labels[unknown if scene.ignore is None else unknown | scene.ignore] = 0
    return labels


def scored_pixels(labels: PixelLabels) -> tuple[Flags, Flags]:
    """Return which pixels a score counts: the innermost part of targets, and what is no target.

    Where no innermost part is known, as in labels that a user made, all targets count.
    """
    return labels == (2 if (labels == 2).any() else 1), labels == -1


def bag_scene(
    scene: Scene,
    annotations: ImageAnnotations,
    how: Labelling,
    ignore: Flags | None = None,
    segments: Ints | None = None,
) -> tuple[Scene, BagCounts]:
    """Add bags, their labels and those of pixels to a scene.

    Parameters
    ----------
    scene : Scene
        An image, without bags.
    annotations, how, ignore
        As in `pixel_labels`.
    segments : ndarray of int, optional
        The bag of each pixel, if not made here.
    """
    objects, weights = _Objects.of(annotations, (scene.shape[0], scene.shape[1]), how, ignore), None
    cores = objects.cores(how.core)
    pixels = objects.labels(cores)
    if how.bags == "boxes":
        labelled = np.where(np.isnan(scene.sources).any(axis=2), np.int8(0), pixels)
        segments, labels = _bags_of_cores(labelled, cores, how.superpixels)
        weights = bag_sizes(segments) if how.by_pixel else None
    else:
        segments = _superpixels(scene, how.superpixels) if segments is None else segments
        labels = label_bags(segments, None, None, objects.targets, how.min_overlap, objects.unknown, require_both=False)
        pixels[(segments < 0) & (pixels < 0)] = 0
    positive, n_bags = sum(labels.values()), int(np.count_nonzero(distinct(segments)[0] >= 0))
    counts = BagCounts(positive, len(labels) - positive, n_bags - len(labels))
    return replace(scene.with_bags(segments, labels, weights), pixels=pixels, boxes=objects.bounds), counts


def _superpixels(scene: Scene, n_segments: int) -> Ints:
    """Superpixels of all sources together, each mapped to [-1, 1] if any leaves that range."""
    stack = scene.sources
    n_pixels = int((~np.isnan(stack).any(axis=2)).sum())
    if n_segments > n_pixels:
        warn(
            f"superpixels (--superpixels) is {n_segments:,}, but scene {scene.name!r} has {n_pixels:,} pixels with "
            "data, so that most bags are single pixels. Use fewer.",
            code="superpixels-many",
            stacklevel=2,
        )
    if np.nanmin(stack) < -1 or np.nanmax(stack) > 1:
        stack = np.stack([to_bipolar(plane, percentiles=(0, 100)) for plane in np.moveaxis(stack, -1, 0)], axis=-1)
    return superpixels(stack, n_segments, lab=False)


def rasterise(
    annotations: ImageAnnotations, shape: tuple[int, int], target: str | None = None, point_radius: float = 0.0
) -> Regions:
    """Mark the pixels of targets and of ignored objects.

    Parameters
    ----------
    annotations : ImageAnnotations
        In pixels; `in_pixels` converts other units.
    shape : (int, int)
        Height and width of the image.
    target : str, optional
        The class of targets: a label, or a value of the mask; by default all classes.
    point_radius : float, default=0
        The radius in pixels of points that have none; 0 is the pixel that holds the point.

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
    if annotations.units != "pixels":
        raise InvalidInputError(
            f"Annotations are in {annotations.units}; convert them with in_pixels first.", code="annotations-units"
        )
    targets, ignored = np.zeros((height, width), np.bool_), np.zeros((height, width), np.bool_)
    for k, drawn in enumerate(annotations.objects):
        if drawn.ignored:
            _paint(ignored, drawn.place, point_radius, k, strict=False)
        elif target in (None, drawn.label):
            _paint(targets, drawn.place, point_radius, k)
    mask, unknown = annotations.mask_of(target), annotations.unknown
    if mask is not None and unknown is not None:
        if mask.shape != targets.shape:
            raise InvalidInputError(
                f"The mask has {mask.shape[1]} x {mask.shape[0]} pixels, but the image {width} x {height}.",
                code="mask-size",
            )
        targets |= mask
        ignored |= unknown
    return Regions(targets, ignored & ~targets)


def _paint(mask: Flags, place: Floats | Shape, radius: float, k: int, strict: bool = True) -> None:
    """Mark the pixels of one object; outside the image, it is an error if `strict`."""
    if isinstance(place, Disc) and not place.radius:
        place = Disc(place.x, place.y, radius)
    box = place if isinstance(place, np.ndarray) else place.box
    if is_outside(box, mask.shape):
        if strict:
            raise outside_error(f"Object {k + 1}, in the box {shown_box(box)},", mask.shape)
    elif isinstance(place, np.ndarray):
        mask[box_pixels(box, mask.shape)] = True
    else:
        place.paint(mask)


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


def label_pixels(
    shape: tuple[int, int],
    boxes: ArrayLike | None = None,
    core: tuple[float, float] = CORE,
    *,
    polygons: Sequence[ArrayLike] | None = None,
    mask: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    negative: ArrayLike | None = None,
    inner: tuple[float, float] | None = None,
) -> PixelLabels:
    """Label pixels by regions around targets: 1 in the core of a region, 0 (left out) in the rest of it, -1 outside.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image.
    boxes, polygons, mask : optional
        Regions around targets, as `box_mask` and `polygon_mask` take them, or as an array of bool, whose 8-connected
        parts are the regions; at least one of them.
    core : (float, float) in (0, 1], default=(0.6, 0.9)
        The share of the width and of the height that the core takes. The core of a box is in its middle, taken before
        the box is cut off at the border of the image, and pixels belong to it if their square overlaps it. Polygons and
        regions of the mask are eroded from both sides by the rest of these shares of their thickness, the side of the
        largest square that fits into them; the border of the image does not erode them. Where the core of one region
        lies in the rest of another, it counts.
    ignore : array-like of bool, shape (height, width), or of shape (n_boxes, 4), optional
        A mask or boxes where targets are unknown: pixels there are left out unless they are in a core.
    negative : array-like of bool, shape (height, width), optional
        Where there is surely no target, also within regions and cores, or where targets are unknown.
    inner : (float, float) in (0, 1], optional
        The share of what is surely target, which becomes 2: scores then count it alone.

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
    region = region_mask(boxes, polygons, mask, size)
    cores = _cores(size, boxes, polygons, mask, check_core(core))
    surely = () if inner is None else _cores(size, boxes, polygons, mask, check_core(inner))
    unknown = None if ignore is None else ignored_mask(ignore, size)
    none = None if negative is None else check_mask(negative, "negative", size)
    return _labelled(region, cores, surely, unknown, none)


def _labelled(
    region: Flags, cores: Iterable[Pixels], inner: Iterable[Pixels], unknown: Flags | None, negative: Flags | None
) -> PixelLabels:
    """Return labels of pixels, of which each line overrides those before it."""
    labels = np.full(region.shape, -1, np.int8)
    if unknown is not None:
        labels[unknown] = 0
    labels[region] = 0
    for pixels in cores:
        labels[pixels] = 1
    for pixels in inner:
        labels[pixels] = 2 * (labels[pixels] > 0)  # only where they are in a core
    if negative is not None:
        labels[negative] = -1
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
    labelled = label_pixels(size, boxes, core, polygons=polygons, mask=mask, ignore=ignore, negative=negative)
    if valid is not None:
        labelled[~check_mask(valid, "valid", size)] = 0
    return _bags_of_cores(labelled, list(_cores(size, boxes, polygons, mask, check_core(core))), n_blocks)


def _bags_of_cores(labelled: PixelLabels, cores: list[Pixels], n_blocks: int) -> tuple[Ints, dict[int, bool]]:
    """Return the bag of each labelled pixel, and whether it is positive."""
    segments = np.full(labelled.shape, -1, np.int64)
    for k, pixels in enumerate(cores):
        segments[pixels] = k
    segments[labelled < 1] = -1
    side = max(1, round((labelled.size / n_blocks) ** 0.5))
    segments[labelled < 0] = len(cores) + grid_segments(labelled.shape, side)[labelled < 0]
    names, where = distinct(segments)
    kept = names >= 0
    numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    labels = {k: bool(name < len(cores)) for k, name in enumerate(names[kept].tolist())}
    return numbers[where].reshape(labelled.shape), labels


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
    numbers = np.asarray(segments)
    names, counts = np.unique(numbers[numbers >= 0], return_counts=True)
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
    """Return the pixels of the image that overlap the middle share of a box, along one axis."""
    centre, half = start + length / 2, length * share / 2
    first = int(np.floor(centre - half + TOUCH))
    stop = max(first + 1, int(np.ceil(centre + half - TOUCH)))
    return np.arange(max(first, 0), min(stop, extent))


def _eroded(mask: Flags, core: tuple[float, float]) -> Iterator[Pixels]:
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    regions, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    for k, window in enumerate(ndimage.find_objects(regions)):
        around = tuple(slice(max(0, part.start - 1), part.stop + 1) for part in window)
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
