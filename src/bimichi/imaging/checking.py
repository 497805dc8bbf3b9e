"""What there is to know about a dataset before learning: ranges, missing pixels, duplicates, separation, alignment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Image, first_few, lightness, type_range
from bimichi.imaging.recipes import AS_IS
from bimichi.imaging.registration import Shift, ShiftEstimator
from bimichi.learning.ranking import rank

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
    is the mean over scenes of the area under the ROC curve of the source that its recipe makes, inside of the targets
    against outside.
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
        found = [line for source in self.sources for line in _about_source(source, len(self.scenes))]
        found += _about_ranges(list(zip(self.sources, recipes, strict=False)), scaled)
        low = [f"{one.name} (AUC {one.auc:.2f})" for one in self.sources if one.auc is not None and one.auc < LOW]
        if low and not inverting:
            found.append(
                f"Lower on targets than elsewhere: {first_few(low)}. Learn which sources to invert: --polarity learn."
            )
        return [*found, *(line for pair in self.pairs for line in _about_pair(pair)), *_about_targets(self.scenes)]


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
        inside: Flags | None = None,
        targets: int | None = None,
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
        inside : ndarray of bool, shape (height, width), optional
            Where the targets are.
        targets : int, optional
            How many they are.
        dtypes : sequence of str, optional
            Types in which the images are stored, where they are read as others to hold NaN; by default their own.
        made : sequence of ndarray, shape (height, width), optional
            The sources that recipes make of the images, which are what can be copies of each other, and what separates
            targets from the rest; by default the images.
        """
        planes = [lightness(image) for image in images]
        if len(planes) != len(self._names) or len({plane.shape for plane in planes}) != 1:
            shapes = ", ".join(str(plane.shape) for plane in planes)
            raise InvalidInputError(f"images must be {len(self._names)} of one size, one per source, got {shapes}.")
        height, width = planes[0].shape
        stored = [image.dtype.name for image in images] if dtypes is None else dtypes
        sources = planes if made is None else made
        for total, plane, source, kind in zip(self._totals, planes, sources, stored, strict=True):
            total.dtypes[kind] = None
            _gather(total, name, plane)
            auc = None if inside is None else separation(source.astype(np.float64), inside)
            total.aucs += [] if auc is None else [auc]
        sampled = [_sampled(source.ravel(), SAMPLE).astype(np.float64) for source in sources]
        for (j, first), (k, second) in combinations(enumerate(sampled), 2):
            self._alike[j, k] = self._alike[j, k] and _is_copy(first, second)
        if len(self._scenes) % self._every == 0:
            self._shifts.add(planes)
        covered = None if inside is None else float(inside.mean())
        self._scenes.append(SceneCheck(name, width, height, targets, covered))
        return self._scenes[-1]

    def result(self) -> DatasetCheck:
        """Return what was found in all scenes."""
        if not self._scenes:
            raise InvalidInputError("No scene could be checked; add at least one.")
        pairs = [
            PairCheck(self._names[j], self._names[k], bool(self._alike[j, k]), self._shifts.shift(j, k))
            for j, k in combinations(range(len(self._names)), 2)
        ]
        sources = [_summed(name, total) for name, total in zip(self._names, self._totals, strict=True)]
        return DatasetCheck(tuple(sources), tuple(pairs), tuple(self._scenes))


def separation(values: Floats, inside: Flags) -> float | None:
    """Return the area under the ROC curve of values inside against outside; None if one side has no known value."""
    known = np.isfinite(values)
    positive, negative = (_sampled(values[known & side], SAMPLE) for side in (inside, ~inside))
    found = rank(positive, negative).auc
    return None if np.isnan(found) else found


def _sampled(values: Image, n: int) -> Image:
    """Return about `n` values, evenly spaced."""
    return values[:: max(1, values.size // n)]


def _gather(total: _Totals, name: str, plane: Image) -> None:
    known = plane[np.isfinite(plane)]
    total.pixels += plane.size
    total.missing += plane.size - known.size
    if known.size:
        low, high = float(known.min()), float(known.max())
        total.low, total.high = min(total.low, low), max(total.high, high)
        if low == high:
            total.constant.append(name)
        total.samples.append(_sampled(known.astype(np.float64), SAMPLE))


def _is_copy(first: Floats, second: Floats) -> bool:
    known = np.isfinite(first) & np.isfinite(second)
    if known.sum() < 2 or first[known].std() == 0 or second[known].std() == 0:
        return bool(np.array_equal(first, second, equal_nan=True))
    return bool(abs(np.corrcoef(first[known], second[known])[0, 1]) > DUPLICATE)


def _summed(name: str, total: _Totals) -> SourceCheck:
    ends: tuple[float | None, float | None, float | None, float | None] = (None,) * 4
    if total.samples:
        least, most = np.percentile(np.concatenate(total.samples), (1, 99)).tolist()
        ends = (total.low, least, most, total.high)
    auc = float(np.mean(total.aucs)) if total.aucs else None
    return SourceCheck(name, tuple(total.dtypes), *ends, total.missing / total.pixels, tuple(total.constant), auc)


def _about_source(source: SourceCheck, n_scenes: int) -> list[str]:
    found = []
    if source.low is None:
        return [f"{source.name} has no known pixel: all are NaN or nodata. Leave it out."]
    if source.constant:
        where = "everywhere" if len(source.constant) == n_scenes else f"in {first_few(source.constant)}"
        found.append(
            f"{source.name} is constant {where}, and carries no information there. Leave it out, or check the file."
        )
    if source.missing > 0.5:
        found.append(
            f"{source.name} has no data in {source.missing:.0%} of its pixels, which are left out of learning."
        )
    if len(source.dtypes) > 1:
        found.append(f"{source.name} is {' and '.join(source.dtypes)} in different scenes. Convert them to one type.")
    return found


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
    found = []
    if narrow:
        found.append(
            f"Mapped to a sliver of [-1, 1] by the recipe, which maps the range of the type: {first_few(narrow)}. "
            "Learn a scale (--scale minmax), or choose the recipe equalize."
        )
    if outside:
        found.append(
            f"Outside [-1, 1], which train refuses: {first_few(outside)}. Learn a scale (--scale minmax), or choose a "
            "recipe (--recipe)."
        )
    return found


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
    found = []
    if empty:
        found.append(f"{len(empty)} of {len(labelled)} scenes have no target: {first_few(empty)}.")
    large = [scene.name for scene in labelled if scene.covered is not None and scene.covered > 0.5]
    if large:
        found.append(
            f"Targets cover more than half of {first_few(large)}. Check that boxes are (x, y, width, height) in "
            "pixels, and that --target names the right class."
        )
    return found
