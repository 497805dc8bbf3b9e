"""One project file, `bimichi.toml`: the sources, labels and options that commands would otherwise repeat.

It is data alone: nothing in it is executed, and functions cannot be named in it.
"""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._files import atomic_write
from bimichi.errors import InvalidInputError
from bimichi.io.annotations import format_of
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, SceneCollection, SceneFiles, open_scenes
from bimichi.io.images import distinct_names, read_image
from bimichi.io.open import SUFFIXES, is_many, name_of_source
from bimichi.sources.bands import Image, first_few
from bimichi.sources.expressions import parse_expression
from bimichi.sources.recipes import default_recipe

FILE_NAME = "bimichi.toml"
EXPORTS = "bimichi-export"
"""The folder beside it in which the studio writes what is exported."""
SIZE_LIMIT = 2**24  # bytes; a project may list thousands of scenes
SOURCE_KEYS = ("path", "bands", "name", "names", "recipe", "recipes")
TOP_KEYS = ("sources", "scenes", "expressions", "names", "recipes", "align", "labels")
LABEL_MARK = "bimichi labels"
"""The description in a label file of the studio: COCO, whose categories are target, not and ignore."""
LABEL_OPTIONS: Mapping[str, Any] = {"bags": "boxes", "target": "target", "negative": "not", "labelled_only": True}
"""What such a file means, as options of `bimichi train`."""


@dataclass(frozen=True)
class ProjectSource:
    """One source, or the bands of one file: a path or pattern relative to the project file, and what is made of it."""

    path: str
    bands: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectScene:
    """A scene by its files, one per source, relative to the project file."""

    name: str
    files: tuple[str, ...]


class Arguments(list[str]):
    """Sources as arguments of the command line, with the scenes that are listed instead of found, if any are."""

    def __init__(self, paths: Iterable[str], scenes: Sequence[SceneFiles] = ()) -> None:
        super().__init__(paths)
        self.scenes = list(scenes)

    def open(self, names: Sequence[str] | None = None, **options: Any) -> SceneCollection:
        """Open the scenes; options as in `open_scenes`."""
        if not self.scenes:
            return open_scenes(list(self), names, **options)
        first = self.scenes[0]
        picks = [f"[{','.join(pick)}]" if pick else "" for pick in first.picks]
        opened = open_scenes([f"{file}{pick}" for file, pick in zip(first.files, picks, strict=True)], names, **options)
        labels = distinct_names([name_of_source(path) for path in self])
        many = len(self.scenes) > 1 or any(map(is_many, self))
        return replace(opened, scenes=self.scenes, source_names=labels, many=many)


