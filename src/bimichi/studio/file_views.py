"""Requests about files: opening, adding, importing and exporting."""

import asyncio
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from bimichi._colours import MISSING, SCALE
from bimichi._files import plain
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, SceneCollection, SceneFiles, collect_scenes
from bimichi.io.open import SUFFIXES
from bimichi.io.project import FILE_NAME, discover, read_project
from bimichi.sources.bands import first_few
from bimichi.studio.open import Options, add_annotations, choose_project, open_workspace
from bimichi.studio.project import exists, export_folder, recent_json, recent_projects
from bimichi.studio.scenes import SceneStore, StudioScene
from bimichi.studio.session import Session
from bimichi.studio.workspace import Workspace


def fitting_scenes(store: SceneStore, paths: Sequence[str]) -> tuple[list[StudioScene], list[str]]:
    """Return the scenes of a folder, or of one file per source, if they have the sources of the open ones; and notes.

    Every scene is read, so that none is added that could not be learned from.
    """
    collection = _found(store.collection, paths)
    order = _order(store.collection, collection, paths)
    open_files = {_resolved(scene.files) for scene in store.collection.scenes}
    picks, names, notes = store.collection.scenes[0].picks, {scene.name for scene in store.scenes}, list[str]()
    scenes: list[SceneFiles] = []
    for scene in collection.scenes:
        files = tuple(scene.files[k] for k in order)
        if _resolved(files) in open_files:
            continue
        name = _free(scene.name, names)
        names.add(name)
        scenes.append(SceneFiles(name, files, picks))
    if not scenes:
        raise InvalidInputError(f"All scenes of {first_few(list(paths))} are open already.", code="scenes-open")
    if len(scenes) < len(collection.scenes):
        notes.append(f"{len(collection.scenes) - len(scenes)} of {len(collection.scenes)} scenes were open already.")
    return _read(store, scenes), notes


def _read(store: SceneStore, scenes: Sequence[SceneFiles]) -> list[StudioScene]:
    """Return scenes after they have been read and compared with the first open one, as strictly as in training."""
    both = replace(store.collection, scenes=[store.collection.scenes[0], *scenes], many=True)
    fresh = SceneStore(both, store.recipes, hashes=store.hashes)
    for k, one in enumerate(fresh.scenes[1:], 1):
        if fresh.load(k) is None:
            raise InvalidInputError(
                f"Nothing was added, as scene {one.name!r} does not fit. {one.problems[-1]}", code="scene-unfit"
            )
    return fresh.scenes[1:]


def _found(own: SceneCollection, paths: Sequence[str]) -> SceneCollection:
    """Return the files of scenes: in folders named like those of the open sources, or as a new studio finds them."""
    alone = Path(paths[0]) if len(paths) == 1 else None
    if alone is None or not alone.is_dir():
        if alone is not None and alone.suffix == ".toml":
            raise InvalidInputError(
                f"{alone} is a project of its own; open it instead of adding it.", code="project-to-add"
            )
        return collect_scenes(list(paths), MAX_ADDITIVE_SOURCES)
    alike = [alone / file.resolve().parent.name for file in own.scenes[0].files]
    if all(folder.is_dir() for folder in alike):
        return replace(collect_scenes(list(map(str, alike)), MAX_ADDITIVE_SOURCES), source_names=own.source_names)
    project = read_project(alone) if (alone / FILE_NAME).is_file() else discover(alone).project
    if project is None:
        raise InvalidInputError(f"Found no images of sources in {alone}.", code="images-missing")
    return collect_scenes(project.arguments(), MAX_ADDITIVE_SOURCES)


def _order(own: SceneCollection, found: SceneCollection, paths: Sequence[str]) -> list[int]:
    """Return which file of a new scene is that of each open source, by the names of files or folders."""
    if found.source_names == own.source_names or len(own.source_names) == len(found.source_names) == 1:
        return list(range(len(own.source_names)))
    files = own.scenes[0].files
    wanted = [own.source_names[files.index(file)] for file in files]  # a file may be that of several sources
    missing = [name for name in wanted if name not in found.source_names]
    if missing or (len(paths) > 1 and set(found.source_names) - set(wanted)):
        raise InvalidInputError(
            f"Added scenes need the sources of those that are open, {first_few(list(dict.fromkeys(wanted)))}, by the "
            f"names of their files or folders; these images have {first_few(found.source_names)}. Rename them, or open "
            "them as a project of their own.",
            code="sources-differ",
        )
    return [found.source_names.index(name) for name in wanted]


