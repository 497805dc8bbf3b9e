"""Images of one scene fused by a rule, strip by strip, so that memory is little more than that of the images."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi.errors import InvalidInputError
from bimichi.integral.labelled import match_sources
from bimichi.integral.planes import Planes, check_n_jobs, in_threads
from bimichi.io.scene import OpenScene
from bimichi.io.similarity import InputWatch, check_types
from bimichi.io.write import write_image
from bimichi.link import Link
from bimichi.rule import FusionRule
from bimichi.sources.bands import Image, Plane
from bimichi.sources.expressions import parse_expression
from bimichi.sources.recipes import AS_IS, choose_recipes, find_recipe, make_plane
from bimichi.sources.source_bank import Bank

STRIP = 1 << 16  # pixels that a thread fuses at a time, so that intermediate results stay small
BATCH_SHARE = 1 << 18  # pixels of each scene from which the share of targets of a batch is estimated


class FusedScene(NamedTuple):
    """The files that were written for a scene, its pixels, and how many of them are NaN and so 0 in a PNG."""

    files: list[Path]
    pixels: int
    missing: int = 0


def fuse_scene(
    rule: FusionRule,
    scene: OpenScene,
    output: Path,
    png: bool = False,
    n_jobs: int | None = None,
    prior_shift: bool = False,
) -> FusedScene:
    """Fuse the images of a scene to a TIFF, a PNG, or (`png`) both; sources are matched by name.

    With `prior_shift`, the share of targets is estimated on the scene itself; see `FusionRule.shifted`.
    """
    matched, recipes, images = _read(rule, scene)
    strips = (shifted_strips if prior_shift else fused_strips)(rule, images, recipes, n_jobs, matched.dtypes)
    if rule.decision is not None and rule.decision.smooth is not None:
        strips = iter([rule.decision.smoothed(np.concatenate(list(strips)))])
    files, missing = _write_strips(output, strips, matched.shape, png)
    return FusedScene(files, matched.shape[0] * matched.shape[1], missing)


def shifted_strips(rule: FusionRule, *arguments: Any) -> Iterator[Plane]:
    """Yield probabilities for the share of targets that the scene itself suggests; arguments as in `fused_strips`.

    Its integrals are held in memory.
    """
    trained = _link_of(rule)
    strips = list(fused_strips(replace(rule, link=None), *arguments))
    link = trained.adapted(np.concatenate([strip.ravel() for strip in strips]))
    for strip in strips:
        yield link.probability(strip).astype(np.float32, copy=False)


def shifted_by_batch(rule: FusionRule, scenes: Iterable[OpenScene], n_jobs: int | None = None) -> FusionRule:
    """Return the rule for the share of targets that all scenes together suggest; see `FusionRule.shifted`.

    At most `BATCH_SHARE` pixels of a scene count, evenly spaced. Scenes are read one at a time.
    """
    trained, plain = _link_of(rule), replace(rule, link=None)
    samples = []
    for scene in scenes:
        if scene.placed:
            raise unknown_share(scene.name)
        matched, recipes = match_scene(rule, scene)
        strips = fused_strips(plain, matched.read(), recipes, n_jobs, matched.dtypes)
        values = np.concatenate([strip.ravel() for strip in strips])
        samples.append(values[:: -(-len(values) // BATCH_SHARE)])
    return replace(rule, link=trained.adapted(np.concatenate(samples)))


def unknown_share(name: str) -> InvalidInputError:
    """Return the error for a raster whose share of targets would have to be estimated."""
    return InvalidInputError(
        f"Scene {name!r} is georeferenced and fused in windows, so that its share of targets is not known "
        "beforehand; give it with --base-rate, or estimate it in Python on some pixels: FusionRule.shifted.",
        code="base-rate-windows",
    )


def _link_of(rule: FusionRule) -> Link:
    if rule.link is None:
        raise InvalidInputError(
            "Only the share of targets behind probabilities can be shifted, and this model gives none. Train it with "
            "objective='logistic', or leave out prior_shift (--prior-shift, --prior-shift-batch).",
            code="shift-without-link",
        )
    return rule.link


def match_scene(rule: FusionRule, scene: OpenScene) -> tuple[OpenScene, list[str]]:
    """Return a scene with its sources in the order of those of a rule, which they must be by name, and their recipes.

    Recipes are those of the rule, or follow from the types of the images if it has none. Sources that were computed
    from bands in training are computed here, too, unless the scene has them already.
    """
    expected = rule.raw_names
    formulas = [record.expression for record in rule.inputs or () if record.expression is not None]
    if len(formulas) == len(expected) and not any(source.computed for source in scene.sources):
        scene = scene.computed([parse_expression(text) for text in formulas])
    called = scene.source_names
    quote = " Quote patterns, or the shell replaces each by all its files." if len(called) > len(expected) else ""
    remedy = f"If they are the same, name them with names (--names), in the order given.{quote}"
    if set(called) < set(expected):
        remedy = f"Give {', '.join(name for name in expected if name not in called)}, too."
    elif set(called) > set(expected):
        remedy = f"Leave out {', '.join(name for name in called if name not in expected)}.{quote}"
    if len(scene.layers) == 1 and len(called) > len(expected):
        remedy = f"Choose bands, as in {scene.layers[0].label}[{','.join(expected)}]. {remedy}"
    positions = match_sources(expected, len(expected), called, len(called), f"Scene {scene.name!r}", remedy)
    matched = scene.ordered(positions)
    if rule.bank is not None:
        _check_colours(rule.bank, matched)
    recipes = [AS_IS] * len(expected)
    if rule.bank is None:
        recipes = choose_recipes(rule.recipes, matched.examples, expected)
    check_types(rule, matched, recipes)
    return matched, recipes


def _check_colours(bank: Bank, scene: OpenScene) -> None:
    """Raise an error if an image is in colour, and was not in training, or the other way round."""
    for raw, source in zip(bank.raws, scene.sources, strict=True):
        if raw.colour != (source.example.ndim == 3):
            is_, was = ("in colour", "grey") if not raw.colour else ("grey", "in colour")
            raise InvalidInputError(
                f"Image {source.name!r} of scene {scene.name!r} is {is_}, but was {was} in training. Convert it.",
                code="colours-differ",
            )


def make_sources(rule: FusionRule, scene: OpenScene) -> list[Image]:
    """Return the sources of a scene as a rule takes them.

    Parameters
    ----------
    rule : FusionRule
        What was learned: its names, recipes and expressions are applied; scale and polarity are left to `rule.fuse`.
    scene : OpenScene
        One of `open_scenes`; its sources are matched by name, in any order.

    Returns
    -------
    list of ndarray, shape (height, width)
        One per source of the rule, as `rule.fuse` takes them; NaN where there is no data.

    Warns
    -----
    UserWarning
        If images are unlike those of training.
    """
    matched, recipes, images = _read(rule, scene)
    if rule.bank is not None:
        return list(rule.bank.planes(images))
    return [make_plane(*arguments) for arguments in zip(images, recipes, matched.dtypes, strict=True)]


def _read(rule: FusionRule, scene: OpenScene) -> tuple[OpenScene, list[str], list[Image]]:
    """Return a matched scene, its recipes and its images; warn if these are unlike those of training."""
    matched, recipes = match_scene(rule, scene)
    images, watch = matched.read(), InputWatch(rule, matched)
    watch.see(images)
    watch.warn()
    return matched, recipes, images


def fused_strips(
    rule: FusionRule,
    images: Sequence[Image],
    recipes: Sequence[str],
    n_jobs: int | None = None,
    dtypes: Sequence[np.dtype[Any]] | None = None,
) -> Iterator[Plane]:
    """Yield the fused map in strips of rows, from the top; only a few of them are in memory at a time.

    `dtypes` are the types in which the images are stored, by default their own.
    """
    if rule.bank is not None:
        images = rule.bank.planes(images, check_n_jobs(n_jobs))
        recipes, dtypes = [AS_IS] * len(images), None
    kinds = [image.dtype for image in images] if dtypes is None else list(dtypes)
    pointwise = [find_recipe(recipe).pointwise for recipe in recipes]
    whole = [
        image if alone else make_plane(image, recipe, kind)
        for image, recipe, kind, alone in zip(images, recipes, kinds, pointwise, strict=True)
    ]
    rest = [recipe if alone else AS_IS for recipe, alone in zip(recipes, pointwise, strict=True)]
    rows = max(1, STRIP // images[0].shape[1])

    def strip(start: int) -> Plane:
        part = slice(start, start + rows)
        planes = [make_plane(image[part], recipe, kind) for image, recipe, kind in zip(whole, rest, kinds, strict=True)]
        try:
            fused: Plane = rule.fuse(planes, n_jobs=1).astype(np.float32, copy=False)
        except InvalidInputError:
            remedy = "Map it to the range that the model was trained on."
            Planes(planes, names=rule.source_names).check_range(-1.0, remedy)
            raise
        return fused

    yield from in_threads(strip, range(0, len(images[0]), rows), check_n_jobs(n_jobs))


def _write_strips(path: Path, strips: Iterator[Plane], shape: tuple[int, int], png: bool) -> tuple[list[Path], int]:
    """Write a map in [-1, 1]: a TIFF of float32, a PNG of 8 bits, or both; each whole or not at all.

    All `strips` but the last have the same number of rows. Returns the files, and the number of pixels that are NaN and
    so 0 in the PNG.
    """
    picture = path.with_suffix(".png") if png or path.suffix.lower() == ".png" else None
    levels: list[NDArray[np.uint8]] = []
    missing = 0

    def watched() -> Iterator[Plane]:
        nonlocal missing
        for strip in strips:
            if picture:
                missing += int(np.isnan(strip).sum())
                levels.append(np.rint((np.nan_to_num(strip, nan=-1.0) + 1) * np.float32(127.5)).astype(np.uint8))
            yield strip

    if path == picture:
        deque(watched(), maxlen=0)
    else:
        seen = watched()
        first = next(seen)
        content = (np.ascontiguousarray(strip).tobytes() for strip in chain([first], seen))
        how = {"shape": shape, "dtype": np.float32, "rowsperstrip": len(first), "photometric": "minisblack"}
        atomic_write(path, lambda file: import_optional("tifffile").imwrite(file, content, metadata=None, **how))
    if picture:
        write_image(picture, np.concatenate(levels))
    return [path] if picture in (None, path) else [path, picture], missing