@dataclass(frozen=True)
class Project:
    """What a project file holds; paths in it are relative to `folder`.

    `scenes` are listed where the paths of the sources do not find them. `expressions` are as `parse_expression` reads
    them; `all_names` and `all_recipes` are about all sources at once, for files of several bands and for expressions.
    `labels` are options about bags and targets, by name, and `commands` those of single commands.
    """

    sources: Sequence[ProjectSource]
    expressions: Sequence[str] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()
    scenes: Sequence[ProjectScene] = ()
    all_names: Sequence[str] = ()
    all_recipes: Sequence[str] = ()
    align: bool = False

    def arguments(self) -> Arguments:
        """Return the sources as they are given on the command line."""
        paths = [
            self.located(source.path) + (f"[{','.join(source.bands)}]" if source.bands else "")
            for source in self.sources
        ]
        bands = tuple(source.bands for source in self.sources)
        files = {scene.name: tuple(Path(self.located(file)) for file in scene.files) for scene in self.scenes}
        return Arguments(paths, [SceneFiles(name, some, bands) for name, some in files.items()])

    def open(self, names: Sequence[str] | None = None, drivers: Sequence[str] = ()) -> SceneCollection:
        """Open its scenes, with other names of the sources if they are given."""
        computed = [parse_expression(text) for text in self.expressions]
        options: dict[str, Any] = {"align": self.align, "drivers": drivers, "computed": computed}
        return self.arguments().open(names or self.names(), limit=MAX_ADDITIVE_SOURCES, **options)

    def names(self) -> list[str] | None:
        """Return the names of the sources in their order, None if the file gives none."""
        return list(self.all_names) or self._each([source.names for source in self.sources], "name")

    def recipes(self) -> list[str] | None:
        """Return the recipes of the sources in their order, None if the file gives none."""
        return list(self.all_recipes) or self._each([source.recipes for source in self.sources], "recipe")

    def located(self, path: str) -> str:
        """Return a path or pattern of the file, relative to where the program runs."""
        return str(self.folder / path)

    def _each(self, values_of: list[tuple[str, ...]], key: str) -> list[str] | None:
        missing = [source.path for source, values in zip(self.sources, values_of, strict=True) if not values]
        if missing and len(missing) < len(values_of):
            raise InvalidInputError(
                f"Source {missing[0]!r} of the project file has no {key}, but others have; give each one, or none.",
                code="project-source-keys",
            )
        return None if missing else [value for values in values_of for value in values]

    def to_toml(self, comments: Iterable[str] = ()) -> str:
        """Return the text of the file, after lines of comments."""
        lines = [f"# {' '.join(line.splitlines())}".rstrip() for line in comments]
        lists = {"expressions": self.expressions, "names": self.all_names, "recipes": self.all_recipes}
        top = [f"{key} = {_toml(list(texts))}" for key, texts in lists.items() if texts]
        top += ["align = true"] if self.align else []
        lines += ["", *top] if top else []
        for source in self.sources:
            lines += ["", "[[sources]]", f"path = {_toml(source.path)}"]
            lines += [f"bands = {_toml(list(source.bands))}"] if source.bands else []
            for key, values in (("name", source.names), ("recipe", source.recipes)):
                if values:
                    lines.append(
                        f"{key} = {_toml(values[0])}" if len(values) == 1 else f"{key}s = {_toml(list(values))}"
                    )
        for scene in self.scenes:
            lines += ["", "[[scenes]]", f"name = {_toml(scene.name)}", f"files = {_toml(list(scene.files))}"]
        for title, options in {"labels": self.labels, **self.commands}.items():
            if options:
                lines += ["", f"[{title}]", *(f"{key} = {_toml(value)}" for key, value in options.items())]
        return "\n".join(lines) + "\n"


