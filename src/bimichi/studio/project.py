"""The project file of a studio: where its images are and what they hold, what is drawn on them, and settings.

Paths are relative to the file, so that a folder can be moved as a whole. Every image has its SHA-256: one that was
moved is found by it, and labels are never shown on an image of other content.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from bimichi._files import atomic_write, fcntl, sha256_of
from bimichi._version import __version__
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.dataset import SceneFiles
from bimichi.io.open import selected_bands
from bimichi.scenes.labels import Placement
from bimichi.sources.bands import first_few
from bimichi.studio.labels import Shapes, mapped

FORMAT, VERSION = "bimichi-studio", 1
SIZE_LIMIT = 256 << 20  # bytes
MOST_FILES = 50_000  # that are looked at to find one that was moved
DEPTH = 6  # of folders


class Hashes:
    """SHA-256 of files, computed once as long as size and time of change stay the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], str] = {}
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
            found = path.stat()
            key = (str(path.resolve()), found.st_size, found.st_mtime_ns)
            if key not in self._known or path.is_dir():
                self._known[key] = sha256_of(path)
            return self._known[key]
        except OSError as error:
            raise BimichiError(f"Cannot read {path}: {error.strerror or error}.", code="file-unreadable") from error


@dataclass(frozen=True)
class SavedScene:
    """A scene of a project file."""

    name: str
    files: tuple[Mapping[str, Any], ...]
    """Each with path, size and sha256."""
    picks: tuple[tuple[str, ...], ...]
    entry: Mapping[str, Any]
    """As the file has it."""

    def shapes(self, placement: Placement | None) -> list[Any]:
        """Return its shapes in pixels, still to be checked."""
        shapes = self.entry.get("shapes", [])
        if self.entry.get("units") != "map":
            return list(shapes)
        if placement is None:
            raise InvalidInputError(
                f"Scene {self.name!r} has labels in map coordinates, but no georeference any more.",
                code="georeference-lost",
            )

        def moved(ring: Any) -> Any:
            return np.round(placement.to_pixels(np.array(ring, dtype=np.float64)), 6).tolist()

        try:
            return [
                {**one, "points": moved(one["points"])}
                | ({"holes": [moved(ring) for ring in one["holes"]]} if one.get("holes") else {})
                for one in shapes
            ]
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise InvalidInputError(
                f"Shapes of scene {self.name!r} are damaged: {error}.", code="shapes-damaged"
            ) from error


@dataclass(frozen=True)
class StudioProject:
    """What a project file holds."""

    path: Path
    saved: str
    content: Mapping[str, Any]
    scenes: tuple[SavedScene, ...] = field(default=())


