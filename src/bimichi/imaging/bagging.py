"""Bags of one scene, from where its targets are."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.imaging.collecting import SceneCollection
from bimichi.imaging.formats import ImageAnnotations
from bimichi.imaging.placement import rasterise
from bimichi.imaging.regions import label_bags
from bimichi.imaging.segments import CORE, bag_sizes, core_bags, label_pixels, superpixels
from bimichi.imaging.sources import to_bipolar
from bimichi.imaging.targets import target_files
from bimichi.learning.inputs import distinct
from bimichi.learning.scene import Scene

BAG_WORDS = ("superpixels", "boxes")
"""Ways to make bags, beside a file that numbers them."""


@dataclass(frozen=True)
class Labelling:
    """How to make bags, and where the targets are; the options of `bimichi train` describe each field.

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
    """The share of the width and of the height of a region that shows its target, for bags of cores."""
    negative: str | None = None
    """Label of objects that are no targets: their pixels are negative, also within regions of targets."""
    rest: Literal["negative", "unknown"] = "negative"
    """What pixels outside all objects are, for bags of cores."""
    labelled_only: bool = False
    """Whether scenes that the annotations do not name are left out, instead of having no targets."""

    def __post_init__(self) -> None:
        check_choice(self.rest, "rest", ("negative", "unknown"))
        if self.bags != "boxes" and (self.negative is not None or self.rest != "negative" or self.core != CORE):
            raise InvalidInputError(
                "negative, rest and core (--negative, --rest, --core) are about pixels of regions; use them with "
                "bags='boxes' (--bags boxes)."
            )
        if self.negative is not None and self.negative == self.target:
            raise InvalidInputError(f"target and negative are both {self.target!r}; give two labels.")

    @property
    def annotations(self) -> str | None:
        """`boxes` or `labels`, whichever is given."""
        return self.labels if self.boxes is None else str(self.boxes)

    def companions(self, scenes: SceneCollection, partial: bool = False) -> dict[str, dict[str, Path]]:
        """Return the files of `bags` and `ignore`, as far as given, by the scene; `partial` if some may have none."""
        given = {"bags": None if self.bags in BAG_WORDS else self.bags, "ignore": self.ignore}
        return {what: scenes.companions(files, what, partial) for what, files in given.items() if files}

    def files(self, scenes: SceneCollection) -> list[Path]:
        """Return all files that will be read."""
        found = [
            path for by_scene in self.companions(scenes, self.labelled_only).values() for path in by_scene.values()
        ]
        if self.annotations is None:
            return found
        return [*target_files(self.annotations, scenes, self.labelled_only), *found]


class BagCounts(NamedTuple):
    """How many bags of a scene are positive, negative, and left out of learning."""

    positive: int
    negative: int
    left_out: int


def split_negative(found: ImageAnnotations, how: Labelling) -> tuple[ImageAnnotations, ImageAnnotations]:
    """Return targets and ignored objects, and the objects that are no targets by their label."""
    sure = np.zeros(len(found.labels), np.bool_)
    if how.negative is not None:
        sure = found.selected(how.negative)
    return (found if not sure.any() else found.taken(~sure)), found.taken(sure)


def bag_scene(
    scene: Scene, found: ImageAnnotations, how: Labelling, ignore: Flags | None = None, segments: Ints | None = None
) -> tuple[Scene, BagCounts]:
    """Add bags and their labels to a scene.

    Parameters
    ----------
    scene : Scene
        An image, without bags.
    found : ImageAnnotations
        What is known about it, in its pixels.
    how : Labelling
        How bags are made; its files are not read.
    ignore : ndarray of bool, optional
        Where targets are unknown, beyond what `found` says.
    segments : ndarray of int, optional
        Bags that are given.
    """
    shape = (scene.shape[0], scene.shape[1])
    found = replace(found, ignored=()) if how.count_ignored else found
    found, negative = split_negative(found, how)
    regions = rasterise(found, shape, how.target, how.point_radius)
    unknown = regions.ignored if ignore is None else regions.ignored | ignore
    against = rasterise(negative, shape).targets if len(negative.labels) else None
    boxes, mask = boxes_and_mask(found, shape, how)
    around: dict[str, Any] = {"mask": mask, "ignore": unknown | (how.rest == "unknown"), "negative": against}
    weights = None
    if how.bags == "boxes":
        missing = np.isnan(scene.sources).any(axis=2)
        valid = ~missing if missing.any() else None
        segments, labels = core_bags(shape, boxes, how.core, **around, valid=valid, n_blocks=how.superpixels)
        weights = bag_sizes(segments) if how.by_pixel else None
    else:
        segments = _superpixels(scene, how.superpixels) if segments is None else segments
        labels = label_bags(segments, None, None, regions.targets, how.min_overlap, unknown, require_both=False)
    positive, n_bags = sum(labels.values()), int(np.count_nonzero(distinct(segments)[0] >= 0))
    counts = BagCounts(positive, len(labels) - positive, n_bags - len(labels))
    made = scene.with_bags(segments, labels, weights)
    plain = mask is None and against is None and how.rest == "negative" and how.core == CORE
    if not plain:  # else they follow from boxes, with a smaller core to score by
        made = replace(made, pixels=label_pixels(shape, boxes, how.core, **around))
    return replace(made, boxes=found.boxes_of(how.target)), counts


def boxes_and_mask(found: ImageAnnotations, shape: tuple[int, int], how: Labelling) -> tuple[Floats, Flags | None]:
    """Return the targets that are boxes, and a mask of those that are not; None if there are none of these."""
    boxed = found.selected(how.target) & np.array([one is None for one in found.outlines], dtype=np.bool_)
    others = replace(found, ignored=[bool(out) for out in found.is_ignored | boxed])
    mask = rasterise(others, shape, how.target, how.point_radius).targets
    return found.boxes[boxed], mask if mask.any() else None


def _superpixels(scene: Scene, n_segments: int) -> Ints:
    """Superpixels of all sources together, each mapped to [-1, 1] if any leaves that range."""
    stack = scene.sources
    n_pixels = int((~np.isnan(stack).any(axis=2)).sum())
    if n_segments > n_pixels:
        warnings.warn(
            f"superpixels (--superpixels) is {n_segments:,}, but scene {scene.name!r} has {n_pixels:,} pixels with "
            "data, so that most bags are single pixels. Use fewer.",
            stacklevel=2,
        )
    if np.nanmin(stack) < -1 or np.nanmax(stack) > 1:
        stack = np.stack([to_bipolar(plane, percentiles=(0, 100)) for plane in np.moveaxis(stack, -1, 0)], axis=-1)
    return superpixels(stack, n_segments, lab=False)