def read_project(path: str | PathLike[str]) -> Project:
    """Read a project file, or the `bimichi.toml` of a folder; commands check options beyond their form."""
    file = Path(path) / FILE_NAME if Path(path).is_dir() else Path(path)
    tables = _tables(file)
    entries = tables.pop("sources", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(
            f"{file} must have one table [[sources]] per source, each with a path.", code="project-sources"
        )
    expressions = _texts(tables.pop("expressions", []), file, "expressions")
    for text in expressions:
        parse_expression(text)
    names = _texts(tables.pop("names", []), file, "names")
    recipes = _without_code(_texts(tables.pop("recipes", []), file, "recipes"), file)
    scenes = _scenes(tables.pop("scenes", []), file, len(entries))
    align = tables.pop("align", False)
    if not isinstance(align, bool):
        raise InvalidInputError(
            f"align in {file} must be true or false, got {str(align)[:80]!r}.", code="project-value"
        )
    stray = [key for key, table in tables.items() if not isinstance(table, dict)]
    if stray:
        raise unknown_key(file, stray[0], TOP_KEYS, "")
    for title, table in tables.items():
        for key, value in table.items():
            parts = value if isinstance(value, list) else [value]
            if not all(isinstance(part, str | int | float) for part in parts):
                kinds = first_few(sorted({type(part).__name__ for part in parts}))
                rule = "must be text, a number, true or false"
                raise InvalidInputError(
                    f"{key} in [{title}] of {file} {rule}, got {kinds}.", code="project-value", value=kinds
                )
    sources = tuple(_source(file, k + 1, entry) for k, entry in enumerate(entries))
    labels = tables.pop("labels", {})
    return Project(sources, expressions, labels, tables, file.parent, scenes, names, recipes, align)


def write_project(path: str | PathLike[str], project: Project, comments: Iterable[str] = ()) -> None:
    """Write a project file, whole or not at all."""
    text = project.to_toml(comments)
    atomic_write(path, lambda file: file.write(text.encode()))


def unknown_key(file: Path, key: str, known: Iterable[str], where: str) -> InvalidInputError:
    """Return the error for a key that is not among those known; the nearest comes first."""
    choices = list(known)
    near = get_close_matches(key, choices, 1, 0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    section = f" in [{where}]" if where else ""
    listed = ", ".join(choices) or "none"
    return InvalidInputError(
        f"{file} has an unknown key {key[:80]!r}{section}.{hint} Known keys: {listed}.", code="project-key"
    )


def _tables(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file():
            reason = "it is not a regular file" if file.exists() else "there is no such file; `bimichi init` writes one"
            raise InvalidInputError(f"Cannot read the project file {file}: {reason}.", code="project-unreadable")
        if file.stat().st_size > SIZE_LIMIT:
            raise InvalidInputError(
                f"Cannot read the project file {file}: it is larger than {SIZE_LIMIT:,} bytes.", code="project-large"
            )
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"Cannot read the project file {file}: it is not valid TOML ({str(error)[:200]}).", code="project-toml"
        ) from error
    except OSError as error:
        raise InvalidInputError(
            f"Cannot read the project file {file}: {error.strerror or error}.", code="project-unreadable"
        ) from error


def _source(file: Path, number: int, entry: Mapping[str, Any]) -> ProjectSource:
    for key in entry:
        if key not in SOURCE_KEYS:
            raise unknown_key(file, key, SOURCE_KEYS, "[sources]")
    path = entry.get("path")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise InvalidInputError(
            f"Source {number} of {file} needs a path: a file, a folder or a pattern, got {path!r}.",
            code="project-source-path",
            value=path,
        )
    for one, several in (("name", "names"), ("recipe", "recipes")):
        if one in entry and several in entry:
            raise InvalidInputError(
                f"Source {number} of {file} has both {one} and {several}; keep one of them.", code="project-source-keys"
            )
    bands = _texts(entry.get("bands", []), file, "bands")
    names = _texts(entry.get("names", entry.get("name", [])), file, "names")
    recipes = _without_code(_texts(entry.get("recipes", entry.get("recipe", [])), file, "recipes"), file)
    n_made = max(len(bands), len(names))
    if len(recipes) == 1 and n_made > 1:
        recipes = recipes * n_made
    return ProjectSource(path, bands, names, recipes)


def _without_code(recipes: tuple[str, ...], file: Path) -> tuple[str, ...]:
    for recipe in recipes:
        if ":" in recipe:
            raise InvalidInputError(
                f"{file} names the recipe {recipe[:80]!r} by an import path, which a project file may not do, as it "
                "would run code. Give it on the command line, with --recipe.",
                code="project-recipe",
            )
    return recipes


def _scenes(entries: Any, file: Path, n_sources: int) -> tuple[ProjectScene, ...]:
    rule = f"{file} must give every scene in [[scenes]] a name of its own, and files, one per source"
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{rule}.", code="project-scenes")
    names = [entry.get("name") for entry in entries]
    for entry in entries:
        name, files = entry.get("name"), entry.get("files")
        texts = [name, *files] if isinstance(files, list) and len(files) == n_sources else [None]
        usable = all(isinstance(text, str) and text.strip() and "\0" not in text for text in texts)
        if not usable or names.count(name) > 1 or set(entry) != {"name", "files"}:
            raise InvalidInputError(f"{rule}, got {str(entry)[:200]}.", code="model-record")
    return tuple(ProjectScene(entry["name"], tuple(entry["files"])) for entry in entries)


def _texts(value: Any, file: Path, key: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(text, str) and text.strip() for text in listed):
        raise InvalidInputError(
            f"{key} in {file} must be text, or a list of texts, got {str(value)[:80]!r}.", code="project-text"
        )
    if key != "expressions" and any("," in text for text in listed if key != "recipes"):
        raise InvalidInputError(
            f'{key} in {file} must not hold commas; write a list, as in ["a", "b"].', code="project-commas"
        )
    return tuple(listed)


def _toml(value: Any) -> str:
    """Write a value; texts of TOML are those of JSON, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_label_file(path: Path) -> bool:
    """Return whether a file, by its beginning, holds labels of the studio."""
    try:
        with path.open("rb") as file:
            return path.suffix == ".json" and LABEL_MARK.encode() in file.read(200)
    except (OSError, ValueError):
        return False


MOST_FILES = 50_000
DEPTH = 4  # of folders that are looked into
MOST_CLASSES = 32  # distinct values of an image that may be a mask
TARGETS = re.compile(
    r"(?i)(^|[^a-z])(labels?|masks?|truth|gt|annotations?|annot|anno|seg(mentation)?s?|classes)([^a-z]|$)"
)
PARTS = re.compile(r"(.+?)[_\-. ]([A-Za-z0-9]+)")  # a scene, and the source at the end of a name


@dataclass
class Discovery:
    """What was found: a project, sentences about it, and files that were not understood."""

    project: Project | None = None
    found: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """What a person should decide, for the file."""


@dataclass(frozen=True)
class _Group:
    """Images that belong to one source or are masks: a path or pattern for the project file, and files by scene."""

    path: str
    name: str
    files: dict[str, Path]


def discover(folder: Path) -> Discovery:
    """Look at the files of a folder, and at some of their pixels, and return what they seem to be.

    Recognised are folders of equally named images; images in one folder whose names end in their source (``7_ir.png``,
    ``7_vi.png``); single files of one scene; masks, by their name or since they have few values; annotation files of a
    known format, one for all or one per scene. Nothing is written.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; name one that holds images.", code="not-folder")
    images, others = _files(folder)
    result = Discovery()
    groups = (
        _by_leaf(folder, images) or _by_folder(folder, images) or _by_ending(folder, images) or _single(folder, images)
    )
    if not groups:
        result.unknown = _shortened(folder, [*images, *others])
        return result
    looked: dict[str, Image] = {}
    for group in groups:
        try:
            looked[group.path] = read_image(next(iter(group.files.values())))
        except InvalidInputError as error:
            result.unknown.append(f"{group.path} ({error})")
    groups = [group for group in groups if group.path in looked]
    masks = [group for group in groups if _is_mask(group, looked[group.path])]
    sources = [group for group in groups if group not in masks]
    used = {path for group in groups for path in group.files.values()}
    labels = _annotations(folder, groups, others, used, result)
    _describe(sources, masks, looked, labels, result)
    if sources:
        result.project = Project(_project_sources(sources, looked), labels=labels, folder=folder)
    result.unknown += _shortened(folder, [path for path in [*images, *others] if path not in used])
    return result


def _shortened(root: Path, files: Sequence[Path]) -> list[str]:
    """Return the names of files, or of their folder where it holds many of them."""
    by_folder: dict[Path, list[str]] = defaultdict(list)
    for path in files:
        by_folder[path.parent].append(path.relative_to(root).as_posix())
    return [
        text
        for folder, names in sorted(by_folder.items())
        for text in ([f"{folder.relative_to(root).as_posix()} ({len(names)} files)"] if len(names) > 3 else names)
    ]


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    images: list[Path] = []
    others: list[Path] = []
    for path in _walk(folder, DEPTH):
        (images if path.suffix.lower() in SUFFIXES else others).append(path)
        if len(images) + len(others) > MOST_FILES:
            raise InvalidInputError(
                f"{folder} holds more than {MOST_FILES:,} files; name a folder with fewer.", code="folder-large"
            )
    return images, [path for path in others if path.name != FILE_NAME and not path.name.endswith(".aux.xml")]


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == EXPORTS:
            continue
        if path.is_dir() and not path.is_symlink() and depth:
            yield from _walk(path, depth - 1)
        elif path.is_file():
            yield path


def _by_folder(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return the largest set of folders with images of the same names, one group per folder."""
    folders: dict[Path, dict[str, Path]] = defaultdict(dict)
    for path in images:
        folders[path.parent].setdefault(path.stem, path)
    alike: dict[frozenset[str], list[Path]] = defaultdict(list)
    for folder, files in folders.items():
        if folder != root:
            alike[frozenset(files)].append(folder)
    best = max(alike.values(), key=lambda some: (len(some), len(folders[some[0]])), default=[])
    if len(best) < 2:
        return []
    paths = {folder: folder.relative_to(root).as_posix() for folder in best}
    distinct = len({folder.name for folder in best}) == len(best)
    names = [folder.name if distinct else paths[folder].replace("/", "_") for folder in best]
    return [_Group(paths[folder], name, folders[folder]) for folder, name in zip(best, names, strict=True)]


def _by_leaf(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return groups by the name of the innermost folder, as in set/video/lwir, if each outer folder has all of them."""
    leaves: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in images:
        outer = path.relative_to(root).parent.parent
        leaves[path.parent.name]["_".join([*outer.parts, path.stem])] = path
    parents = {path.parent.parent for path in images}
    if len(leaves) < 2 or len(parents) < 2 or len({frozenset(files) for files in leaves.values()}) != 1:
        return []
    patterns = {name: _pattern(root, list(files.values())) for name, files in leaves.items()}
    if not all(patterns.values()):
        return []
    return [_Group(str(patterns[name]), name, files) for name, files in leaves.items()]


def _pattern(root: Path, files: Sequence[Path]) -> str | None:
    """Return the pattern that finds files, None if they lie at several depths or have several suffixes."""
    parts = [path.relative_to(root).parts for path in files]
    if len({len(some) for some in parts}) != 1 or len({path.suffix for path in files}) != 1:
        return None
    folders = [names[0] if len(set(names)) == 1 else "*" for names in zip(*(some[:-1] for some in parts), strict=True)]
    return "/".join([*folders, f"*{files[0].suffix}"])


def _by_ending(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return groups of one folder whose names end in the source, if every scene has the same sources."""
    for folder in sorted({path.parent for path in images}):
        endings: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)
        for path in (path for path in images if path.parent == folder):
            parts = PARTS.fullmatch(path.stem)
            if parts is not None:
                endings[path.stem[len(parts[1]) :], path.suffix].setdefault(parts[1], path)
        most = max((len(files) for files in endings.values()), default=0)
        full = {ending: files for ending, files in endings.items() if len(files) == most}
        if len(full) < 2 or len({frozenset(files) for files in full.values()}) != 1:
            continue
        inside = folder.relative_to(root).as_posix()
        before = "" if inside == "." else f"{inside}/"
        return [
            _Group(f"{before}*{end}{suffix}" if most > 1 else f"{before}{scene}{end}{suffix}", end.strip("_-. "), files)
            for (end, suffix), files in full.items()
            for scene in [next(iter(files))]
        ]
    return []


def _single(root: Path, images: Sequence[Path]) -> list[_Group]:
    """Return the files of the uppermost folder that has images, as one scene."""
    if not images:
        return []
    upper = min((path.parent for path in images), key=lambda folder: len(folder.parts))
    files = [path for path in images if path.parent == upper]
    return [_Group(path.relative_to(root).as_posix(), path.stem, {"": path}) for path in files]


def _is_mask(group: _Group, image: Image) -> bool:
    """Return whether images are masks of targets: by their name, or as they are of one band with few whole values."""
    if image.ndim != 2:
        return False
    if TARGETS.search(group.name):
        return True
    if image.dtype.kind == "f" or image.size < 256:
        return image.dtype == np.bool_
    values = np.unique(image)
    return len(values) <= MOST_CLASSES and (len(values) <= 2 or values.max() < MOST_CLASSES)


def _annotations(
    folder: Path, groups: Sequence[_Group], others: Sequence[Path], used: set[Path], result: Discovery
) -> dict[str, object]:
    """Return options for annotation files: labels of the studio, one file per scene, or one for all scenes."""
    drawn = next((path for path in others if path.parent == folder and is_label_file(path)), None)
    if drawn is not None:
        used.add(drawn)
        result.found.append(f"labels of the studio: {drawn.name}")
        return {"boxes": drawn.name, **LABEL_OPTIONS}
    first = groups[0].files
    by_suffix: dict[str, list[Path]] = defaultdict(list)
    for path in others:
        by_suffix[path.suffix].append(path)
    for files in by_suffix.values():
        stems = {path.stem for path in files}
        pattern = _pattern(folder, files)
        if pattern is None or len(first) < 2 or not all({scene, path.stem} & stems for scene, path in first.items()):
            continue
        kind = format_of(files[0])
        result.found.append(
            f"annotations, one file per scene: {pattern} ({kind.name if kind else 'of an unknown format'})"
        )
        if kind:
            used.update(files)
            return {"labels": pattern}
    for files in by_suffix.values():
        kind = format_of(files[0]) if len(files) == 1 else None
        if kind:
            used.update(files)
            result.found.append(f"annotations: {files[0].relative_to(folder).as_posix()} ({kind.name})")
            return {"boxes": files[0].relative_to(folder).as_posix()}
    return {}


def _describe(
    sources: Sequence[_Group],
    masks: Sequence[_Group],
    looked: dict[str, Image],
    labels: dict[str, object],
    result: Discovery,
) -> None:
    """Add sentences, and what masks mean: the first says where targets are, or, beside annotations, is scored by."""
    for group in sources:
        n, image = len(group.files), looked[group.path]
        bands = 1 if image.ndim == 2 else image.shape[2]
        kind = f"{bands} bands" if bands > 1 else "one band"
        size = f", {image.shape[1]} x {image.shape[0]} {image.dtype.name}"
        result.found.append(f"source {group.name}: {group.path} ({n} scene{'s' * (n > 1)}, {kind}{size})")
    for group in masks:
        values = first_few([str(value) for value in np.unique(looked[group.path])[:MOST_CLASSES].tolist()])
        result.found.append(f"masks: {group.path} (values {values} in the first)")
    if masks:
        labels["truth" if labels else "labels"] = masks[0].path
        if len(masks) > 1:
            result.hints.append(f"Other masks: {', '.join(group.path for group in masks[1:])}.")
        image = looked[masks[0].path]
        if image.min() < 0:
            result.hints.append(
                "Values below 0 in the masks are unknown: bags there are left out unless they are positive."
            )
        if len(np.unique(image[image > 0])) > 1:
            result.hints.append('The masks have several classes; choose the target in [labels], as in target = "2".')
    if not labels:
        result.hints.append('Nothing says where targets are; add boxes = "FILE" or labels = "MASKS" in [labels].')


def _project_sources(sources: Sequence[_Group], looked: dict[str, Image]) -> list[ProjectSource]:
    """Return sources with names, unless bands give them; and with recipes if one is in colour, which needs one."""
    images = [looked[group.path] for group in sources]
    colours = [image.shape[2:] == (3,) for image in images]
    banded = any(image.ndim == 3 and image.shape[2] != 3 for image in images)
    if banded or len(sources) == 1:
        return [ProjectSource(group.path) for group in sources]
    recipes = [(default_recipe(image.dtype),) if any(colours) else () for image in images]
    pairs = zip(sources, recipes, strict=True)
    return [ProjectSource(group.path, names=(group.name,), recipes=recipe) for group, recipe in pairs]
