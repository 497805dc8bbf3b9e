"""From boxes, masks and superpixels to scenes with labelled bags."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.cli.inputs import ImageSet, ImageSets
from bimichi.cli.sources import choose_recipes, make_source, read_images, size, source_names
from bimichi.errors import InvalidInputError
from bimichi.imaging import label_bags, read_image, superpixels, to_bipolar
from bimichi.imaging.annotations import box_table
from bimichi.integral.planes import Planes
from bimichi.learning.scene import Scene, Scenes

__all__ = ["BagCounts", "Labelling", "SceneReader", "boxes_by_scene", "with_truth"]


@dataclass(frozen=True)
class Labelling:
    """Options that say what the bags are and where targets are; files as the user named them."""

    boxes: Path | None
    labels: str | None
    bags: str | None
    ignore: str | None
    target: str | None
    superpixels: int
    min_overlap: float

    def files(self, image_sets: ImageSets) -> list[Path]:
        """Return all files that will be read."""
        masks = {"--labels": self.labels, "--bags": self.bags, "--ignore": self.ignore}
        found = [path for option, given in masks.items() if given for path in image_sets.companions(given, option)]
        return found if self.boxes is None else [self.boxes, *found]


class BagCounts(NamedTuple):
    """How many bags of a scene are what."""

    positive: int
    negative: int
    left_out: int


class SceneReader:
    """Scenes with their bags, each read when it is asked for.

    Parameters
    ----------
    image_sets : ImageSets
        The files of the sources.
    labelling : Labelling
        What the bags are, and where targets are.
    names, recipes : sequence of str, optional
        What the user calls the sources, and how they are made.
    scaled : bool
        Whether a scale will be learned, so that sources need not lie in [-1, 1].
    truth : str, optional
        Masks of targets that methods are scored against.

    Attributes
    ----------
    scenes : Scenes
        All of them, by name.
    source_names, recipes : list of str
        Of the sources; the images of the first scene tell.
    counts : dict of str to BagCounts
        How many bags there are in the scenes that have been read.
    """

    def __init__(
        self,
        image_sets: ImageSets,
        labelling: Labelling,
        names: Sequence[str] | None,
        recipes: Sequence[str] | None,
        scaled: bool,
        truth: str | None = None,
    ) -> None:
        self._labelling, self._scaled = labelling, scaled
        sets = image_sets.sets
        self._sets = {one.name: one for one in sets}
        self._boxes = boxes_by_scene(labelling.boxes, labelling.target, sets) if labelling.boxes else {}
        masks = {"--labels": labelling.labels, "--ignore": labelling.ignore, "--bags": labelling.bags, "--truth": truth}
        self._masks = {option: _masks(given, option, image_sets) for option, given in masks.items()}
        self._first, self._asked = sets[0].name, recipes
        images = read_images(sets[0])
        self._opened = {self._first: images}
        self.source_names = source_names(image_sets, names, len(images))
        self.recipes = choose_recipes(recipes, images, self.source_names)
        self.counts: dict[str, BagCounts] = {}
        self.scenes = Scenes(list(self._sets), self._read)

    def check_both(self) -> None:
        """Raise unless some bag of the scenes that have been read is positive and some negative, as learning needs."""
        positive, negative, left_out = np.sum([*self.counts.values()], axis=0)
        if not positive or not negative:
            raise InvalidInputError(
                f"Of {positive + negative + left_out} bags, {positive} are positive, {negative} negative and "
                f"{left_out} left out; learning needs at least one of each class. Use more --superpixels, "
                "another --min-overlap, --ignore or --target, or look at them with: bimichi bags."
            )

    def _read(self, name: str) -> Scene:
        images = self._opened.pop(name, None) or read_images(self._sets[name])
        if len(images) != len(self.source_names):
            raise InvalidInputError(
                f"Scene {name!r} has {len(images)} bands, but scene {self._first!r} has {len(self.source_names)}."
            )
        if choose_recipes(self._asked, images, self.source_names) != self.recipes:
            raise InvalidInputError(
                f"Whole numbers and floats take turns: scene {name!r} has other ones than scene {self._first!r}. "
                "Choose a --recipe."
            )
        planes = [make_source(image, recipe) for image, recipe in zip(images, self.recipes, strict=True)]
        if not self._scaled:
            remedy = "Choose a --recipe, or bring it to [-1, 1]; train can learn a --scale, too."
            Planes(planes, names=self.source_names).check_range(-1.0, f"{remedy} (Scene {name!r}.)")
        return self._labelled(Scene(np.stack(planes, axis=-1), name, tuple(self.source_names)))

    def _labelled(self, scene: Scene) -> Scene:
        """Add bags, their labels and the truth."""
        how, masks = self._labelling, {option: files.get(scene.name) for option, files in self._masks.items()}
        given = masks["--bags"]
        bags = _superpixels(scene, how.superpixels) if given is None else _segments(given, scene)
        boxes = self._boxes.get(scene.name, np.empty((0, 4)))
        labels = label_bags(
            bags,
            boxes=None if how.boxes is None else boxes,
            mask=_mask(masks["--labels"], scene, how.target),
            min_overlap=how.min_overlap,
            ignore=_mask(masks["--ignore"], scene),
            require_both=False,
        )
        positive, n_bags = sum(labels.values()), len(np.unique(bags[bags >= 0]))
        self.counts[scene.name] = BagCounts(positive, len(labels) - positive, n_bags - len(labels))
        truth = _mask(masks["--truth"], scene, how.target)
        return replace(scene, segments=bags, labels=labels, boxes=boxes, truth=truth)


def with_truth(scene: Scene, path: Path, target: str | None) -> Scene:
    """Add to a scene the mask of targets that methods are scored against."""
    return replace(scene, truth=_mask(path, scene, target))


def _superpixels(scene: Scene, n_segments: int) -> NDArray[np.int64]:
    """Superpixels of the stack of all sources, brought to one scale if they have none."""
    stack = scene.sources
    if np.nanmin(stack) < -1 or np.nanmax(stack) > 1:
        stack = np.stack([to_bipolar(plane, percentiles=(0, 100)) for plane in np.moveaxis(stack, -1, 0)], axis=-1)
    return superpixels(stack, n_segments, lab=False)


def _segments(path: Path, scene: Scene) -> NDArray[np.integer[Any]]:
    segments = _one_band(path, scene)
    if segments.dtype.kind not in "iu":
        raise InvalidInputError(f"{path} holds {segments.dtype}; bags are numbered by whole numbers, one a pixel.")
    missing = np.isnan(scene.sources).any(axis=2)
    return np.where(missing, -1, segments.astype(np.int64)) if missing.any() else segments


def _mask(path: Path | None, scene: Scene, target: str | None = None) -> NDArray[np.bool_] | None:
    if path is None:
        return None
    values = _one_band(path, scene)
    if target is None:
        return np.asarray(values > 0)
    try:
        return np.asarray(values == float(target))
    except ValueError as error:
        raise InvalidInputError(f"--target must be a value of the mask {path}, a number, got {target!r}.") from error


def _one_band(path: Path, scene: Scene) -> NDArray[Any]:
    image = read_image(path)
    if image.ndim != 2:
        raise InvalidInputError(f"{path} has {image.shape[2]} bands; a mask has one.")
    if image.shape != scene.shape:
        raise InvalidInputError(
            f"{path} is {size(image)}, but the sources of scene {scene.name!r} are {size(scene.sources)}."
        )
    return image


def _masks(given: str | None, option: str, image_sets: ImageSets) -> dict[str, Path]:
    """One file for each scene, by its name, if any are given."""
    return dict(zip(image_sets.scenes, image_sets.companions(given, option), strict=True)) if given else {}


def boxes_by_scene(path: Path, target: str | None, sets: Sequence[ImageSet]) -> dict[str, NDArray[np.float64]]:
    """Boxes of each scene, by its name; scenes that the file does not name have none."""
    table, none = box_table(path, target), np.empty((0, 4))
    if isinstance(table, np.ndarray):
        if len(sets) > 1:
            raise InvalidInputError(
                f"{path} needs a column image that says which of the {len(sets)} scenes a box is in."
            )
        return {sets[0].name: table}
    if len(sets) == 1 and len(table) < 2:
        return {sets[0].name: np.concatenate([none, *table.values()])}
    images = {one.name: sorted(one.aliases & table.keys()) for one in sets}
    unknown = sorted(set(table).difference(*images.values()))
    if unknown and (len(sets) > 1 or len(unknown) == len(table)):
        raise InvalidInputError(
            f"{path} has boxes of the image {unknown[0]!r}, but the scenes are "
            f"{', '.join(repr(one.name) for one in sets[:5])}{', ...' if len(sets) > 5 else ''}."
        )
    return {name: np.concatenate([none, *(table[image] for image in some)]) for name, some in images.items()}
