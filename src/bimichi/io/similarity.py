"""Comparison of new images with those of training: of types before fusing, and of values."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from bimichi.errors import InvalidInputError, warn
from bimichi.io.scene import OpenScene, SceneSource
from bimichi.record import SourceInput
from bimichi.rule import FusionRule
from bimichi.sources.bands import Image
from bimichi.sources.recipes import AS_IS, find_recipe, make_plane

USUAL = (1, 99)  # percentiles
SAMPLE = 1 << 20  # pixels that percentiles are taken from
MARGIN = 0.5  # of the trained range, on either side, beyond which a value is far outside
MANY = 0.05  # share of such pixels that is worth a warning
NARROW = 0.02  # of the trained range: new images that span less are constant, or in other units
DISTINCT, FILLED = 16, 0.001  # values, and the share of one of them, that it takes to be taken for no data
SLIVER = 0.125  # of [-1, 1]: a source that fills less is hardly used


def describe_input(image: Image, source: SceneSource) -> SourceInput | None:
    """Return the type and the range of a source in one scene; None if it has no data."""
    values = image[np.isfinite(image)] if image.dtype.kind == "f" else image.ravel()
    if values.size == 0:
        return None
    low, high = np.percentile(values[:: max(1, values.size // SAMPLE)], USUAL)
    ends = float(values.min()), float(values.max())
    expression = None if source.computed is None else f"{source.computed.name}: {source.computed.text}"
    return SourceInput(source.dtype.name, *ends, (float(low), float(high)), source.units, expression)


def join_inputs(inputs: Sequence[SourceInput]) -> SourceInput:
    """Return the type and the range of a source in several scenes."""
    usual = (min(scene.usual[0] for scene in inputs), max(scene.usual[1] for scene in inputs))
    low, high = min(scene.low for scene in inputs), max(scene.high for scene in inputs)
    return replace(inputs[0], low=low, high=high, usual=usual)


def warn_of_inputs(inputs: Sequence[SourceInput], recipes: Sequence[str], names: Sequence[str], scaled: bool) -> None:
    """Warn of sources that are constant in training, or that their recipe maps to little of [-1, 1]."""
    for trained, recipe, name in zip(inputs, recipes, names, strict=True):
        if trained.low == trained.high:
            warn(
                f"Source {name!r} is constant: it is {trained.low:.6g} in every pixel of training, so nothing can be "
                "learned from it. Leave it out, or check its files.",
                code="source-constant",
                stacklevel=2,
            )
            continue
        if scaled or not _by_type(recipe):
            continue
        (low, high), dtype = trained.usual, np.dtype(trained.dtype)
        mapped = make_plane(np.array([[low, high]], np.float64), recipe, dtype)[0]
        if mapped[1] - mapped[0] < 2 * SLIVER:
            warn(
                f"Source {name!r} ({dtype}) has values of about {low:.6g} to {high:.6g}, which "
                f"{recipe} maps to {mapped[0]:.3f} to {mapped[1]:.3f}: little of [-1, 1]. Pass scale='minmax' (--scale "
                "minmax) to learn its range, or choose the recipe equalize.",
                code="source-narrow",
                stacklevel=2,
            )


def warn_of_fill(image: Image, name: str, scene: str) -> bool:
    """Warn, and return True, if an extreme value lies so far from all others that it probably means no data."""
    values = image[np.isfinite(image)] if image.dtype.kind == "f" else image.ravel()
    distinct, counts = np.unique(values[:: max(1, values.size // SAMPLE)], return_counts=True)
    if len(distinct) < DISTINCT or counts.max() < FILLED * counts.sum():
        return False
    steps = np.diff(distinct.astype(np.float64))
    for end, step in ((0, steps[0]), (-1, steps[-1])):
        if step > steps.sum() / 2 and counts[end] >= FILLED * counts.sum():
            rest = np.delete(distinct, end)
            warn(
                f"Source {name!r} of scene {scene!r} is {distinct[end]:.6g} in {counts[end] / counts.sum():.1%} of its "
                f"pixels, far from all others ({rest[0]:.6g} to {rest[-1]:.6g}). If that means no data, declare it as "
                f"the nodata value of the file, or replace it by NaN.",
                code="nodata-undeclared",
                stacklevel=2,
            )
            return True
    return False


def warn_of_copies(planes: Sequence[Image], names: Sequence[str]) -> None:
    """Warn of sources that are the same in every pixel, and not constant."""
    for k, plane in enumerate(planes):
        for other, earlier in zip(planes[:k], names, strict=False):
            if np.array_equal(plane[::9], other[::9], equal_nan=True) and np.array_equal(plane, other, equal_nan=True):
                if np.nanmin(plane) < np.nanmax(plane):
                    warn(
                        f"Sources {earlier!r} and {names[k]!r} are identical in every pixel. Leave one out, check "
                        "their files, or give them different recipes (--recipe).",
                        code="sources-identical",
                        stacklevel=2,
                    )
                break


def check_types(rule: FusionRule, scene: OpenScene, recipes: Sequence[str]) -> None:
    """Raise an error if a source has another type than in training, so that its recipe would mean something else."""
    for source, trained, recipe in zip(scene.sources, rule.inputs or (), recipes, strict=False):
        before, now = trained.dtype, source.dtype.name
        if means_other(recipe, before, now):
            raise InvalidInputError(
                f"Source {source.name!r} of scene {scene.name!r} is {now}, but the model was trained on {before}: "
                f"{recipe} maps the range of the type to [-1, 1], so the same values would mean something else. "
                f"Convert it to {before}, or train on {now}.",
                code="type-of-training",
            )
        if trained.units and source.units and trained.units != source.units:
            warn(
                f"Source {source.name!r} of scene {scene.name!r} is in {source.units}, but the model was trained on "
                f"{trained.units}. Convert it, unless both mean the same.",
                code="units-differ",
                stacklevel=2,
            )


class InputWatch:
    """Least and greatest values of the sources of a scene as they are read, in parts and by several threads.

    `warn` compares them with those of training; a rule that does not know them is not compared.
    """

    def __init__(self, rule: FusionRule, scene: OpenScene) -> None:
        self._trained, self._scene, self._lock = rule.inputs or (), scene, Lock()
        n = len(self._trained)
        # Recipes that compare the values of an image with each other do not depend on their range.
        self._relative = [not find_recipe(recipe).pointwise for recipe in rule.recipes or ()] or [False] * n
        self._low, self._high = [np.inf] * n, [-np.inf] * n
        self._outside, self._counted = [0] * n, [0] * n

    def see(self, images: Sequence[Image]) -> None:
        """Record the range of a part of each source, before its recipe."""
        for k, (image, trained) in enumerate(zip(images, self._trained, strict=False)):
            low, high = float(np.fmin.reduce(image, axis=None)), float(np.fmax.reduce(image, axis=None))
            if not low <= high:  # all NaN
                continue
            reach = MARGIN * (trained.high - trained.low)
            least, most = trained.low - reach, trained.high + reach
            outside = int(((image < least) | (image > most)).sum()) if low < least or high > most else 0
            with self._lock:
                self._low[k], self._high[k] = min(self._low[k], low), max(self._high[k], high)
                self._outside[k] += outside
                self._counted[k] += image.size

    def warn(self) -> None:
        """Warn of sources whose values are far from those of training."""
        for k, trained in enumerate(self._trained):
            if not self._counted[k] or trained.low == trained.high:
                continue
            low, high = self._low[k], self._high[k]
            source = f"Source {self._scene.sources[k].name!r} of scene {self._scene.name!r}"
            before = f"the model was trained on {trained.low:.6g} to {trained.high:.6g}"
            remedy = "Check its units and its file; convert it to those of training, or train again."
            share = self._outside[k] / self._counted[k]
            if low == high:
                warn(f"{source} is constant ({low:.6g}), but {before}. {remedy}", code="source-constant", stacklevel=2)
            elif self._relative[k]:
                continue
            elif share > MANY:
                text = f"{source} has values of {low:.6g} to {high:.6g}, {share:.0%} of them far outside: {before}."
                warn(f"{text} {remedy}", code="source-beyond-training", stacklevel=2)
            elif high - low < NARROW * (trained.high - trained.low):
                warn(
                    f"{source} only has values of {low:.6g} to {high:.6g}, but {before}. {remedy}",
                    code="source-narrow",
                    stacklevel=2,
                )


def means_other(recipe: str, first: str, second: str) -> bool:
    """Return whether a recipe maps the same values differently if they are stored in another type."""
    if first == second or not _by_type(recipe):
        return False
    make, values = find_recipe(recipe).function, np.array([[0, 1]])
    before, after = (make(values.astype(kind)) for kind in (first, second))
    return not np.allclose(before, after)


def _by_type(recipe: str) -> bool:
    """Return whether a recipe maps the range of the type of an image, rather than that of its values."""
    return recipe != AS_IS and find_recipe(recipe).pointwise