def _resolved(files: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(file.resolve() for file in files)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other scene has."""
    numbers = (f"{name} ({number})" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(text for text in numbers if text not in taken)


BYTES = "application/octet-stream"


class Missing(BimichiError):
    """The error of a request for what is not there."""


def json_response(content: Any, status: int = 200) -> Response:
    """Return JSON; names of files that are no valid text are escaped."""
    return Response(json.dumps(plain(content)), status, media_type="application/json")


async def full_state(session: Session) -> dict[str, Any]:
    """Return the state of a session, as the page asks for it."""
    state = await run_in_threadpool(session.workspace.state)
    more: dict[str, Any] = {"colours": list(SCALE), "missing": MISSING}
    more |= {"primary": session.primary is None, "model": session.model_message, "stale": session.stale}
    more |= {"folders": [str(folder) for folder in session.roots.outermost]}
    return state | more | {"recent": await run_in_threadpool(recent_json)}


FILE_LIMIT = 512 << 20  # bytes of one file that is dragged in
TOTAL_LIMIT = 4 << 30  # bytes of all of them
FILES_LIMIT = 2000
JSON_LIMIT = 1 << 20
ADDED = "added"
"""The folder beside a project for files that are dragged in."""
LABEL_SUFFIXES = (".csv", ".json", ".geojson", ".xml", ".txt", ".gpkg", ".zip")


class FileViews:
    """Answers to requests that read or write files."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._added: dict[Path, int] = {}
        self._batches: dict[tuple[Path, str], Path] = {}
        self._adding = asyncio.Lock()

    async def open(self, request: Request) -> Response:
        """Open a project, a folder or images; or look in one more folder for images that were moved."""
        names = (await _json(request)).get("paths")
        if not isinstance(names, list) or not names:
            raise InvalidInputError("paths must be a list of files or folders.", code="paths-list", argument="paths")
        recent = {str(path) for path in recent_projects() if ADDED not in path.parts}
        paths = [str(Path(path).resolve() if path in recent else self.session.roots.allowed(path)) for path in names]
        await self.session.open(await run_in_threadpool(self._opened, paths, all(path in recent for path in names)))
        return json_response(await full_state(self.session))

    def _opened(self, paths: list[str], trusted: bool) -> Workspace:
        """Return the workspace of some paths; a folder is first searched for images that the project lacks."""
        work = self.session.workspace
        if len(paths) == 1 and Path(paths[0]).is_dir() and work.project is not None and any(work.lost):
            again = open_workspace([str(work.project)], Options(), [Path(paths[0])])
            if len(again.lost) < len(work.lost):
                return again
        opened = open_workspace(paths, Options(), self.session.roots.folders)
        if opened.project is None:
            place = Path(paths[0]) if Path(paths[0]).is_dir() else Path(paths[0]).parent
            if work.project is not None and place.is_relative_to((work.project.parent / ADDED).resolve()):
                place = work.project.resolve().parent
            opened = choose_project(opened, place)
        if not trusted and opened.store is not None:  # a project may name files anywhere
            self._check(opened.store.scenes)
            for path in opened.named:
                self.session.roots.allowed(str(path.absolute()))
        return opened

    def _check(self, scenes: Iterable[StudioScene]) -> None:
        """Raise an error if images or masks lie outside the folders that may be read."""
        for scene in scenes:
            masks = [] if scene.truth is None else [scene.truth]
            for file in [*scene.files.files, *masks]:
                if exists(file):  # else it is listed as missing
                    self.session.roots.allowed(str(file.absolute()))

    async def add(self, request: Request) -> Response:
        """Add scenes of the same sources to those that are open."""
        names, store = (await _json(request)).get("paths"), self.session.workspace.store
        if not isinstance(names, list) or not names:
            raise InvalidInputError("paths must be a list of files or folders.", code="paths-list", argument="paths")
        if store is None:
            raise InvalidInputError("Open scenes before others are added to them.", code="scenes-empty")
        paths = [str(self.session.roots.allowed(path)) for path in names]
        async with self._adding:  # or two requests could add the same scenes
            scenes, notes = await run_in_threadpool(fitting_scenes, store, paths)
            self._check(scenes)
            if self.session.workspace.store is not store:
                raise InvalidInputError("Other scenes were opened meanwhile; add these again.", code="scenes-changed")
            self.session.add(scenes, notes)
        return json_response(await full_state(self.session))

    async def try_out(self, _: Request) -> Response:
        """Open drawn streets."""
        from bimichi.studio.open import drawn_streets

        await self.session.open(await run_in_threadpool(drawn_streets))
        return json_response(await full_state(self.session))

    async def upload(self, request: Request) -> Response:
        """Keep a file that was dragged in; the answer has the path by which it can be opened."""
        name = safe_name(request.query_params.get("name", ""))
        folder = await run_in_threadpool(self._folder, request.query_params.get("batch", "")[:80])
        path = folder / name
        if len(self._added) >= FILES_LIMIT:
            raise InvalidInputError(
                f"More than {FILES_LIMIT:,} files are too many to drag in; open their folder.", code="upload-many"
            )
        await self._receive(request, path)
        self.session.roots.add(folder)
        return json_response({"path": str(path), "name": name.as_posix()})

    async def _receive(self, request: Request, path: Path) -> None:
        """Write the body of a request to a file, as long as it is within the limits."""
        others = sum(size for file, size in self._added.items() if file != path)
        part, size = path.with_name(f".{path.name}.part"), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > FILE_LIMIT or others + size > TOTAL_LIMIT:
                        raise InvalidInputError(
                            f"{path.name} is too large to drag in: up to {FILE_LIMIT >> 20} MiB each and "
                            f"{TOTAL_LIMIT >> 30} GiB together. Start the studio with its folder instead.",
                            code="upload-large",
                        )
                    await asyncio.to_thread(file.write, chunk)
            part.replace(path)
        except OSError as error:
            raise BimichiError(
                f"Cannot write {path.name}: {error.strerror or error}.", code="output-unwritable"
            ) from error
        finally:
            part.unlink(missing_ok=True)
        self._added[path] = size

    def _folder(self, batch: str) -> Path:
        """Return where files that are dragged in together are kept: beside the project, and over no earlier ones."""
        work = self.session.workspace
        if work.project is None:
            work.project = Path(tempfile.mkdtemp(prefix="bimichi-studio-")) / FILE_NAME
        added = work.project.parent / ADDED
        if (added, batch) not in self._batches:
            numbered = (added / str(number) for number in range(2, FILES_LIMIT + 3))
            free = added if not added.exists() else next((folder for folder in numbered if not folder.exists()), added)
            self._batches[added, batch] = free if batch else added
        return self._batches[added, batch]

    async def import_labels(self, request: Request) -> Response:
        """Draw what an annotation file says."""
        body = await _json(request)
        path, work = self.session.roots.allowed(body.get("path")), self.session.workspace
        before = len(work.notes)
        drawn = await run_in_threadpool(add_annotations, work, path, body.get("add") is True)
        for k in drawn:
            self.session.broadcast(self.session.labels_message(k))
        self.session.changed()
        if drawn and work.mode == "live":
            self.session.learn()
        count = sum(map(len, drawn.values()))
        said = f"{count} shape{'s' * (count != 1)} on {len(drawn)} scene{'s' * (len(drawn) != 1)}."
        return json_response(
            {"drawn": {str(k): len(shapes) for k, shapes in drawn.items()}, "text": said}
            | {"notes": work.notes[before:]}
        )

    async def export(self, request: Request) -> Response:
        """Write an export; the answer names the files, which `download` gives, and has text to copy."""
        from bimichi.studio.exports import Exporter  # with reports, which the page is served without

        kind = str((await _json(request)).get("kind"))
        session = self.session
        exporter = Exporter(session.workspace, session.model, session.n_jobs)
        done = await run_in_threadpool(exporter.write, kind)
        names = [path.relative_to(exporter.folder).as_posix() for path in done.files]
        return json_response({"files": names, "folder": str(exporter.folder), "text": done.text})

    async def download(self, request: Request) -> Response:
        """Give a file that was exported."""
        project = self.session.workspace.project
        if project is None:
            raise Missing("Nothing was exported.", code="export-missing")
        folder = export_folder(project).resolve()
        path = (folder / request.path_params["name"]).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            raise Missing("There is no such export.", code="export-missing")
        return FileResponse(path, media_type=BYTES, filename=path.name, content_disposition_type="attachment")

    async def close(self, request: Request) -> Response:
        """End the server, at once or with the last tab."""
        if (await _json(request)).get("after") == "tabs":
            self.session.end_with_tabs = True
        else:
            await self.session.save()
            self.session.ended.set()
        return json_response({"closed": True})


async def _json(request: Request) -> dict[str, Any]:
    """Return the body of a request, an object of JSON; nothing if there is none."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > JSON_LIMIT:
            raise InvalidInputError("The request is too long.", code="request-long")
    if not body:
        return {}
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("The request must be JSON.", code="request-json") from error
    if not isinstance(content, dict):
        raise InvalidInputError("The request must be an object of JSON.", code="request-object")
    return content


def safe_name(given: str) -> Path:
    """Return the name of a file that was dragged in, with its folders, as a relative path that leads nowhere else."""
    parts = given.replace("\\", "/").split("/")
    for part in parts:
        steering = any(ord(char) < 32 or 127 <= ord(char) < 160 for char in part)
        if not part.strip() or part.startswith(".") or part.endswith((" ", ".")) or ":" in part or steering:
            raise InvalidInputError(
                f"A file of the name {given[:80]!r} cannot be kept; rename it first.", code="upload-name"
            )
    if len(parts) > 6 or any(len(part.encode("utf-8", "replace")) > 200 for part in parts):
        raise InvalidInputError(f"The name {given[:80]!r} is too long, or lies too deep.", code="upload-name")
    if not parts[-1].lower().endswith((*SUFFIXES, *LABEL_SUFFIXES)):
        known = first_few([*SUFFIXES, *LABEL_SUFFIXES])
        raise InvalidInputError(
            f"{given[:80]!r} is no image or annotation file by its name; these end in {known}.", code="upload-kind"
        )
    return Path(*parts)
