"""The files of a studio: the project and its labels, which every command reads, and what the studio alone knows.

`bimichi.toml` names the sources, the settings and the label file, which is COCO. Beside them, a hidden file holds the
view and the SHA-256 of each image, by which one that was moved is found, so that labels are never shown on an image of
other content. That file may be deleted: labels then belong to scenes by name.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from platformdirs import user_state_path

from bimichi._files import atomic_write, sha256_of
from bimichi._types import Flags
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.annotations import read_annotations
from bimichi.io.project import FILE_NAME, LABEL_MARK, is_label_file
from bimichi.scenes.annotations import image_annotations
from bimichi.scenes.shapes import TOUCH, Polygons, outline
from bimichi.sources.bands import first_few
from bimichi.studio.labels import CLASSES, Shape, Shapes, Size, annotations_of, parse_shapes, shapes_of

SIZE_LIMIT = 256 << 20  # bytes
MOST_FILES = 50_000  # that are looked at to find one that was moved
DEPTH = 6  # of folders


class Hashes:
    """SHA-256 of files, computed once as long as size and time of change stay the same."""

    def __init__(self) -> None:
        self._computed: dict[tuple[str, int, int], str] = {}
        self._kept: dict[Path, tuple[int, str]] = {}

    def keep(self, path: Path) -> tuple[int, str]:
        """Return size and hash of an image as it was when it was first read, whatever becomes of the file."""
        if path not in self._kept:
            try:
                self._kept[path] = (path.stat().st_size, self.of(path))
            except OSError as error:
                raise BimichiError(f"Cannot read {path}: {error.strerror or error}.", code="file-unreadable") from error
        return self._kept[path]

    def of(self, path: Path) -> str:
        """Return the hash of a file."""
        try:
            status = path.stat()
            key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
            if key not in self._computed or path.is_dir():
                self._computed[key] = sha256_of(path)
            return self._computed[key]
        except OSError as error:
            raise BimichiError(f"Cannot read {path}: {error.strerror or error}.", code="file-unreadable") from error


# Labels


@dataclass(frozen=True)
class SavedLabels:
    """What a label file holds of one scene: an image of COCO, and its annotations."""

    image: Mapping[str, Any]
    annotations: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """The name of the scene."""
        return str(self.image["file_name"])

    @property
    def revision(self) -> int:
        """Return how often its labels have changed."""
        return int(self.image.get("revision", 0))


def labels_of(name: str, revision: int, shapes: Shapes, size: Size) -> SavedLabels:
    """Return what is drawn on a scene as a label file holds it."""
    image = {"file_name": name, "height": size[0], "width": size[1], "revision": revision}
    annotations = ({"category_id": CLASSES.index(shape.label) + 1, **_object(shape, size)} for shape in shapes)
    return SavedLabels(image, tuple(annotations))


@lru_cache(4096)
def _object(shape: Shape, size: Size) -> dict[str, Any]:
    """Return a shape as an object of COCO that covers the same pixels, with how it was drawn."""
    place = annotations_of((shape,), size).objects[0].place
    drawn = {key: value for key, value in shape.to_json().items() if key != "label"}
    kept = {"iscrowd": int(shape.label == "ignore"), "drawn": drawn}
    if not isinstance(place, Polygons):
        return {"bbox": np.asarray(place).tolist(), "segmentation": [], **kept}
    rings = [part[0] for part in place.parts]
    if any(len(part) > 1 for part in place.parts):  # COCO has no holes
        left, top = np.clip(np.floor(place.box[:2] + TOUCH), 0, None).astype(int).tolist()
        right, bottom = np.ceil(place.box[:2] + place.box[2:]).astype(int).tolist()
        mask = np.zeros((min(bottom, size[0]) - top, min(right, size[1]) - left), np.bool_)
        place.mapped(lambda points: points - [left, top]).paint(mask)
        rings = _without_holes(mask, left, top)
    return {"bbox": place.box.tolist(), "segmentation": [ring.ravel().tolist() for ring in rings], **kept}


def _without_holes(mask: Flags, left: int, top: int) -> list[Any]:
    """Return polygons without holes that cover these pixels: a region with a hole is cut through it."""
    rings = []
    for polygon in outline(mask, left, top):
        if len(polygon) > 1:
            cut = int(polygon[1][:, 0].min()) + 1 - left
            return _without_holes(mask[:, :cut], left, top) + _without_holes(mask[:, cut:], left + cut, top)
        rings.append(polygon[0][:-1])
    return rings


def labels_text(labels: Iterable[SavedLabels], kept: Iterable[SavedLabels] = ()) -> str:
    """Return the text of a label file; what is `kept` belongs to missing images, and is not learned from."""
    data: dict[str, Any] = {
        "info": {"description": LABEL_MARK},
        "images": [],
        "categories": [{"id": k, "name": name} for k, name in enumerate(CLASSES, 1)],
        "annotations": [],
    }
    for number, saved in enumerate(labels, 1):
        data["images"].append({**saved.image, "id": number})
        for entry in saved.annotations:
            data["annotations"].append({**entry, "id": len(data["annotations"]) + 1, "image_id": number})
    data["kept"] = [{"image": saved.image, "annotations": list(saved.annotations)} for saved in kept]
    return json.dumps(data, allow_nan=False)


def read_labels(path: Path) -> tuple[list[SavedLabels], list[SavedLabels]]:
    """Read a label file of the studio: labels of scenes, and those that are kept for scenes without images."""
    data = _read_json(path)
    try:
        by_image: dict[Any, list[Mapping[str, Any]]] = {image["id"]: [] for image in data["images"]}
        for entry in data["annotations"]:
            by_image[entry["image_id"]].append(dict(entry))
        labels = [SavedLabels(dict(image), tuple(by_image[image["id"]])) for image in data["images"]]
        kept = [SavedLabels(dict(one["image"]), tuple(map(dict, one["annotations"]))) for one in data.get("kept", [])]
        for saved in (*labels, *kept):
            saved.name, saved.revision  # noqa: B018  # raises if they are missing
        return labels, kept
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(
            f"The label file {path} is damaged: {type(error).__name__} {error}.",
            code=getattr(error, "code", "labels-damaged"),
        ) from error


def shapes_from(saved: SavedLabels, size: Size, path: Path) -> Shapes:
    """Return the shapes of a scene as they were drawn; what another program has changed is taken as COCO has it."""
    shapes: list[Any] = []
    try:
        for k, entry in enumerate(saved.annotations):
            drawn = {**entry.get("drawn", {}), "label": CLASSES[int(entry["category_id"]) - 1]}
            if "drawn" in entry:
                (shape,) = parse_shapes([drawn], size)
                if all(entry.get(key) == value for key, value in _object(shape, size).items()):
                    shapes.append(drawn)
                    continue
            placed = read_annotations(path)[saved.name].objects[k]
            shapes += [shape.to_json() for shape in shapes_of(image_annotations([placed]), size, f"file-{k + 1}")]
        return parse_shapes(shapes, size)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, BimichiError):
            raise InvalidInputError(
                f"{path}, scene {saved.name!r}: {error}", code=error.code, argument=error.argument, value=error.value
            ) from error
        raise InvalidInputError(
            f"The label file {path} is damaged: {type(error).__name__} {error}.",
            code=getattr(error, "code", "labels-damaged"),
        ) from error


def new_label_file(project: Path) -> Path:
    """Return where the labels of a project go: beside it, over no other file."""
    stem = "labels" if project.name == FILE_NAME else f"{project.stem}-labels"
    names = (f"{stem}.json", *(f"{stem}-{number}.json" for number in range(2, 1000)))
    return next(path for path in (project.parent / name for name in names) if not path.exists())


def own_label_file(project: Path, named: str | None) -> Path | None:
    """Return the file that a project names for its labels, if the studio wrote it beside the project."""
    path = None if named is None else Path(named)
    if path is None or path.resolve().parent != project.resolve().parent or not is_label_file(path):
        return None
    return path


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise InvalidInputError(f"{path} is larger than {SIZE_LIMIT:,} bytes.", code="project-large")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.", code="file-unreadable") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, BimichiError):
            raise
        raise InvalidInputError(
            f"Cannot read {path}: it is no JSON ({str(error)[:100]}).",
            code=getattr(error, "code", "project-unreadable"),
        ) from error
    if not isinstance(data, dict):
        raise InvalidInputError(f"Cannot read {path}: it must hold an object.", code="project-unreadable")
    return data


# What the studio alone knows


@dataclass(frozen=True)
class SavedScene:
    """The images of a scene, each with path, size and sha256."""

    name: str
    files: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class View:
    """What the studio alone knows about a project; all of it may be missing."""

    saved: str = ""
    title: str = ""
    mode: str = "live"
    threshold: float | None = None
    sources: tuple[str, ...] = ()
    many: bool = True
    truth: str = ""
    """Masks of some of the scenes; those of all are named in the project."""
    scenes: Mapping[str, SavedScene] = field(default_factory=dict)


def view_file(project: Path) -> Path:
    """Return where a studio keeps what it alone knows about a project."""
    return project.with_name(f".{project.stem}-studio.json")


def read_view(project: Path) -> View:
    """Read what the studio alone knows about a project; nothing if it is missing or damaged."""
    try:
        data = _read_json(view_file(project))
        threshold, mode = data["threshold"], str(data["mode"])
        if threshold is not None and not -1 <= float(threshold) <= 1:
            return View()
        return View(
            str(data["saved"])[:40],
            str(data["title"])[:200],
            mode if mode in MODES else "live",
            None if threshold is None else float(threshold),
            tuple(map(str, data["sources"])),
            bool(data["many"]),
            str(data["truth"]),
            {
                str(scene["name"]): SavedScene(str(scene["name"]), tuple(map(_image, scene["files"])))
                for scene in data["scenes"]
            },
        )
    except (InvalidInputError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return View()


def _image(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"path": str(entry["path"]), "size": int(entry["size"]), "sha256": str(entry["sha256"])}


MODES = ("live", "once", "off")


def exists(path: Path) -> bool:
    """Return whether there is such a file or folder; a path that cannot be one is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class Located:
    """Where the files of a scene are now, or why they are not there."""

    files: tuple[Path, ...]
    problem: str = ""
    moved: bool = False


