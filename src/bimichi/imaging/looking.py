"""Scenes as a person looks at them before learning: images as stored, targets, and a photograph to draw on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.bagging import BagCounts, Labelling
from bimichi.imaging.bands import Image, lightness
from bimichi.imaging.collecting import SceneCollection
from bimichi.imaging.formats import boxes_array
from bimichi.imaging.grids import Grid
from bimichi.imaging.labelling import SceneReader
from bimichi.imaging.placement import Placement, rasterise
from bimichi.imaging.recipes import choose_recipes, make_plane
from bimichi.imaging.regions import boxes_of
from bimichi.imaging.shapes import Polygons
from bimichi.imaging.targets import SceneTargets
from bimichi.learning.scene import Scene

VISIBLE = re.compile(r"(?i)(^|[^a-z])(rgb|vis?|visible|visual|photo|colou?r|gr[ae]y|pan|cam|camera|light)([^a-z]|$)")
RED_GREEN_BLUE = (("red", "green", "blue"), ("r", "g", "b"), ("b4", "b3", "b2"), ("b04", "b03", "b02"))
STRETCH = (1.0, 99.5)  # percentiles that become black and white
MIDDLE, BRIGHTEN = 0.3, 0.45  # the median that dark images get by a power, and the least power
DARK = 0.01  # of the stretched range
COLOURLESS = 0.005  # share of the brightest value by which bands of a grey image differ, as by compression
LEVELS = 64  # of grey, in which the detail of an image is measured


@dataclass(frozen=True, eq=False)
class Targets:
    """Where the targets of one scene are: boxes (x, y, width, height), polygons of corners (x, y), a mask.

    `inside` are the pixels that any of them covers.
    """

    boxes: Floats
    polygons: Sequence[Floats]
    mask: Flags | None
    inside: Flags

    @property
    def count(self) -> int:
        """How many boxes, polygons and connected regions of the mask there are."""
        return len(self.boxes) + len(self.polygons) + (0 if self.mask is None else len(boxes_of(self.mask)))


class SceneView(NamedTuple):
    """One scene: images as stored, their types, and what is made of them; None where that is not known."""

    images: list[Image]
    """NaN where there is no data."""
    dtypes: list[str]
    targets: Targets | None
    scene: Scene | None
    """With its bags and their labels."""
    counts: BagCounts | None
    made: list[Image] | None
    """The sources that recipes make of the images."""


class SceneViewer:
    """Reads the scenes of a collection, by their name, as `SceneView`.

    Without a labelling there are no targets and no bags. `source_names` and `recipes` are those of learning, `notes`
    say how annotation files were understood, and `problem` why learning would refuse the sources as they are.
    """

    def __init__(
        self, collection: SceneCollection, labelling: Labelling | None, recipes: Sequence[str] | None = None
    ) -> None:
        self._collection, self._labelling = collection, labelling
        first = collection.open(collection.names[0])
        self.names, self.source_names = collection.names, list(first.source_names)
        self.recipes, self.notes, self.problem = list[str](), list[str](), ""
        self._reader: SceneReader | None = None
        self._targets: SceneTargets | None = None
        if labelling is not None and labelling.annotations is not None:
            self._targets = SceneTargets(labelling.annotations, collection, labelling.target)
            self.notes = self._targets.notes
        try:
            self.recipes = choose_recipes(recipes, first.examples, self.source_names)
            if labelling is not None:
                self._reader = SceneReader(collection, labelling, recipes=recipes, scaled=True)
        except InvalidInputError as error:
            self.problem = str(error)

    def view(self, name: str) -> SceneView:
        """Read a scene; what is wrong with its files is an error."""
        opened = self._collection.open(name)
        images, dtypes = opened.read(), opened.dtypes
        if len(images) != len(self.source_names):
            raise InvalidInputError(f"Scene {name!r} has {len(images)} sources instead of {len(self.source_names)}.")
        targets = self._targets_of(name, opened.grid)
        scene = counts = made = None
        if self._reader is not None:
            scene = self._reader.scenes[name]
            counts, made = self._reader.counts[name], list(np.moveaxis(scene.sources, -1, 0))
        elif not self.problem:
            made = [make_plane(*one) for one in zip(images, self.recipes, dtypes, strict=True)]
        return SceneView(images, [dtype.name for dtype in dtypes], targets, scene, counts, made)

    def _targets_of(self, name: str, grid: Grid) -> Targets | None:
        if self._labelling is None or self._targets is None:
            return None
        target = self._labelling.target
        found = self._targets.of(name, Placement(grid.shape, grid.transform, grid.crs))
        places = [one.place for one, wanted in zip(found.objects, found.selected(target), strict=True) if wanted]
        boxes = boxes_array([place for place in places if isinstance(place, np.ndarray)])
        polygons = [ring for place in places if isinstance(place, Polygons) for ring, *_ in place.parts]
        inside = rasterise(found, grid.shape, target, self._labelling.point_radius).targets
        return Targets(boxes, polygons, found.mask_of(target), inside)


def photograph(images: Sequence[Image], names: Sequence[str]) -> Image:
    """Return what looks most like a photograph, stretched, as uint8 of shape (height, width) or (height, width, 3).

    That is the most colourful colour image, or else bands that are called red, green and blue (or B4, B3, B2); or else
    one that is called visible, grey or the like, and has any contrast; or else the one with the most levels of grey.
    """
    colourful = [_colourfulness(image) for image in images]
    if max(colourful) > COLOURLESS:
        return _stretched(images[int(np.argmax(colourful))])
    bands = {name.lower(): image for name, image in zip(names, images, strict=True)}
    for called in RED_GREEN_BLUE:
        if all(name in bands for name in called):
            return _stretched(np.stack([bands[name] for name in called], axis=-1))
    from scipy.stats import entropy  # takes long to import

    shown = [_stretched(lightness(image)) for image in images]
    levels = [np.bincount(image.ravel() // (256 // LEVELS), minlength=LEVELS) for image in shown]
    detail = [float(entropy(counts, base=2)) for counts in levels]
    named = [k for k, name in enumerate(names) if VISIBLE.search(name) and detail[k] > 1]
    return shown[max(named or range(len(shown)), key=lambda k: detail[k])]


def _colourfulness(image: Image) -> float:
    """Return the mean difference between the bands of RGB, relative to the brightest value; 0 for one band."""
    if image.ndim == 2 or image.shape[2] != 3:
        return 0.0
    values = image[::4, ::4].astype(np.float64)
    return float(np.nan_to_num(np.nanmean(np.ptp(values, axis=2)) / max(np.nanmax(np.abs(values)), 1e-12)))


def _stretched(image: Image) -> Image:
    """Map percentiles of all bands together to [0, 255], and brighten what is dark; missing pixels become black."""
    values = np.asarray(image, dtype=np.float64)
    known = values[np.isfinite(values)]
    if known.size == 0:
        return np.zeros(image.shape, np.uint8)
    low, high = np.percentile(known[:: max(1, known.size // 200_000)], STRETCH)
    unit = np.clip((values - low) / (high - low if high > low else 1.0), 0, 1)
    lit = unit[unit > DARK]  # without a black surrounding
    middle = float(np.clip(np.median(lit) if lit.size else 1.0, DARK, 0.999))
    unit **= np.clip(np.log(MIDDLE) / np.log(middle), BRIGHTEN, 1.0)
    return np.asarray(255 * np.nan_to_num(unit)).astype(np.uint8)
