"""What there is to know about a dataset before learning: ranges, missing pixels, duplicates, separation, alignment."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.io.annotations.match import SceneTargets
from bimichi.io.dataset import SceneCollection
from bimichi.io.labelled import LabelledDataset, suited_to
from bimichi.scenes.grid import Grid, Placement
from bimichi.scenes.labels import (
    BagCounts,
    Labelling,
    PixelLabels,
    pixel_labels,
    rasterise,
    scene_labels,
    scored_pixels,
    split_negative,
)
from bimichi.scenes.sample import rank
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import Disc, Polygons, Runs, boxes_of
from bimichi.sources.bands import Image, first_few, lightness, type_range
from bimichi.sources.recipes import AS_IS, choose_recipes, make_plane
from bimichi.sources.registration import Shift, ShiftEstimator

SAMPLE = 50_000  # pixels of a scene, at most, from which percentiles, separation and correlations are computed
ALIGNED_SCENES = 24  # evenly spaced, from which shifts are estimated
MISALIGNED = 2.0  # pixels of shift above which a warning is due
DUPLICATE = 0.9999  # correlation
LOW = 0.4  # AUC below which a source is low on targets
NARROW = 0.1  # share of the range of an integer type
FULL_RANGE = ("to_bipolar", "gamma_correction")  # recipes that map the range of the type


@dataclass(frozen=True)
class SourceCheck:
    """One source over all scenes; numbers are None if no pixel is known.

    `missing` is the share of pixels without a value, `constant` names scenes in which all pixels are equal, and `auc`
    is the mean over scenes of the area under the ROC curve of the source that its recipe makes, of the pixels that
    scores count; see `bimichi.scenes.labels`.
    """

    name: str
    dtypes: tuple[str, ...]
    low: float | None
    percentile_1: float | None
    percentile_99: float | None
    high: float | None
    missing: float
    constant: tuple[str, ...]
    auc: float | None


@dataclass(frozen=True)
class PairCheck:
    """Two sources: whether one is a copy of the other, up to scale and sign, and how the second is shifted."""

    first: str
    second: str
    duplicate: bool
    shift: Shift | None


@dataclass(frozen=True)
class SceneCheck:
    """One scene: its size, and how many targets it has, which cover a share of it; None without labels."""

    name: str
    width: int
    height: int
    targets: int | None
    covered: float | None


@dataclass(frozen=True)
class DatasetCheck:
    """All sources, pairs of sources and scenes of a dataset."""

    sources: tuple[SourceCheck, ...]
    pairs: tuple[PairCheck, ...]
    scenes: tuple[SceneCheck, ...]

    def warnings(self, recipes: Sequence[str] = (), scaled: bool = False, inverting: bool = False) -> list[str]:
        """Return what should be looked at before learning, a sentence each, with what can be done.

        `recipes` are those of the sources; `scaled` says that a scale is learned, `inverting` that polarities are.
        """
        lines = [line for source in self.sources for line in _about_source(source, len(self.scenes))]
        lines += _about_ranges(list(zip(self.sources, recipes, strict=False)), scaled)
        low = [
            f"{source.name} (AUC {source.auc:.2f})"
            for source in self.sources
            if source.auc is not None and source.auc < LOW
        ]
        if low and not inverting:
            lines.append(
                f"Lower on targets than elsewhere: {first_few(low)}. Learn which sources to invert: --polarity learn."
            )
        return [*lines, *(line for pair in self.pairs for line in _about_pair(pair)), *_about_targets(self.scenes)]


@dataclass
class _Totals:
    """What is gathered of one source."""

    dtypes: dict[str, None] = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    pixels: int = 0
    missing: int = 0
    constant: list[str] = field(default_factory=list)
    samples: list[Floats] = field(default_factory=list)
    aucs: list[float] = field(default_factory=list)


class DatasetChecker:
    """Gathers scenes one by one, so that none need be kept; `n_scenes`, if known, spreads the costly checks evenly."""

    def __init__(self, source_names: Sequence[str], n_scenes: int = 0) -> None:
        self._names, self._every = list(source_names), max(1, -(-n_scenes // ALIGNED_SCENES))
        self._totals = [_Totals() for _ in self._names]
        self._alike = np.ones((len(self._names), len(self._names)), np.bool_)
        self._shifts = ShiftEstimator(len(self._names))
        self._scenes: list[SceneCheck] = []

    def add(
        self,
        name: str,
        images: Sequence[Image],
        targets: "Targets | None" = None,
        dtypes: Sequence[str] | None = None,
        made: Sequence[Image] | None = None,
    ) -> SceneCheck:
        """Add a scene.

        Parameters
        ----------
        name : str
            Its name, for messages.
        images : sequence of ndarray, shape (height, width) or (height, width, 3)
            One per source, values as stored, NaN where there is no data.
        targets : Targets, optional
            Where its targets are.
        dtypes : sequence of str, optional
            Types in which the images are stored, where they are read as others to hold NaN; by default their own.
        made : sequence of ndarray, shape (height, width), optional
            The sources that recipes make of the images, which are what can be copies of each other, and what separates
            targets from the rest; by default the images.
        """
        planes = [lightness(image) for image in images]
        if len(planes) != len(self._names) or len({plane.shape for plane in planes}) != 1:
            shapes = ", ".join(str(plane.shape) for plane in planes)
            raise InvalidInputError(
                f"images must be {len(self._names)} of one size, one per source, got {shapes}.",
                code="image-sizes",
                argument="images",
                value=shapes,
            )
        height, width = planes[0].shape
        stored = [image.dtype.name for image in images] if dtypes is None else dtypes
        sources = planes if made is None else made
        for total, plane, source, kind in zip(self._totals, planes, sources, stored, strict=True):
            total.dtypes[kind] = None
            _gather(total, name, plane)
            auc = None if targets is None else separation(source.astype(np.float64), targets.labels)
            total.aucs += [] if auc is None else [auc]
        sampled = [_sampled(source.ravel(), SAMPLE).astype(np.float64) for source in sources]
        for (j, first), (k, second) in combinations(enumerate(sampled), 2):
            self._alike[j, k] = self._alike[j, k] and _is_copy(first, second)
        if len(self._scenes) % self._every == 0:
            self._shifts.add(planes)
        counts = (None, None) if targets is None else (targets.count, targets.covered)
        self._scenes.append(SceneCheck(name, width, height, *counts))
        return self._scenes[-1]

    def result(self) -> DatasetCheck:
        """Return what was found in all scenes."""
        if not self._scenes:
            raise InvalidInputError("No scene could be checked; add at least one.", code="scenes-empty")
        pairs = [
            PairCheck(self._names[j], self._names[k], bool(self._alike[j, k]), self._shifts.shift(j, k))
            for j, k in combinations(range(len(self._names)), 2)
        ]
        sources = [_summed(name, total) for name, total in zip(self._names, self._totals, strict=True)]
        return DatasetCheck(tuple(sources), tuple(pairs), tuple(self._scenes))


def separation(values: Floats, labels: PixelLabels) -> float | None:
    """Return the area under the ROC curve of the pixels that a score counts; None if one kind has no known value."""
    known = np.isfinite(values)
    positive, negative = (_sampled(values[known & side], SAMPLE) for side in scored_pixels(labels))
    auc = rank(positive, negative).auc
    return None if np.isnan(auc) else auc


def _sampled(values: Image, n: int) -> Image:
    """Return about `n` values, evenly spaced."""
    return values[:: max(1, values.size // n)]


def _gather(total: _Totals, name: str, plane: Image) -> None:
    values = plane[np.isfinite(plane)]
    total.pixels += plane.size
    total.missing += plane.size - values.size
    if values.size:
        low, high = float(values.min()), float(values.max())
        total.low, total.high = min(total.low, low), max(total.high, high)
        if low == high:
            total.constant.append(name)
        total.samples.append(_sampled(values.astype(np.float64), SAMPLE))


def _is_copy(first: Floats, second: Floats) -> bool:
    valid = np.isfinite(first) & np.isfinite(second)
    if valid.sum() < 2 or first[valid].std() == 0 or second[valid].std() == 0:
        return bool(np.array_equal(first, second, equal_nan=True))
    return bool(abs(np.corrcoef(first[valid], second[valid])[0, 1]) > DUPLICATE)


def _summed(name: str, total: _Totals) -> SourceCheck:
    ends: tuple[float | None, float | None, float | None, float | None] = (None,) * 4
    if total.samples:
        least, most = np.percentile(np.concatenate(total.samples), (1, 99)).tolist()
        ends = (total.low, least, most, total.high)
    auc = float(np.mean(total.aucs)) if total.aucs else None
    return SourceCheck(name, tuple(total.dtypes), *ends, total.missing / total.pixels, tuple(total.constant), auc)


def _about_source(source: SourceCheck, n_scenes: int) -> list[str]:
    lines = []
    if source.low is None:
        return [f"{source.name} has no known pixel: all are NaN or nodata. Leave it out."]
    if source.constant:
        where = "everywhere" if len(source.constant) == n_scenes else f"in {first_few(source.constant)}"
        lines.append(
            f"{source.name} is constant {where}, and carries no information there. Leave it out, or check the file."
        )
    if source.missing > 0.5:
        lines.append(
            f"{source.name} has no data in {source.missing:.0%} of its pixels, which are left out of learning."
        )
    if len(source.dtypes) > 1:
        lines.append(f"{source.name} is {' and '.join(source.dtypes)} in different scenes. Convert them to one type.")
    return lines


def _about_ranges(sources: Sequence[tuple[SourceCheck, str]], scaled: bool) -> list[str]:
    """Warn of values that a recipe maps to a sliver of [-1, 1], or that learning will refuse."""
    narrow, outside = [], []
    for source, recipe in sources:
        if source.low is None or source.high is None or source.percentile_1 is None or source.percentile_99 is None:
            continue
        kind = np.dtype(source.dtypes[0])
        if kind.kind in "iu" and recipe in FULL_RANGE and not scaled and source.low < source.high:
            low, high = type_range(kind)
            used = (source.percentile_99 - source.percentile_1) / (high - low)
            narrow += [f"{source.name} ({used:.1%} of the range of {kind.name})"] if used < NARROW else []
        if recipe == AS_IS and not scaled and max(-source.low, source.high) > 1:
            outside.append(f"{source.name} ({source.low:.6g} to {source.high:.6g})")
    lines = []
    if narrow:
        lines.append(
            f"Mapped to a sliver of [-1, 1] by the recipe, which maps the range of the type: {first_few(narrow)}. "
            "Learn a scale (--scale minmax), or choose the recipe equalize."
        )
    if outside:
        lines.append(
            f"Outside [-1, 1], which train refuses: {first_few(outside)}. Learn a scale (--scale minmax), or choose a "
            "recipe (--recipe)."
        )
    return lines


def _about_pair(pair: PairCheck) -> list[str]:
    if pair.duplicate:
        return [f"{pair.second} is a copy of {pair.first}, up to scale and sign. Leave one of them out."]
    if pair.shift is not None and pair.shift.length > MISALIGNED:
        return [
            f"{pair.second} seems misregistered with {pair.first}: moved by {pair.shift.rows:+g} rows and "
            f"{pair.shift.columns:+g} columns it would match it ({pair.shift.tiles} tiles of the images agree). "
            "Register them first."
        ]
    return []


def _about_targets(scenes: Sequence[SceneCheck]) -> list[str]:
    labelled = [scene for scene in scenes if scene.targets is not None]
    empty = [scene.name for scene in labelled if not scene.targets]
    if labelled and len(empty) == len(labelled):
        return ["No scene has a target. Check the labels, the image names in them, and --target."]
    lines = []
    if empty:
        lines.append(f"{len(empty)} of {len(labelled)} scenes have no target: {first_few(empty)}.")
    large = [scene.name for scene in labelled if scene.covered is not None and scene.covered > 0.5]
    if large:
        lines.append(
            f"Targets cover more than half of {first_few(large)}. Check that boxes are (x, y, width, height) in "
            "pixels, and that --target names the right class."
        )
    return lines


VISIBLE = re.compile(r"(?i)(^|[^a-z])(rgb|vis?|visible|visual|photo|colou?r|gr[ae]y|pan|cam|camera|light)([^a-z]|$)")
RED_GREEN_BLUE = (("red", "green", "blue"), ("r", "g", "b"), ("b4", "b3", "b2"), ("b04", "b03", "b02"))
STRETCH = (1.0, 99.5)  # percentiles that become black and white
MIDDLE, BRIGHTEN = 0.3, 0.45  # the median that dark images get by a power, and the least power
DARK = 0.01  # of the stretched range
COLOURLESS = 0.005  # share of the brightest value by which bands of a grey image differ, as by compression
LEVELS = 64  # of grey, in which the detail of an image is measured


@dataclass(frozen=True, eq=False)
class Targets:
    """Where the targets of one scene are: boxes (x, y, width, height), polygons of corners (x, y), a mask of others.

    `labels` are those of all pixels, and `covered` is the share of pixels that whole targets cover.
    """

    boxes: Floats
    polygons: Sequence[Floats]
    mask: Flags | None
    labels: PixelLabels
    covered: float

    @property
    def count(self) -> int:
        """Return how many boxes, polygons and connected regions of the mask there are."""
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
        self,
        collection: SceneCollection,
        labelling: Labelling | None,
        recipes: Sequence[str] | None = None,
        scaled: bool = False,
    ) -> None:
        self._collection, self._labelling = collection, labelling
        first = collection.open(collection.names[0])
        self.names, self.source_names = collection.names, list(first.source_names)
        self.recipes, self.notes = list[str](), list[str]()
        self.problem: InvalidInputError | None = None
        self._reader: LabelledDataset | None = None
        self._targets: SceneTargets | None = None
        if labelling is not None and labelling.annotations is not None:
            self._targets = SceneTargets(labelling.annotations, collection, labelling.target)
            self.notes = self._targets.notes
        try:
            self.recipes = choose_recipes(recipes, first.examples, self.source_names)
            if recipes is None and not scaled:
                self.recipes = suited_to(first, self.recipes)
            if labelling is not None:
                self._reader = LabelledDataset(collection, labelling, recipes=recipes, scaled=True)
                self._reader.recipes = self.recipes
        except InvalidInputError as error:
            self.problem = error

    def view(self, name: str) -> SceneView:
        """Read a scene; what is wrong with its files is an error."""
        opened = self._collection.open(name)
        images, dtypes = opened.read(), opened.dtypes
        if len(images) != len(self.source_names):
            raise InvalidInputError(
                f"Scene {name!r} has {len(images)} sources instead of {len(self.source_names)}.", code="sources-number"
            )
        scene = counts = made = None
        if self._reader is not None:
            scene = self._reader[name]
            counts, made = self._reader.counts[name], list(np.moveaxis(scene.sources, -1, 0))
        elif not self.problem:
            made = [make_plane(*one) for one in zip(images, self.recipes, dtypes, strict=True)]
        targets = self._targets_of(name, opened.grid, None if scene is None else scene_labels(scene))
        return SceneView(images, [dtype.name for dtype in dtypes], targets, scene, counts, made)

    def _targets_of(self, name: str, grid: Grid, labels: PixelLabels | None) -> Targets | None:
        how = self._labelling
        if how is None or self._targets is None:
            return None
        drawn = self._targets.of(name, Placement(grid.shape, grid.transform, grid.crs))
        labels = pixel_labels(drawn, grid.shape, how) if labels is None else labels
        objects = split_negative(drawn, how)[0]
        objects = objects.taken(objects.selected(how.target))
        boxed = np.array([shape is None for shape in objects.outlines], np.bool_)
        polygons = [ring for shape in objects.outlines if isinstance(shape, Polygons) for ring, *_ in shape.parts]
        others = np.array([isinstance(shape, Disc | Runs) for shape in objects.outlines], np.bool_)
        mask = rasterise(objects.taken(others), grid.shape, how.target, how.point_radius).targets
        covered = float(rasterise(objects, grid.shape, how.target, how.point_radius).targets.mean())
        return Targets(objects.boxes[boxed], polygons, mask if mask.any() else None, labels, covered)


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
    valid = values[np.isfinite(values)]
    if valid.size == 0:
        return np.zeros(image.shape, np.uint8)
    low, high = np.percentile(valid[:: max(1, valid.size // 200_000)], STRETCH)
    unit = np.clip((values - low) / (high - low if high > low else 1.0), 0, 1)
    lit = unit[unit > DARK]  # without a black surrounding
    middle = float(np.clip(np.median(lit) if lit.size else 1.0, DARK, 0.999))
    unit **= np.clip(np.log(MIDDLE) / np.log(middle), BRIGHTEN, 1.0)
    return np.asarray(255 * np.nan_to_num(unit)).astype(np.uint8)