def read_studio(path: Path) -> StudioProject:
    """Read a project file; nothing in it is executed."""
    try:
        if not path.is_file():
            raise InvalidInputError(f"There is no project file {path}.", code="project-missing")
        if path.stat().st_size > SIZE_LIMIT:
            raise InvalidInputError(
                f"The project file {path} is larger than {SIZE_LIMIT:,} bytes.", code="project-large"
            )
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(
            f"Cannot read the project file {path}: {error.strerror or error}.", code="project-unreadable"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"Cannot read the project file {path}: it is no JSON ({str(error)[:100]}).",
            code=getattr(error, "code", "project-unreadable"),
        ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInputError(f"{path} is not a project of the studio.", code="project-format")
    if data.get("version") != VERSION:
        raise InvalidInputError(
            f"{path} has version {data.get('version')!r:.20} of the project format, which this bimichi ({__version__}) "
            "does not read. Update it: pip install -U bimichi",
            code="project-version",
        )
    try:
        scenes = tuple(_saved_scene(one) for one in data["scenes"])
        for recipe in data["sources"]["recipes"]:
            if ":" in recipe:
                raise InvalidInputError(
                    f"{path} names the recipe {recipe[:80]!r} by an import path, which a project file may not do, as "
                    "it would run code. Give it on the command line, with --recipe.",
                    code="project-recipe",
                )
        return StudioProject(path, str(data.get("saved", "")), data, scenes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(
            f"The project file {path} is damaged: {type(error).__name__} {error}.",
            code=getattr(error, "code", "project-damaged"),
        ) from error


def _saved_scene(one: Mapping[str, Any]) -> SavedScene:
    files = tuple(dict(file) for file in one["files"])
    for file in files:
        if not all(isinstance(file[key], kind) for key, kind in (("path", str), ("size", int), ("sha256", str))):
            raise ValueError("a file needs path, size and sha256")
    picks = tuple(tuple(map(str, pick)) for pick in one.get("picks", ()))
    if not isinstance(one["shapes"], list) or not isinstance(one["revision"], int):
        raise ValueError("a scene needs shapes and a revision")
    return SavedScene(str(one["name"]), files, picks, one)


def exists(path: Path) -> bool:
    """Whether there is such a file or folder; a path that cannot be one is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_studio(path: Path) -> bool:
    """Whether a file is, by its beginning, a project of the studio."""
    try:
        with path.open("rb") as file:
            return path.suffix == ".json" and f'"format": "{FORMAT}"'.encode() in file.read(200)
    except OSError:
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
        self._folders, self._hashes = list(dict.fromkeys(folder.resolve() for folder in folders)), hashes
        self._by_size: dict[int, list[Path]] | None = None

    def locate(self, scene: SavedScene, folder: Path) -> Located:
        """Return the files of a scene; `folder` is that of the project."""
        found, problems, moved = [], [], False
        for file in scene.files:
            place = folder / PurePosixPath(file["path"])
            if self._is(place, file):
                found.append(place)
                continue
            other = next((one for one in self._alike(int(file["size"])) if self._is(one, file)), None)
            if other is None:
                problems.append(self._missing(place))
            moved = True
            found.append(other or place)
        return Located(tuple(found), " ".join(problems), moved)

    def _is(self, path: Path, file: Mapping[str, Any]) -> bool:
        if not exists(path) or (path.is_file() and path.stat().st_size != file["size"]):
            return False
        return bool(self._hashes.of(path) == file["sha256"])

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


def scene_entry(
    files: SceneFiles, revision: int, shapes: Shapes, placement: Placement | None, folder: Path, hashes: Hashes
) -> dict[str, Any]:
    """Return a scene as the file has it; labels of a scene on a map are in its coordinates."""
    known = [(relative_to(file, folder), *hashes.keep(file)) for file in files.files]
    listed = [{"path": path, "size": size, "sha256": digest} for path, size, digest in known]
    entry: dict[str, Any] = {"name": files.name, "files": listed, "picks": [list(pick) for pick in files.picks]}
    if placement is not None:
        entry |= {"units": "map", "crs": str(placement.crs)}
        shapes = mapped(shapes, placement, to_map=True)
    return entry | {"revision": revision, "shapes": [shape.to_json() for shape in shapes]}


def relative_to(file: Path, folder: Path) -> str:
    """Return a path relative to a folder, with slashes; as it is where there is no way, as between drives."""
    try:
        return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return file.resolve().as_posix()


def relative_argument(argument: str, folder: Path) -> str:
    """Return an argument of the command line relative to a folder; the bands in brackets behind it stay."""
    path, bands = selected_bands(argument)
    return relative_to(Path(path), folder) + (f"[{','.join(bands)}]" if bands else "")


def write_studio(path: Path, content: Mapping[str, Any], scenes: Sequence[Mapping[str, Any]]) -> str:
    """Write a project file, whole or not at all; return the time that it holds."""
    saved = datetime.now(UTC).isoformat(timespec="milliseconds")
    head = {"format": FORMAT, "version": VERSION, "bimichi": __version__, "saved": saved}
    text = json.dumps(head | dict(content) | {"scenes": list(scenes)}, indent=1, allow_nan=False)
    atomic_write(path, lambda file: file.write(text.encode()))
    return saved


def export_folder(project: Path) -> Path:
    """Return where exports of a project are written."""
    return project.parent / f"{project.stem}-export"


MOST = 12


def _file() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "bimichi" / "studio-recent.json"


def recent_projects() -> list[Path]:
    """Return project files that still exist, the latest first."""
    with suppress(OSError, ValueError, RuntimeError):  # the last if there is no home folder
        listed = json.loads(_file().read_text(encoding="utf-8"))
        if isinstance(listed, list):
            paths = [Path(text) for text in listed if isinstance(text, str) and "\0" not in text]
            return [path for path in paths[:MOST] if path.is_absolute() and path.is_file()]
    return []


def remember(project: Path) -> None:
    """Put a project first; where that cannot be written, nothing is remembered."""
    with suppress(OSError, RuntimeError, BimichiError):
        path = project.resolve()
        listed = [path, *(one for one in recent_projects() if one != path)][:MOST]
        _file().parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([str(one) for one in listed])
        atomic_write(_file(), lambda file: file.write(text.encode()))


def recent_json() -> list[dict[str, Any]]:
    """Return them as the page shows them."""
    return [
        {"path": str(path), "name": path.name, "folder": path.parent.name, "changed": path.stat().st_mtime}
        for path in recent_projects()
    ]


class ProjectLock:
    """Holds one project; the system releases it if the program is killed. Without locks, as on Windows, it is empty."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None

    def move(self, project: Path) -> None:
        """Hold another project instead."""
        path = project.resolve().with_name(f".{project.name}.lock")
        if path == self._path or fcntl is None:
            return
        try:
            file = path.open("ab")
        except OSError as error:
            raise BimichiError(
                f"Cannot write to {path.parent}: {error.strerror or error}.", code="output-unwritable"
            ) from error
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise BimichiError(
                f"{project} is open in another studio; close that first, or open another.", code="project-locked"
            ) from error
        except OSError:  # a network disk without locks
            file.close()
            return
        self.release()
        self._file, self._path = file, path

    def release(self) -> None:
        """Release the project."""
        if self._file is not None and self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()
        self._file = self._path = None
