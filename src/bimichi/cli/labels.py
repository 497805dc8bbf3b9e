"""From boxes, masks and superpixels to scenes with labelled bags."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.cli.inputs import ImageSet, ImageSets
from bimichi.cli.sources import choose_recipes, make_source, read_images, size, source_names
from bimichi.errors import InvalidInputError
from bimichi.imaging import label_bags, read_boxes, read_image, superpixels, to_bipolar
from bimichi.planes import Planes
from bimichi.scene import Scene

__all__ = ["Labelling", "check_both", "read_scenes", "with_truth"]


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


def read_scenes(
    image_sets: ImageSets,
    labelling: Labelling,
    names: Sequence[str] | None,
    recipes: Sequence[str] | None,
    scaled: bool,
) -> tuple[list[Scene], list[str]]:
    """Read all scenes with their bags; return them and the recipes of their sources.

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
    """
    boxes = _boxes(labelling.boxes, labelling.target, image_sets.sets) if labelling.boxes else None
    masks = _masks(labelling.labels, "--labels", image_sets)
    ignored = _masks(labelling.ignore, "--ignore", image_sets)
    segments = _masks(labelling.bags, "--bags", image_sets)
    scenes: list[Scene] = []
    chosen: list[str] = []
    for k, one in enumerate(image_sets.sets):
        images = read_images(one)
        if scenes and len(images) != scenes[0].n_sources:
            raise InvalidInputError(
                f"Scene {one.name!r} has {len(images)} bands, but scene {scenes[0].name!r} has {scenes[0].n_sources}."
            )
        called = source_names(image_sets, names, len(images))
        chosen = choose_recipes(chosen or recipes, images, called)
        planes = [make_source(image, recipe) for image, recipe in zip(images, chosen, strict=True)]
        if not scaled:
            remedy = "Choose a --recipe, or bring it to [-1, 1]; train can learn a --scale, too."
            Planes(planes, names=called).check_range(-1.0, f"{remedy} (Scene {one.name!r}.)")
        scene = Scene(np.stack(planes, axis=-1), one.name, tuple(called))
        given = segments[k]
        bags = _superpixels(scene, labelling.superpixels) if given is None else _segments(given, scene)
        labels = label_bags(
            bags,
            boxes=None if boxes is None else boxes[k],
            mask=_mask(masks[k], scene, labelling.target),
            min_overlap=labelling.min_overlap,
            ignore=_mask(ignored[k], scene),
            require_both=False,
        )
        scenes.append(
            replace(scene, segments=bags, labels=labels, boxes=np.empty((0, 4)) if boxes is None else boxes[k])
        )
    return scenes, chosen


def with_truth(scenes: Sequence[Scene], image_sets: ImageSets, truth: str, target: str | None) -> list[Scene]:
    """Add to scenes the masks of targets that methods are scored against."""
    files = image_sets.companions(truth, "--truth")
    return [replace(s, truth=_mask(file, s, target)) for s, file in zip(scenes, files, strict=True)]


def check_both(scenes: Sequence[Scene]) -> None:
    """Raise unless some bag is positive and some negative, as learning needs."""
    labels = [label for scene in scenes for label in (scene.labels or {}).values()]
    if len(set(labels)) < 2:
        found = sum(
            len(np.unique(scene.segments[scene.segments >= 0])) for scene in scenes if scene.segments is not None
        )
        raise InvalidInputError(
            f"Of {found} bags, {sum(labels)} are positive, {len(labels) - sum(labels)} negative and "
            f"{found - len(labels)} left out; learning needs at least one of each class. Use more --superpixels, "
            "another --min-overlap, --ignore or --target, or look at them with: bimichi bags."
        )


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
    return segments


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


def _masks(given: str | None, option: str, image_sets: ImageSets) -> Sequence[Path | None]:
    return image_sets.companions(given, option) if given else [None] * len(image_sets.sets)


def _boxes(path: Path, target: str | None, sets: Sequence[ImageSet]) -> list[NDArray[np.float64]]:
    """Boxes of each scene; scenes that the file does not name have none."""
    images = _images(path)
    if len(sets) == 1 and len(images) < 2:
        return [read_boxes(path, label=target)]
    if not images:
        raise InvalidInputError(f"{path} needs a column image that says which of the {len(sets)} scenes a box is in.")
    unknown = sorted(images - set().union(*(one.aliases for one in sets)))
    if unknown and (len(sets) > 1 or len(unknown) == len(images)):
        raise InvalidInputError(
            f"{path} has boxes of the image {unknown[0]!r}, but the scenes are "
            f"{', '.join(repr(one.name) for one in sets[:5])}{', ...' if len(sets) > 5 else ''}."
        )
    found = [[read_boxes(path, image, target) for image in sorted(images & one.aliases)] for one in sets]
    return [np.concatenate([np.empty((0, 4)), *parts]) for parts in found]


def _images(path: Path) -> set[str]:
    """What the column `image` of a CSV file names, if there is one; `read_boxes` checks the rest."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig", errors="replace").splitlines()))
    except csv.Error:
        return set()
    header, *rest = [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))] or [[]]
    column = next((k for k, name in enumerate(header) if name.lower() == "image"), None)
    return set() if column is None else {row[column] for row in rest if len(row) > column}
