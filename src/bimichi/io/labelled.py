"""From image files and annotations to scenes with labelled bags, for learning and scoring."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bimichi.errors import AnnotationWarning, InvalidInputError, warn
from bimichi.integral.planes import Planes
from bimichi.io.annotations import read_mask
from bimichi.io.annotations.match import NOTHING, Doubt, SceneTargets, check_annotations, check_targets, target_files
from bimichi.io.annotations.parse import naming
from bimichi.io.dataset import SceneCollection
from bimichi.io.images import size_of
from bimichi.io.open import open_layer
from bimichi.io.scene import OpenScene, SceneSource
from bimichi.io.similarity import describe_input, join_inputs, means_other, warn_of_copies, warn_of_fill, warn_of_inputs
from bimichi.record import SourceInput
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.grid import Grid, Placement
from bimichi.scenes.labels import BagCounts, Labelling, bag_scene, check_both, rasterise, split_negative
from bimichi.scenes.scene import Scene
from bimichi.sources.bands import Image, first_few
from bimichi.sources.recipes import AS_IS, choose_recipes, load_recipe, make_plane, suited_recipes
from bimichi.sources.source_bank import Raw


def label_files(how: Labelling, scenes: SceneCollection) -> list[Path]:
    """Return all files from which the labels of scenes will be read."""
    companions = how.companions(scenes, how.labelled_only).values()
    files = [path for by_scene in companions for path in by_scene.values()]
    return files if how.annotations is None else [*target_files(how.annotations, scenes, how.labelled_only), *files]


class LabelledDataset(Dataset):
    """Scenes of files with their bags, each read on demand; `counts` of bags, and `grids`, of those read so far.

    `notes` say how annotation files were understood; what seems to be wrong with them is a warning, one of each kind.

    The first scene decides on `source_names` and `recipes` that are not given. `scaled` says that sources may leave
    [-1, 1], as a scale will be learned; `truth` names masks to score against, as in `Labelling`. With `raw`, scenes
    hold the images as they are, three planes of one in colour, for `bimichi.BankFusion`, and `raws` describes them.
    """

    def __init__(
        self,
        collection: SceneCollection,
        labelling: Labelling,
        recipes: Sequence[str] | None = None,
        scaled: bool = False,
        truth: str | None = None,
        raw: bool = False,
    ) -> None:
        if raw and labelling.bags is None:  # pixels are learned from, so that superpixels would be made for nothing
            labelling = replace(labelling, bags="boxes")
        self._labelling, self._scaled, self._raw = labelling, scaled or raw, raw
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
        self.raws = [Raw(source.name, source.example.ndim == 3) for source in first.sources]
        for recipe in recipes or ():
            load_recipe(recipe)
        self._by_type = [AS_IS] * len(self.raws) if raw else self._chosen_recipes(first)
        self.recipes = self._by_type
        if recipes is None and not scaled and not raw:
            self.recipes = suited_to(first, self._by_type)
            self.notes = [*self.notes, *recipe_notes(first, self.recipes)]
        self.counts: dict[str, BagCounts] = {}
        self.grids: dict[str, Grid] = {}
        self._seen: dict[str, list[SourceInput]] = {}
        super().__init__(collection.names, self._read)

    def _chosen_recipes(self, scene: OpenScene) -> list[str]:
        return choose_recipes(self._given, scene.examples, self.source_names)

    def extend(self, collection: SceneCollection) -> None:
        """Read from a collection with more scenes of the same sources from now on."""
        self._collection, self.names = collection, tuple(collection.names)

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
        if self._raw:
            self._check_colours(scene)
        elif self._chosen_recipes(scene) != self._by_type:
            raise InvalidInputError(
                f"Scene {name!r} has integers where scene {self._first!r} has floats, or the other way round. "
                "Choose a recipe (--recipe).",
                code="types-differ",
            )
        return scene

    def _check_colours(self, scene: OpenScene) -> None:
        """Raise an error if an image is in colour in one scene, and grey in another."""
        for raw, source in zip(self.raws, scene.sources, strict=True):
            if raw.colour != (source.example.ndim == 3):
                first, here = ("in colour", "grey") if raw.colour else ("grey", "in colour")
                raise InvalidInputError(
                    f"Image {raw.name!r} is {here} in scene {scene.name!r}, but {first} in scene {self._first!r}. "
                    "Convert them to one kind.",
                    code="colours-differ",
                )

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
        planes, names = self._bands(images) if self._raw else self._made(images, opened.dtypes)
        if not self._scaled:
            remedy = "Choose a recipe (--recipe), map it to [-1, 1] first, or learn a scale in training (--scale)."
            Planes(planes, names=self.source_names).check_range(-1.0, f"{remedy} (Scene {name!r}.)")
        if name == self._first:
            warn_of_copies(planes, names)
        crs, transform = self.grids[name][2:]
        place = {"crs": None if crs is None else str(crs), "transform": transform}
        return Scene(np.stack(planes, axis=-1), name, names, **place)

    def _made(self, images: Sequence[Image], dtypes: Sequence[np.dtype[Any]]) -> tuple[list[Image], tuple[str, ...]]:
        """Return the sources that recipes make of images, and their names."""
        planes = [make_plane(*one) for one in zip(images, self.recipes, dtypes, strict=True)]
        return planes, tuple(self.source_names)

    def _bands(self, images: Sequence[Image]) -> tuple[list[Image], tuple[str, ...]]:
        """Return images as planes of floats, and their names; of one in colour, three."""
        planes: list[Image] = []
        names: list[str] = []
        for raw, image in zip(self.raws, images, strict=True):
            bands = np.moveaxis(image, -1, 0) if raw.colour else [image]
            planes += [band.astype(np.float32, copy=False) for band in bands]
            names += [f"{raw.name} {colour}" for colour in ("red", "green", "blue")] if raw.colour else [raw.name]
        return planes, tuple(names)

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
        drawn = self._annotations(scene)
        ignore = np.asarray(read_scene_mask(files["ignore"], scene).mask_of(None)) if "ignore" in files else None
        segments = _segments(files["bags"], scene) if "bags" in files else None
        scene, self.counts[scene.name] = bag_scene(scene, drawn, how, ignore, segments)
        if "truth" not in files:
            return scene
        truth = read_scene_mask(files["truth"], scene)
        self._warn(check_annotations(truth, (scene.shape[0], scene.shape[1]), str(files["truth"]), how.target))
        return with_truth(scene, truth, how.target)

    def _annotations(self, scene: Scene) -> ImageAnnotations:
        """Return what was drawn on a scene, in its pixels; warn of what is doubtful about it."""
        how, shape = self._labelling, (scene.shape[0], scene.shape[1])
        if self._targets is None:
            return NOTHING
        grid, where = self.grids[scene.name], self._targets.where(scene.name)
        drawn = self._targets.of(scene.name, Placement(shape, grid.transform, grid.crs))
        drawn = replace(drawn, ignored=()) if how.count_ignored else drawn
        _check_size(drawn, scene, where)
        with naming(where):
            if drawn.mask is not None and how.target is not None:
                self._values.update(np.unique(drawn.mask).tolist())
            self._warn(check_annotations(drawn, shape, where, how.target))
            regions = rasterise(split_negative(drawn, how)[0], shape, how.target, how.point_radius)
        self._n_targets += int(regions.targets.sum())
        self._warn([doubt for doubt in check_targets(*regions, where) if doubt.kind != "nothing labelled"])
        return drawn

    def _warn(self, doubts: Sequence[Doubt]) -> None:
        """Warn of what is doubtful, once for each kind: further scenes would repeat it."""
        for kind, text in doubts:
            if kind not in self._doubted:
                self._doubted.add(kind)
                warn(text, code=kind.replace(" ", "-"), kind=AnnotationWarning, stacklevel=2)


def suited_to(scene: OpenScene, recipes: Sequence[str]) -> list[str]:
    """Return recipes that suit the values of a scene, which is read only if it has floats."""
    return suited_recipes(recipes, scene.read()) if AS_IS in recipes else list(recipes)


def recipe_notes(scene: OpenScene, recipes: Sequence[str]) -> list[str]:
    """Return sentences about sources that enter otherwise than by the range of their type."""
    notes = []
    for source, recipe in zip(scene.sources, recipes, strict=True):
        if source.example.ndim == 3:
            notes.append(f"{source.name}: colour counts by its lightness.")
        if recipe == "quantile":
            notes.append(f"{source.name}: the 1st to the 99th percentile of each scene become -1 and 1 (quantile).")
    return notes


def with_truth(scene: Scene, mask: ImageAnnotations, target: str | None) -> Scene:
    """Add to a scene the truth that methods are scored against, of a mask whose unknown pixels are not scored."""
    unknown = mask.unknown
    return replace(scene, truth=mask.mask_of(target), ignore=unknown if unknown is not None and unknown.any() else None)


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
    mask = read_mask(path)[None]
    _check_size(mask, scene, str(path))
    return mask


def _check_size(drawn: ImageAnnotations, scene: Scene, where: str) -> None:
    if drawn.mask is not None and drawn.mask.shape != scene.shape:
        raise InvalidInputError(
            f"{where} is {size_of(drawn.mask)}, but the sources of scene {scene.name!r} are {size_of(scene.sources)}. "
            "Name the mask of this scene, or resample it without interpolation.",
            code="mask-size",
        )