class Finder:
    """Finds images of a project: at their place, or wherever in some folders a file has the same content."""

    def __init__(self, folders: Iterable[Path], hashes: Hashes) -> None:
        self._folders, self.hashes = list(dict.fromkeys(folder.resolve() for folder in folders)), hashes
        self._by_size: dict[int, list[Path]] | None = None

    def locate(self, scene: SavedScene, folder: Path) -> Located:
        """Return the files of a scene; `folder` is that of the project."""
        files, problems, moved = [], [], False
        for file in scene.files:
            place = folder / PurePosixPath(file["path"])
            if self._is(place, file):
                files.append(place)
                continue
            other = next((path for path in self._alike(int(file["size"])) if self._is(path, file)), None)
            if other is None:
                problems.append(self._missing(place))
            moved = True
            files.append(other or place)
        return Located(tuple(files), " ".join(problems), moved)

    def _is(self, path: Path, file: Mapping[str, Any]) -> bool:
        if not exists(path) or (path.is_file() and path.stat().st_size != file["size"]):
            return False
        return bool(self.hashes.of(path) == file["sha256"])

    def _missing(self, place: Path) -> str:
        searched = first_few([str(folder) for folder in self._folders])
        if exists(place):
            return (
                f"{place.name} has changed since it was labelled, so that its labels are not shown on it; the project "
                f"keeps them. Put the former file back, or open the folder that holds it. (Looked in {searched}.)"
            )
        return f"{place.name} is missing, and no file in {searched} has its content. Open the folder that holds it."

    def _alike(self, size: int) -> list[Path]:
        if self._by_size is None:
            self._by_size = {}
            for count, path in enumerate(path for folder in self._folders for path in _walk(folder, DEPTH)):
                if count > MOST_FILES:
                    break
                self._by_size.setdefault(path.stat().st_size, []).append(path)
        return self._by_size.get(size, [])


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir() and depth:
            yield from _walk(path, depth - 1)
        elif path.is_file():
            yield path


