"""From image files and annotations to scenes with labelled bags, for learning and scoring."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bimichi._types import Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.imaging.annotations import boxes_by_image, read_annotations
from bimichi.imaging.bands import Image, first_few
from bimichi.imaging.collecting import SceneCollection, SceneFiles
from bimichi.imaging.cores import bag_sizes, core_bags, label_pixels
from bimichi.imaging.formats import Annotations, ImageAnnotations
from bimichi.imaging.formats.label_mask import read_mask
from bimichi.imaging.reading import read_images, size_of
from bimichi.imaging.recipes import choose_recipes, load_recipe, make_source
from bimichi.imaging.regions import box_mask, check_both, label_bags
from bimichi.imaging.segments import superpixels
from bimichi.imaging.sources import to_bipolar
from bimichi.integral.planes import Planes
from bimichi.learning.scene import Scene, Scenes

BAG_WORDS = ("superpixels", "boxes")
"""Ways to make bags, beside a file that numbers them."""


@dataclass(frozen=True)
class Labelling:
    """How to make bags, and where the targets are; the options of `bimichi train` describe each field.

    `labels`, `bags` and `ignore` are files for one scene, folders or patterns for many. `bags` may also be the word
    "superpixels", the default, or "boxes", for `core_bags`; a file of such a name is reached by "./boxes".
    """

    boxes: Path | None = None
    labels: str | None = None
    bags: str | None = None
    ignore: str | None = None
    target: str | None = None
    superpixels: int = 300
    min_overlap: float = 0.0
    by_pixel: bool = False
    """Whether bags of cores count by their number of pixels, as objectives that take the mean over a bag need it."""

    def companions(self, scenes: SceneCollection) -> dict[str, dict[str, Path]]:
        """Return the files of `labels`, `bags` and `ignore`, as far as given, by the name of the scene."""
        bags = None if self.bags in BAG_WORDS else self.bags
        given = {"labels": self.labels, "bags": bags, "ignore": self.ignore}
        return {what: scenes.companions(files, what) for what, files in given.items() if files}

    def files(self, scenes: SceneCollection) -> list[Path]:
        """Return all files that will be read."""
        found = [path for by_scene in self.companions(scenes).values() for path in by_scene.values()]
        return found if self.boxes is None else [self.boxes, *found]


class BagCounts(NamedTuple):
    """How many bags of a scene are positive, negative, and left out of learning."""

    positive: int
    negative: int
    left_out: int


class SceneReader:
    """`scenes` with their bags, each read on demand, and the `counts` of bags of those read so far.

    Files and images of the first scene decide on `source_names` and `recipes` that are not given. `scaled` says that
    sources may leave [-1, 1], as a scale will be learned; `truth` names masks to score against, as in `Labelling`.
    """

    def __init__(
        self,
        collection: SceneCollection,
        labelling: Labelling,
        names: Sequence[str] | None = None,
        recipes: Sequence[str] | None = None,
        scaled: bool = False,
        truth: str | None = None,
    ) -> None:
        self._labelling, self._scaled = labelling, scaled
        self._files = {scene.name: scene.files for scene in collection.scenes}
        self._boxes = boxes_by_scene(labelling.boxes, labelling.target, collection.scenes) if labelling.boxes else {}
        self._companions = labelling.companions(collection)
        if truth is not None:
            self._companions["truth"] = collection.companions(truth, "truth")
        self._first, self._given = collection.names[0], recipes
        images = read_images(self._files[self._first])
        self._opened = {self._first: images}
        self.source_names = collection.names_of_sources(names, len(images))
        for recipe in recipes or ():
            load_recipe(recipe)
        self.recipes = choose_recipes(recipes, images, self.source_names)
        self.counts: dict[str, BagCounts] = {}
        self.scenes = Scenes(list(self._files), self._read)

    def check_both(self) -> None:
        """Raise an error unless the scenes that have been read have bags of both classes, as learning needs."""
        remedy = "superpixels, another min_overlap, ignore or target; `bimichi bags` draws the bags"
        positive, negative, left_out = np.sum([*self.counts.values()], axis=0)
        check_both(positive, negative, left_out, remedy)

    def _read(self, name: str) -> Scene:
        images = self._opened.pop(name, None) or read_images(self._files[name])
        if len(images) != len(self.source_names):
            raise InvalidInputError(
                f"Scene {name!r} has {len(images)} bands, but scene {self._first!r} has {len(self.source_names)}."
            )
        if choose_recipes(self._given, images, self.source_names) != self.recipes:
            raise InvalidInputError(
                f"Scene {name!r} has integers where scene {self._first!r} has floats, or the other way round. "
                "Choose a recipe (--recipe)."
            )
        planes = [make_source(image, recipe) for image, recipe in zip(images, self.recipes, strict=True)]
        if not self._scaled:
            remedy = "Choose a recipe (--recipe), map it to [-1, 1] first, or learn a scale in training (--scale)."
            Planes(planes, names=self.source_names).check_range(-1.0, f"{remedy} (Scene {name!r}.)")
        return self._labelled(Scene(np.stack(planes, axis=-1), name, tuple(self.source_names)))

    def _labelled(self, scene: Scene) -> Scene:
        """Add bags, their labels and the truth."""
        how = self._labelling
        files = {what: by_scene[scene.name] for what, by_scene in self._companions.items()}
        boxes = self._boxes.get(scene.name, np.empty((0, 4)))
        mask, unknown = None, _mask(files["ignore"], scene) if "ignore" in files else np.zeros(scene.shape, np.bool_)
        if "labels" in files:
            found = _fitting(read_annotations(files["labels"]), files["labels"], scene)
            boxes, mask = found.boxes_of(how.target), found.mask_of(how.target)
            unknown |= box_mask(found.boxes[found.is_ignored], (unknown.shape[0], unknown.shape[1]))
        weights = None
        if how.bags == "boxes":
            valid, shape = ~np.isnan(scene.sources).any(axis=2), (scene.shape[0], scene.shape[1])
            regions = {"mask": mask, "ignore": unknown, "valid": valid}
            segments, labels = core_bags(shape, boxes, n_blocks=how.superpixels, **regions)
            weights = bag_sizes(segments) if how.by_pixel else None
        else:
            segments = _segments(files["bags"], scene) if "bags" in files else _superpixels(scene, how.superpixels)
            labels = label_bags(segments, boxes, None, mask, how.min_overlap, unknown, require_both=False)
        pixels = None if mask is None else label_pixels(mask.shape, boxes, mask=mask, ignore=unknown)
        positive, n_bags = sum(labels.values()), len(np.unique(segments[segments >= 0]))
        self.counts[scene.name] = BagCounts(positive, len(labels) - positive, n_bags - len(labels))
        scene = replace(scene.with_bags(segments, labels, weights), boxes=boxes, pixels=pixels)
        return with_truth(scene, files["truth"], how.target) if "truth" in files else scene


def with_truth(scene: Scene, path: Path, target: str | None) -> Scene:
    """Add to a scene the mask of targets that methods are scored against; `target` as in `Labelling`."""
    return replace(scene, truth=_mask(path, scene, target))


def boxes_by_scene(path: Path, target: str | None, scenes: Sequence[SceneFiles]) -> dict[str, Floats]:
    """Read the boxes of each scene, by its name, that have the label `target` (any for None).

    The file may call a scene by any of its aliases; scenes that it does not name have no boxes.
    """
    table, none = boxes_by_image(path, target), np.empty((0, 4))
    if None in table and len(scenes) > 1:
        raise InvalidInputError(
            f"{path} does not say in which of the {len(scenes)} scenes a box is; a CSV file needs a column image."
        )
    if len(scenes) == 1 and len(table) < 2:
        return {scenes[0].name: np.concatenate([none, *table.values()])}
    images = {one.name: sorted(one.aliases & table.keys()) for one in scenes}
    unknown = sorted(set(map(str, table)).difference(*images.values()))
    if unknown and (len(scenes) > 1 or len(unknown) == len(table)):
        named = first_few([repr(name) for name in images])
        raise InvalidInputError(f"{path} has boxes of the image {unknown[0]!r}, but the scenes are {named}.")
    return {name: np.concatenate([none, *(table[image] for image in some)]) for name, some in images.items()}


def _superpixels(scene: Scene, n_segments: int) -> Ints:
    """Superpixels of all sources together, each mapped to [-1, 1] if any leaves that range."""
    stack = scene.sources
    if np.nanmin(stack) < -1 or np.nanmax(stack) > 1:
        stack = np.stack([to_bipolar(plane, percentiles=(0, 100)) for plane in np.moveaxis(stack, -1, 0)], axis=-1)
    return superpixels(stack, n_segments, lab=False)


def _segments(path: Path, scene: Scene) -> Image:
    segments = _fitting(read_mask(path), path, scene).mask
    if segments is None or segments.dtype.kind not in "iu":
        raise InvalidInputError(f"{path} must number bags by integers, one per pixel, but holds other values.")
    missing = np.isnan(scene.sources).any(axis=2)
    return np.where(missing, -1, segments.astype(np.int64)) if missing.any() else segments


def _mask(path: Path, scene: Scene, target: str | None = None) -> Flags:
    return np.asarray(_fitting(read_mask(path), path, scene).mask_of(target))


def _fitting(found: Annotations, path: Path, scene: Scene) -> ImageAnnotations:
    """Return the annotations of one image, whose mask must be of the size of the scene."""
    if None not in found:
        raise InvalidInputError(f"{path} is about several images, but {scene.name!r} is one; pass it as boxes.")
    mask = found[None].mask
    if mask is not None and mask.shape != scene.shape:
        raise InvalidInputError(
            f"{path} is {size_of(mask)}, but the sources of scene {scene.name!r} are {size_of(scene.sources)}."
        )
    return found[None]
