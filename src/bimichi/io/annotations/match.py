"""The annotations of scenes, from a file or folder of any format, or from one file per scene."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import AnnotationWarning, InvalidInputError, warn
from bimichi.io.annotations import annotation_files, format_of, read_annotations
from bimichi.io.dataset import SceneCollection, SceneFiles
from bimichi.io.open import existing_path, is_pattern
from bimichi.scenes.annotations import AnnotationTable, ImageAnnotations, image_annotations, in_pixels
from bimichi.scenes.grid import Placement
from bimichi.scenes.shapes import shown_box
from bimichi.sources.bands import first_few

SLACK = 1.0  # pixels that a box may exceed the image by, as tools round
FEW = 3  # boxes below which their proportions say little
MOST = 0.5  # share of an image above which targets are probably the background
MANY_VALUES = 12  # of a mask that are listed


class Doubt(NamedTuple):
    """Something about annotations that is probably a mistake: what kind, and a sentence that names the remedy."""

    kind: str
    text: str


def check_annotations(
    annotations: ImageAnnotations, shape: tuple[int, int], where: str, target: str | None = None
) -> list[Doubt]:
    """Return what is doubtful about the annotations of an image: its boxes, or its mask.

    Parameters
    ----------
    annotations : ImageAnnotations
        In pixels.
    shape : (int, int)
        Height and width of the image.
    where : str
        The file, and the image if the file is about several, for the sentences.
    target : str, optional
        The class of targets; by default all classes.

    Returns
    -------
    list of Doubt
        Empty if nothing is.
    """
    doubts = [] if annotations.mask is None else check_mask_values(annotations.mask, where, target)
    return doubts + check_boxes(annotations.boxes_of(target), shape, where)


def check_boxes(boxes: Floats, shape: tuple[int, int], where: str) -> list[Doubt]:
    """Return what is doubtful about boxes (x, y, width, height): normalised, corners, swapped axes, outside."""
    height, width = shape
    if not len(boxes) or min(shape) < 3:
        return []
    x, y, w, h = boxes.T
    beyond = (x < -SLACK) | (y < -SLACK) | (x + w > width + SLACK) | (y + h > height + SLACK)
    corners = (w > x) & (h > y) & (w <= width + SLACK) & (h <= height + SLACK) & (x >= 0) & (y >= 0)
    swapped = (x >= -SLACK) & (y >= -SLACK) & (y + h <= width + SLACK) & (x + w <= height + SLACK)
    first, size = shown_box(boxes[int(np.argmax(beyond))]), f"the image of {width} x {height} pixels"
    if (boxes <= 1).all() and (boxes != np.round(boxes)).any():
        kind = "normalised"
        text = (
            f"all values of the boxes lie below 1, the first is {shown_box(boxes[0])}, so they seem to be fractions of "
            f"the image. Multiply x and width by {width}, y and height by {height}."
        )
    elif corners.all() and (beyond.any() or (len(boxes) >= FEW and (x > 0).all() and (y > 0).all())):
        kind = "corners"
        text = (
            f"width and height exceed x and y in every box, as in {first}, so they seem to be the opposite corner. "
            "Name such columns xmin, ymin, xmax, ymax, or subtract x and y."
        )
    elif not beyond.any():
        return []
    elif swapped.all():
        kind = "swapped"
        text = (
            f"the box {first} exceeds {size}, but all boxes would lie inside if x and y were exchanged, so they "
            "seem to be swapped. Exchange x with y and width with height."
        )
    else:
        kind = "outside"
        text = (
            f"{int(beyond.sum())} of {len(boxes)} boxes exceed {size}, the first is {first}. Check that boxes are (x, "
            "y, width, height) in pixels of this image, not of one of another size."
        )
    return [Doubt(kind, f"{where}: {text}")]


def check_mask_values(mask: NDArray[Any], where: str, target: str | None = None) -> list[Doubt]:
    """Return what is doubtful about a mask: several classes without a target, or a target that it does not hold."""
    values, counts = np.unique(mask[~np.isnan(mask)] if mask.dtype.kind == "f" else mask, return_counts=True)
    if target is not None or (values > 0).sum() <= 1:
        return []
    shown = ", ".join(f"{v:g} ({n:,} pixels)" for v, n in zip(values[:MANY_VALUES].tolist(), counts, strict=False))
    shown += f" and {len(values) - MANY_VALUES} more" if len(values) > MANY_VALUES else ""
    text = f"{where} has several values above 0, which all count as targets: {shown}."
    return [Doubt("several classes", f"{text} To count one class alone, pass it as target (--target VALUE).")]


def check_targets(targets: Flags, ignored: Flags, where: str) -> list[Doubt]:
    """Return what is doubtful about the pixels that are targets: none, all, or more than half."""
    known = ~ignored
    total, hits = int(known.sum()), int((targets & known).sum())
    if not hits:
        kind = "nothing labelled"
        text = (
            "no pixel is target. If there should be some, check the names of images and the label (--target) in the "
            "file."
        )
    elif hits == total:
        kind = "one class only"
        text = (
            "every known pixel is target, so there is no background to learn from. Check that targets are above 0 in "
            "the mask and the background is 0, or choose a class (--target)."
        )
    elif hits > MOST * total:
        kind, remedy = "more than half", "invert the mask, or choose a class (--target)"
        text = f"{hits / total:.0%} of the image are targets. If these are the background, {remedy}."
    else:
        return []
    return [Doubt(kind, f"{where}: {text}")]


def check_target(counts: Mapping[str | None, int], target: str, where: str) -> None:
    """Raise an error that lists the labels found unless `target` is one of them."""
    if target in counts or not counts:
        return
    if set(counts) == {None}:
        raise InvalidInputError(
            f"{where} gives no labels, so none of its boxes is {target!r}; pass no label (--target).",
            code="label-unused",
        )
    named = Counter({label: n for label, n in counts.items() if label is not None})
    alike = [label for label in named if label.casefold().strip() == target.casefold().strip()]
    if alike:
        raise InvalidInputError(
            f"{where} has no label {target!r}, but {alike[0]!r} ({named[alike[0]]:,}); pass it as it is written "
            f"(--target {alike[0]!r}).",
            code="label-unknown",
        )
    raise InvalidInputError(
        f"{where} has no label {target!r}; it has {listed_labels(named)}. Pass one of them (--target).",
        code="label-unknown",
    )


def listed_labels(counts: Mapping[Any, int]) -> str:
    """Return labels with their counts, the most frequent first."""
    most = sorted(counts.items(), key=lambda pair: -pair[1])[:MANY_VALUES]
    shown = [f"{'no label' if label is None else repr(label)} ({n:,})" for label, n in most]
    return ", ".join(shown) + (f" and {len(counts) - MANY_VALUES} more" if len(counts) > MANY_VALUES else "")


NOTHING = image_annotations([])


class SceneTargets:
    """Annotations of each scene, by its name, and `notes` on what had to be concluded.

    Masks are read on demand, other files at once. `given` is a file or a folder, or a pattern for one file per scene;
    see docs/command-line.md; `masks` are those of its files that are masks. `target` must be a label of the files, if
    they have labels. With `named_only`, scenes that they do not name will be left out.
    """

    def __init__(
        self, given: str | Path, collection: SceneCollection, target: str | None = None, named_only: bool = False
    ) -> None:
        self._unnamed = "they are left out" if named_only else "no targets"
        self.notes: list[str] = []
        self.masks: dict[str, Path] = {}
        self._table: dict[str, ImageAnnotations] = {}
        self._origin: dict[str, str] = {}
        self._collection = collection
        self._scenes = {scene.name: scene for scene in collection.scenes}
        whole = _files_of_scenes(str(given), collection, named_only)
        if isinstance(whole, Path):
            self._match(read_annotations(whole), str(whole))
        else:
            for name, file in whole.items():
                self._add(name, file)
        if self.masks:
            return
        counts: Counter[str | None] = sum((drawn.counts for drawn in self._table.values()), Counter())
        if target is not None:
            check_target(counts, target, str(given))
        elif len(counts) > 1:
            self.notes.append(f"{given}: all labels count as targets: {listed_labels(counts)}. --target selects one.")

    @property
    def named(self) -> set[str]:
        """Names of the scenes that the annotations are about."""
        return {*self.masks, *self._table}

    def where(self, name: str) -> str:
        """Return the file, and the image in it, for messages about a scene."""
        return self._origin.get(name, f"scene {name!r}")

    def of(self, name: str, placement: Placement | None = None) -> ImageAnnotations:
        """Return the annotations of a scene in its pixels; `placement` saves opening it."""
        if name in self.masks:
            return read_annotations(self.masks[name])[None]
        annotations = self._table.get(name, NOTHING)
        if annotations.units != "pixels" and placement is None:
            grid = self._collection.open(name).grid
            placement = Placement(grid.shape, grid.transform, grid.crs)
        return in_pixels(annotations, placement, self.where(name))

    def _add(self, name: str, file: Path) -> None:
        """Take a file as that of one scene, by its own name."""
        kind = format_of(file)
        if kind is not None and kind.name == "mask":
            self.masks[name], self._origin[name] = file, str(file)
            return
        table = read_annotations(file)
        if len(table) == 1:
            image, self._table[name] = next(iter(table.items()))
            self._origin[name] = str(file)
            if image is not None and not match_images([image], [self._scenes[name]], str(file)):
                self.notes.append(f"{file} is about the image {image!r}; by its own name it is taken for {name!r}.")
        else:
            self._match(table, str(file), [self._scenes[name]])
        self._say(table.about)

    def _match(self, table: AnnotationTable, where: str, scenes: list[SceneFiles] | None = None) -> None:
        """Distribute the images of a file or folder among the scenes."""
        self._say(table.about)
        scenes = list(self._scenes.values()) if scenes is None else scenes
        on_map = None in table and table[None].units == "map"
        if None in table and len(scenes) > 1 and not on_map:
            raise InvalidInputError(
                f"{where} does not say in which of the {len(scenes)} scenes a box is; a CSV file needs a column image.",
                code="annotations-scene",
            )
        if None in table:
            for scene in scenes:
                self._table[scene.name], self._origin[scene.name] = table[None], where
            return
        images = match_images([image for image in table if image is not None], scenes, where)
        if not images and len(scenes) == 1 and len(table) == 1:
            image = next(iter(table))
            files = first_few([file.name for file in scenes[0].files])
            warn(
                f"{where} is about one image, {image!r}, which is none of {files}; it is "
                f"taken for scene {scenes[0].name!r}. If it is another, name the file of this scene (--boxes).",
                code="annotations-other-image",
                kind=AnnotationWarning,
                stacklevel=2,
            )
            images = {scenes[0].name: [str(image)]}
        self._report_rest(table, images, scenes, where)
        for name, named in images.items():
            self._table[name] = _joined([table[image] for image in named])
            self._origin[name] = f"{where}, image {' and '.join(named)}"

    def _report_rest(
        self, table: AnnotationTable, images: Mapping[str, list[str]], scenes: list[SceneFiles], where: str
    ) -> None:
        """Say which images are of no scene, and which scenes have no image."""
        used = {image for named in images.values() for image in named}
        rest = {image: len(drawn.boxes) for image, drawn in table.items() if image not in used}
        names = first_few([repr(scene.name) for scene in scenes])
        if table and not images:
            shown = first_few([repr(image) for image in rest])
            raise InvalidInputError(
                f"{where} has boxes of the image{'s' * (len(rest) > 1)} {shown}, but the scenes are {names}. Images "
                "are matched by path, name, or name without suffix.",
                code="annotations-other-images",
            )
        if rest:
            shown = first_few([repr(image) for image in rest])
            counted = f"{_count(sum(rest.values()), 'object')} of {_count(len(rest), 'other image')}"
            self.notes.append(f"{where}: left out {counted}: {shown}.")
        missing = [repr(scene.name) for scene in scenes if scene.name not in images]
        if missing:
            self.notes.append(
                f"{where} does not name {_count(len(missing), 'scene')}: {first_few(missing)}; {self._unnamed}."
            )

    def _say(self, about: str) -> None:
        if about and about not in self.notes:
            self.notes.append(about)


def _files_of_scenes(given: str, collection: SceneCollection, partial: bool = False) -> Path | dict[str, Path]:
    """Return one file per scene where their names say whose they are; else the file or folder as a whole.

    With `partial`, some scenes may have none.
    """
    path = Path(given)
    if is_pattern(given):
        return collection.companions(given, "labels", partial)
    existing_path(path)
    if path.is_dir():
        kind, files = annotation_files(path)
        if kind.name != "mask":
            return path
        if collection.many:
            return collection.companions(given, "labels", partial)
        matches = match_images([file.name for file in files], collection.scenes, given)
        if not matches:
            shown = first_few([file.name for file in files])
            raise InvalidInputError(
                f"{given} has no mask of scene {collection.names[0]!r}; it has {shown}.", code="mask-missing"
            )
        return {name: path / named[0] for name, named in matches.items()}
    file_kind = format_of(path)
    if file_kind is not None and file_kind.name == "mask":
        return collection.companions(given, "labels", partial)
    return path


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def target_files(given: str | Path, collection: SceneCollection, named_only: bool = False) -> list[Path]:
    """Return the files that `SceneTargets` will read."""
    whole = _files_of_scenes(str(given), collection, named_only)
    if not isinstance(whole, Path):
        return list(whole.values())
    return annotation_files(whole)[1] if whole.is_dir() else [whole]


def _joined(some: list[ImageAnnotations]) -> ImageAnnotations:
    """Return the annotations of all images of a scene together."""
    if len(some) == 1:
        return some[0]
    if len({(drawn.units, drawn.crs) for drawn in some}) > 1:
        raise InvalidInputError(
            "Images of one scene have annotations in different units; keep those of one of them.",
            code="annotations-units",
        )
    return image_annotations([item for drawn in some for item in drawn.objects], some[0].units, some[0].crs)


PATH, NAME, STEM = range(3)


def match_images(images: Iterable[str], scenes: Sequence[SceneFiles], where: str) -> dict[str, list[str]]:
    r"""Return the images of each scene, by its name, as an annotation file names them.

    An image belongs to the scene that has a file of its path, else of its name, else of its name without suffix; the
    path may be longer or shorter than the one given, with / or with \ between folders. Images of no scene are left
    out. What fits several scenes, or several images that fit one, is an error that lists them.
    """
    index = _index(scenes)
    by_scene: dict[str, list[tuple[int, str]]] = {}
    for image in images:
        level, fitting = _fitting(image, index)
        if len(fitting) > 1:
            raise InvalidInputError(
                f"{where}: the image {image!r} may be any of the scenes {first_few(sorted(map(repr, fitting)))}. Name "
                "it by its path, with as many folders as it takes.",
                code="annotations-ambiguous",
            )
        for scene in fitting:
            by_scene.setdefault(scene, []).append((level, image))
    return {scene: _best(scene, fits, where) for scene, fits in by_scene.items()}


def _best(scene: str, fits: list[tuple[int, str]], where: str) -> list[str]:
    """Return the images that fit best; among several paths that merely end alike none is guessed."""
    level = min(fit for fit, _ in fits)
    best = sorted(image for fit, image in fits if fit == level)
    if len(best) > 1 and level != PATH and any("/" in image or "\\" in image for image in best):
        raise InvalidInputError(
            f"{where}: the images {first_few([repr(image) for image in best])} may all be scene {scene!r}. Name the "
            "sources by paths with the same folders, or remove the other images from the file.",
            code="annotations-ambiguous",
        )
    return best


class _Index(NamedTuple):
    """Files by name, with their scenes; and scenes by all their aliases."""

    files: defaultdict[str, list[tuple[PurePosixPath, str]]]
    scenes: defaultdict[str, set[str]]


def _index(scenes: Sequence[SceneFiles]) -> _Index:
    index = _Index(defaultdict(list), defaultdict(set))
    for scene in scenes:
        for file in scene.files:
            index.files[file.name].append((PurePosixPath(Path(file).absolute().as_posix()), scene.name))
        for alias in scene.aliases:
            index.scenes[alias].add(scene.name)
    return index


def _fitting(image: str, index: _Index) -> tuple[int, set[str]]:
    path = PurePosixPath(image.strip().replace("\\", "/"))
    parts = [part for part in path.parts if part not in ("/", ".", "..")]
    named = index.files.get(path.name, [])
    if len(parts) > 1:
        lengths: dict[str, int] = {}
        for file, scene in named:
            ends = takewhile(lambda pair: pair[0] == pair[1], zip(parts[::-1], file.parts[::-1], strict=False))
            same = len(list(ends))
            if same > 1:
                lengths[scene] = max(same, lengths.get(scene, 0))
        best = {scene for scene, length in lengths.items() if length == max(lengths.values())}
        if best:
            return PATH, best
    if named:
        return NAME, {scene for _, scene in named}
    fitting = next(filter(None, map(index.scenes.get, (image, path.name, path.stem))), set[str]())
    return STEM, {image} if image in fitting else fitting  # a scene of this very name goes before its files' names
