"""From image files and annotations to scenes with labelled bags, for learning and scoring."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Flags, Floats, Ints
from bimichi.errors import AnnotationWarning, InvalidInputError, warn
from bimichi.integral.planes import Planes
from bimichi.io.annotations.mask import read_mask
from bimichi.io.annotations.match import NOTHING, Doubt, SceneTargets, check_annotations, check_targets, target_files
from bimichi.io.annotations.parse import naming
from bimichi.io.dataset import SceneCollection
from bimichi.io.images import size_of
from bimichi.io.open import open_layer
from bimichi.io.scene import OpenScene, SceneSource
from bimichi.io.similarity import describe_input, join_inputs, means_other, warn_of_copies, warn_of_fill, warn_of_inputs
from bimichi.record import SourceInput
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.checks import distinct
from bimichi.scenes.grid import Grid
from bimichi.scenes.labels import Placement, Regions, rasterise
from bimichi.scenes.masks import check_both, label_bags
from bimichi.scenes.scene import Scene, Scenes
from bimichi.scenes.superpixels import CORE, bag_sizes, core_bags, label_pixels, superpixels
from bimichi.sources.bands import Image, first_few
from bimichi.sources.operators import to_bipolar
from bimichi.sources.recipes import choose_recipes, load_recipe, make_plane

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
        warn(
            f"superpixels (--superpixels) is {n_segments:,}, but scene {scene.name!r} has {n_pixels:,} pixels with "
            "data, so that most bags are single pixels. Use fewer.",
            code="superpixels-many",
            stacklevel=2,
        )
    if np.nanmin(stack) < -1 or np.nanmax(stack) > 1:
        stack = np.stack([to_bipolar(plane, percentiles=(0, 100)) for plane in np.moveaxis(stack, -1, 0)], axis=-1)
    return superpixels(stack, n_segments, lab=False)


class SceneReader:
    """`scenes` with their bags, each read on demand; `counts` of bags, and `grids`, of those read so far.

    `notes` say how annotation files were understood; what seems to be wrong with them is a warning, one of each kind.

    The first scene decides on `source_names` and `recipes` that are not given. `scaled` says that sources may leave
    [-1, 1], as a scale will be learned; `truth` names masks to score against, as in `Labelling`, and `masks_are_truth`
    says that masks of targets to learn from are the truth of scenes that have no other.
    """

    def __init__(
        self,
        collection: SceneCollection,
        labelling: Labelling,
        recipes: Sequence[str] | None = None,
        scaled: bool = False,
        truth: str | None = None,
        masks_are_truth: bool = False,
    ) -> None:
        self._labelling, self._scaled, self._masks_are_truth = labelling, scaled, masks_are_truth
        given, named_only = labelling.annotations, labelling.labelled_only
        self._targets = None if given is None else SceneTargets(given, collection, labelling.target, named_only)
        if named_only and self._targets is not None:
            collection = collection.only(self._targets.named)
        self._collection = collection
        self.notes = [] if self._targets is None else self._targets.notes
        self._doubted: set[str] = set()
        self._filled: set[str] = set()
        self._values: set[float] = set()
        self._n_targets = 0
        self._companions = labelling.companions(collection)
        if truth is not None:
            self._companions["truth"] = collection.companions(truth, "truth")
        self._first, self._given = collection.names[0], recipes
        first = self._collection.open(self._first)
        self._opened = {self._first: first}
        self.source_names = list(first.source_names)
        for recipe in recipes or ():
            load_recipe(recipe)
        self.recipes = choose_recipes(recipes, first.examples, self.source_names)
        self.counts: dict[str, BagCounts] = {}
        self.grids: dict[str, Grid] = {}
        self._seen: dict[str, list[SourceInput]] = {}
        self.scenes = Scenes(collection.names, self._read)

    def extend(self, collection: SceneCollection) -> None:
        """Read from a collection with more scenes of the same sources from now on."""
        self._collection = collection
        self.scenes = Scenes(collection.names, self._read)

    @property
    def inputs(self) -> tuple[SourceInput, ...] | None:
        """Type and range of each source in the scenes that have been read; None if there are none."""
        return self.inputs_of(self._seen)

    def inputs_of(self, names: Iterable[str]) -> tuple[SourceInput, ...] | None:
        """Return type and range of each source in some of the scenes that have been read; None for no scenes."""
        return tuple(map(join_inputs, zip(*(self._seen[name] for name in names), strict=True))) or None

    def warn_of_inputs(self) -> None:
        """Warn of sources that are constant, or fill little of [-1, 1], in the scenes that have been read."""
        warn_of_inputs(self.inputs or (), self.recipes, self.source_names, self._scaled)

    def check_both(self) -> None:
        """Raise an error unless the scenes that have been read have bags of both classes, as learning needs."""
        remedy = "superpixels, another min_overlap, ignore or target; `bimichi bags` draws the bags"
        positive, negative, left_out = np.sum([*self.counts.values()], axis=0)
        target = self._labelling.target
        if not positive and self._values and target is not None and float(target) not in self._values:
            shown = first_few([f"{value:g}" for value in sorted(self._values)])
            raise InvalidInputError(
                f"No mask has the value {target} (--target); the masks have {shown}.", code="label-unknown"
            )
        if not self._n_targets:
            n = len(self.counts)
            raise InvalidInputError(
                f"Of {positive + negative + left_out} bags, 0 are positive, as {self._labelling.annotations} has no "
                f"targets in {n} scene{'s' * (n != 1)}; learning needs at least one of each class. Check that it names "
                "these images, which labels it has (--target), and that targets are above 0 if it is a mask.",
                code="targets-missing",
            )
        check_both(positive, negative, left_out, remedy)

    def _open(self, name: str) -> OpenScene:
        """Open a scene, its sources in the order of those of the first."""
        scene = self._opened.pop(name, None) or self._collection.open(name)
        if len(scene.sources) != len(self.source_names):
            raise InvalidInputError(
                f"Scene {name!r} has {len(scene.sources)} bands, but scene {self._first!r} has "
                f"{len(self.source_names)}.",
                code="bands-differ",
            )
        if set(scene.source_names) != set(self.source_names):
            raise InvalidInputError(
                f"Scene {name!r} has the sources {', '.join(scene.source_names)}, but scene {self._first!r} has "
                f"{', '.join(self.source_names)}. If they are the same, name them with names (--names).",
                code="sources-differ",
            )
        scene = scene.ordered([scene.source_names.index(source) for source in self.source_names])
        if choose_recipes(self._given, scene.examples, self.source_names) != self.recipes:
            raise InvalidInputError(
                f"Scene {name!r} has integers where scene {self._first!r} has floats, or the other way round. "
                "Choose a recipe (--recipe).",
                code="types-differ",
            )
        return scene

    def _read(self, name: str) -> Scene:
        return self._labelled(self.unlabelled(name))

    def unlabelled(self, name: str) -> Scene:
        """Read a scene without its labels; what is wrong with its images is an error."""
        opened = self._open(name)
        images = opened.read()
        self.grids[name] = opened.grid
        self._check_places(opened)
        self._seen[name] = [self._described(*one, name) for one in zip(images, opened.sources, strict=True)]
        self._check_types(name)
        planes = [make_plane(*one) for one in zip(images, self.recipes, opened.dtypes, strict=True)]
        if not self._scaled:
            remedy = "Choose a recipe (--recipe), map it to [-1, 1] first, or learn a scale in training (--scale)."
            Planes(planes, names=self.source_names).check_range(-1.0, f"{remedy} (Scene {name!r}.)")
        if name == self._first:
            warn_of_copies(planes, self.source_names)
        crs, transform = self.grids[name][2:]
        place = {"crs": None if crs is None else str(crs), "transform": transform}
        return Scene(np.stack(planes, axis=-1), name, tuple(self.source_names), **place)

    def _check_places(self, scene: OpenScene) -> None:
        """Raise an error if a georeferenced mask of a scene shows another place."""
        masks = {what: by_scene.get(scene.name) for what, by_scene in self._companions.items()}
        masks["labels"] = None if self._targets is None else self._targets.masks.get(scene.name)
        for what, path in masks.items():
            if path is not None and scene.grid.placed and path.suffix.lower() in (".tif", ".tiff"):
                grid = open_layer(path).grid
                if grid.shape == scene.shape and not scene.grid.matches(grid):
                    raise InvalidInputError(
                        f"{what} {path} has {grid}, but scene {scene.name!r} has {scene.grid}. Reproject it to that.",
                        code="grids-differ",
                    )

    def _described(self, image: Image, source: SceneSource, scene: str) -> SourceInput:
        """Return the type and range of a source; warn if some of its values seem to mean that there is no data."""
        found = describe_input(image, source)
        if found is None:
            raise InvalidInputError(
                f"Source {source.name!r} of scene {scene!r} has no data: every pixel is nodata or NaN. Check its file "
                "and its nodata value, or leave it out.",
                code="source-no-data",
            )
        if source.name not in self._filled and warn_of_fill(image, source.name, scene):
            self._filled.add(source.name)
        return found

    def _check_types(self, name: str) -> None:
        """Raise an error if a scene has other types than another, so that a recipe would mean something else."""
        other, known = next(iter(self._seen.items()))
        for one, first, source, recipe in zip(self._seen[name], known, self.source_names, self.recipes, strict=True):
            if means_other(recipe, one.dtype, first.dtype):
                raise InvalidInputError(
                    f"Source {source!r} is {one.dtype} in scene {name!r}, but {first.dtype} in scene {other!r}: "
                    f"{recipe} would map them differently. Convert them to one type.",
                    code="types-differ",
                )

    def _labelled(self, scene: Scene) -> Scene:
        """Add bags, their labels and the truth."""
        how = self._labelling
        files = {what: by_scene[scene.name] for what, by_scene in self._companions.items()}
        regions, found = self._regions(scene)
        ignore = np.asarray(read_scene_mask(files["ignore"], scene).mask_of(None)) if "ignore" in files else None
        given = _segments(files["bags"], scene) if "bags" in files else None
        scene, self.counts[scene.name] = bag_scene(scene, found, how, ignore, given)
        if self._masks_are_truth and found.mask is not None:
            unknown = regions.ignored if ignore is None else regions.ignored | ignore
            scene = replace(scene, truth=regions.targets, ignore=unknown)
        if "truth" not in files:
            return scene
        truth = read_scene_mask(files["truth"], scene)
        self._warn(check_annotations(truth, (scene.shape[0], scene.shape[1]), str(files["truth"]), how.target))
        return with_truth(scene, truth, how.target)

    def _regions(self, scene: Scene) -> tuple[Regions, ImageAnnotations]:
        """Return the pixels of targets and ignored objects, and the annotations in pixels that they follow from."""
        how, shape = self._labelling, (scene.shape[0], scene.shape[1])
        if self._targets is None:
            return Regions(np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)), NOTHING
        grid, where = self.grids[scene.name], self._targets.where(scene.name)
        found = self._targets.of(scene.name, Placement(shape, grid.transform, grid.crs))
        found = replace(found, ignored=()) if how.count_ignored else found
        _check_size(found, scene, where)
        with naming(where):
            if found.mask is not None and how.target is not None:
                self._values.update(np.unique(found.mask).tolist())
            self._warn(check_annotations(found, shape, where, how.target))
            regions = rasterise(split_negative(found, how)[0], shape, how.target, how.point_radius)
        self._n_targets += int(regions.targets.sum())
        self._warn([doubt for doubt in check_targets(*regions, where) if doubt.kind != "nothing labelled"])
        return regions, found

    def _warn(self, doubts: Sequence[Doubt]) -> None:
        """Warn of what is doubtful, once for each kind: further scenes would repeat it."""
        for kind, text in doubts:
            if kind not in self._doubted:
                self._doubted.add(kind)
                warn(text, code=kind.replace(" ", "-"), kind=AnnotationWarning, stacklevel=2)


def with_truth(scene: Scene, found: ImageAnnotations, target: str | None) -> Scene:
    """Add to a scene the truth that methods are scored against, of a mask whose unknown pixels are not scored."""
    unknown = found.unknown
    return replace(
        scene, truth=found.mask_of(target), ignore=unknown if unknown is not None and unknown.any() else None
    )


def _segments(path: Path, scene: Scene) -> Image:
    segments = read_scene_mask(path, scene).mask
    if segments is None or segments.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{path} must number bags by integers, one per pixel, but holds other values.", code="bags-integers"
        )
    missing = np.isnan(scene.sources).any(axis=2)
    return np.where(missing, -1, segments.astype(np.int64)) if missing.any() else segments


def read_scene_mask(path: Path, scene: Scene) -> ImageAnnotations:
    """Read the mask of a scene, which must be of its size."""
    found = read_mask(path)[None]
    _check_size(found, scene, str(path))
    return found


def _check_size(found: ImageAnnotations, scene: Scene, where: str) -> None:
    if found.mask is not None and found.mask.shape != scene.shape:
        raise InvalidInputError(
            f"{where} is {size_of(found.mask)}, but the sources of scene {scene.name!r} are {size_of(scene.sources)}. "
            "Name the mask of this scene, or resample it without interpolation.",
            code="mask-size",
        )