def relative_to(file: Path, folder: Path) -> str:
    """Return a path relative to a folder, with slashes; as it is where there is no way, as between drives."""
    try:
        return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return file.resolve().as_posix()


def export_folder(project: Path) -> Path:
    """Return where exports of a project are written."""
    return project.parent / f"{project.stem}-export"


MOST = 12


def _recent_file() -> Path:
    path = user_state_path("bimichi", appauthor=False) / "studio-recent.json"
    if not path.is_absolute():
        raise FileNotFoundError("There is no home folder.")
    return path


def recent_projects() -> list[Path]:
    """Return project files that still exist, the latest first."""
    with suppress(OSError, ValueError):
        listed = json.loads(_recent_file().read_text(encoding="utf-8"))
        if isinstance(listed, list):
            paths = [Path(text) for text in listed if isinstance(text, str) and "\0" not in text]
            return [path for path in paths[:MOST] if path.is_absolute() and path.is_file()]
    return []


def remember(project: Path) -> None:
    """Put a project first; where that cannot be written, nothing is remembered."""
    with suppress(OSError, BimichiError):
        path = project.resolve()
        projects = [path, *(other for other in recent_projects() if other != path)][:MOST]
        _recent_file().parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(list(map(str, projects)))
        atomic_write(_recent_file(), lambda file: file.write(text.encode()))


def recent_json() -> list[dict[str, Any]]:
    """Return recent projects as the page shows them."""
    return [
        {"path": str(path), "name": path.name, "folder": path.parent.name, "changed": path.stat().st_mtime}
        for path in recent_projects()
    ]


class ProjectLock:
    """Holds one project; the system releases it if the program is killed."""

    def __init__(self) -> None:
        self._lock: BaseFileLock | None = None

    def move(self, project: Path) -> None:
        """Hold another project instead."""
        path = project.resolve().with_name(f".{project.name}.lock")
        if self._lock is not None and self._lock.lock_file == str(path):
            return
        lock = FileLock(path, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise BimichiError(
                f"{project} is open in another studio; close that first, or open another.", code="project-locked"
            ) from error
        except OSError as error:
            if os.access(path, os.W_OK):  # a network disk without locks
                return
            raise BimichiError(
                f"Cannot write to {path.parent}: {error.strerror or error}.", code="output-unwritable"
            ) from error
        self.release()
        self._lock = lock

    def release(self) -> None:
        """Release the project."""
        if self._lock is not None:
            with suppress(OSError):  # as on Windows, where no open file can be removed, and the lock does it itself
                Path(self._lock.lock_file).unlink()
            self._lock.release()
        self._lock = None
