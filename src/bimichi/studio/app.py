"""The server of a studio: its page, images and maps by HTTP, and a socket for edits and models."""

import asyncio
import mimetypes
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from bimichi._progress import Stopped
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.studio.file_views import BYTES, FileViews, Missing, full_state, json_response
from bimichi.studio.rasters import TiledScene
from bimichi.studio.scenes import SceneStore, png
from bimichi.studio.security import Guard
from bimichi.studio.session import Session, serve_socket


def raster_routes(session: Session) -> Sequence[Any]:
    """Return the routes of tiles, and of the sources at a point."""

    def raster(request: Request, recipes: tuple[str, ...] | None = None) -> TiledScene:
        k, work = session.workspace.scene(int(request.path_params["k"])), session.workspace
        assert work.store is not None  # or there would be no scene
        scene = work.store.raster(k, recipes or work.settings.recipes(work.store.recipes))
        if scene is None:
            raise Missing("This scene is not shown in tiles; ask for its sources.", code="scene-without-tiles")
        return scene

    def picture(request: Request) -> bytes:
        z, x, y = (int(request.path_params[name]) for name in ("z", "x", "y"))
        layer = request.path_params["layer"]
        try:
            if layer == "fused":
                trained = session.model
                if trained is None:
                    raise Missing("There is no model yet: label something first.", code="model-missing")
                return raster(request, trained.rule.recipes).fused_tile(trained.rule, trained.number, z, x, y)
            if layer == "rgb":
                if not raster(request).coloured:
                    raise Missing("This scene has no colour image.", code="rgb-missing")
                return raster(request).rgb_tile(z, x, y)
            if not layer.isdecimal() or len(layer) > 4:
                raise Missing("A layer is the number of a source, rgb or fused.", code="layer-unknown")
            return raster(request).source_tile(int(layer), z, x, y)
        except InvalidInputError as error:
            raise Missing(str(error), code=error.code, argument=error.argument, value=error.value) from error

    async def tile(request: Request) -> Response:
        return Response(await run_in_threadpool(picture, request), media_type="image/png")

    async def values(request: Request) -> Response:
        try:
            x, y = float(request.query_params["x"]), float(request.query_params["y"])
        except (KeyError, ValueError) as error:
            raise InvalidInputError("The sources at a point need x and y, in pixels.", code="point-missing") from error
        recipes = None if session.model is None else session.model.rule.recipes
        return json_response({"values": await run_in_threadpool(raster(request, recipes).values, x, y)})

    return [
        Route("/scenes/{k:int}/tiles/{layer}/{z:int}/{x:int}/{y:int}", tile),
        Route("/scenes/{k:int}/values", values),
    ]


if TYPE_CHECKING:
    from bimichi.studio.suggestions import Suggester


def suggestion_routes(session: Session) -> Sequence[Any]:
    """Return the routes of suggestions and of the uncertainty of maps."""

    @cache
    def suggester() -> "Suggester":
        from bimichi.studio.suggestions import Suggester  # which the first model has imported

        return Suggester(session)

    async def suggestions(_: Request) -> Response:
        if session.model is None:
            return json_response({"items": []})
        return json_response({"items": await run_in_threadpool(suggester().suggestions)})

    async def uncertain(request: Request) -> Response:
        k = session.workspace.scene(int(request.path_params["k"]))
        plane = None
        if session.model is not None:
            with suppress(Stopped):  # by a newer model, for which the page will ask again
                plane = await run_in_threadpool(suggester().uncertainty, k)
        return Response(status_code=204) if plane is None else Response(plane, media_type=BYTES)

    return [Route("/suggestions", suggestions), Route("/scenes/{k:int}/uncertainty", uncertain)]


STATIC = Path(__file__).parent / "static"
mimetypes.add_type("text/javascript", ".js")  # on Windows, other programs may have set another, and pages would not run


def make_app(session: Session, token: str, hosts: tuple[str, ...] = (), frames: tuple[str, ...] = ()) -> Guard:
    """Return the application that serves a session to whoever has the token."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await session.start()
        watching = asyncio.create_task(end_when_asked())
        yield
        watching.cancel()
        await session.end()

    async def end_when_asked() -> None:
        await session.ended.wait()
        if guard.end is not None:
            guard.end()

    views, moves = Views(session), FileViews(session)
    routes: list[Any] = [
        Route("/", views.page),
        Mount("/static/report", SharedFiles(packages=[("bimichi.report", "")])),
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/state", views.state),
        Route("/scenes/{k:int}/sources/{source:int}", views.source),
        Route("/scenes/{k:int}/planes", views.planes),
        Route("/scenes/{k:int}/rgb", views.rgb),
        Route("/scenes/{k:int}/truth", views.truth),
        Route("/scenes/{k:int}/thumbnail", views.thumbnail),
        Route("/scenes/{k:int}/superpixel", views.superpixel),
        Route("/scenes/{k:int}/fused", views.fused),
        Route("/open", moves.open, methods=["POST"]),
        Route("/add", moves.add, methods=["POST"]),
        Route("/try", moves.try_out, methods=["POST"]),
        Route("/upload", moves.upload, methods=["POST"]),
        Route("/import", moves.import_labels, methods=["POST"]),
        Route("/export", moves.export, methods=["POST"]),
        Route("/exports/{name:path}", moves.download),
        Route("/close", moves.close, methods=["POST"]),
        *suggestion_routes(session),
        *raster_routes(session),
    ]

    async def socket(websocket: Any) -> None:
        await serve_socket(session, websocket)

    routes.append(WebSocketRoute("/socket", socket))
    handlers: Any = {Missing: _not_found, BimichiError: _problem}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    guard = Guard(app, token, hosts, frames)
    return guard


async def _problem(_: Request, error: BimichiError) -> Response:
    return json_response({"problem": str(error), "code": error.code}, 400)


async def _not_found(_: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 404)


class SharedFiles(StaticFiles):
    """Scripts and styles that the page shares with reports; nothing else of their folder is served."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return the file of this path if it is a script or a style."""
        return super().lookup_path(path) if path.endswith((".js", ".css")) else ("", None)


class Views:
    """Answers to single requests."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def _store(self) -> SceneStore:
        store = self.session.workspace.store
        if store is None:
            raise Missing("No scenes are open.", code="scenes-empty")
        return store

    def _scene(self, request: Request) -> int:
        k = int(request.path_params["k"])
        if k >= len(self._store):
            raise Missing(f"There is no scene {k}.", code="scene-unknown")
        return k

    async def page(self, _: Request) -> Response:
        """Give the page."""
        return FileResponse(STATIC / "index.html")

    async def state(self, _: Request) -> Response:
        """Give all that the page shows at first."""
        return json_response(await full_state(self.session))

    async def source(self, request: Request) -> Response:
        """Give a source of a scene as whole numbers of 16 bits."""
        k, store, which = self._scene(request), self._store, int(request.path_params["source"])
        recipes = self.session.workspace.settings.recipes(store.recipes)
        planes = await run_in_threadpool(store.planes, k, recipes)
        if which >= len(planes):
            raise Missing(f"Scene {k} has no source {which}.", code="source-unknown")
        return Response(np.ascontiguousarray(planes[which][0], "<u2").tobytes(), media_type=BYTES)

    async def planes(self, request: Request) -> Response:
        """Say what the whole numbers of each source mean."""
        k, store = self._scene(request), self._store
        recipes = self.session.workspace.settings.recipes(store.recipes)
        planes = await run_in_threadpool(store.planes, k, recipes)
        if not planes:
            raise InvalidInputError(
                " ".join(store.scenes[k].problems) or "This scene cannot be read.", code="scene-unreadable"
            )
        return json_response([meaning for _, meaning in planes])

    async def rgb(self, request: Request) -> Response:
        """Give the colour image of a scene."""
        k, store = self._scene(request), self._store
        image = await run_in_threadpool(store.rgb, k)
        if image is None:
            raise Missing("This scene has no colour image.", code="rgb-missing")
        return Response(await run_in_threadpool(png, image), media_type="image/png")

    async def truth(self, request: Request) -> Response:
        """Give the truth of a scene, one byte per pixel."""
        k, store = self._scene(request), self._store
        mask = await run_in_threadpool(store.truth, k)
        if mask is None:
            raise Missing("The truth of this scene is not known.", code="truth-missing")
        return Response(np.ascontiguousarray(mask).tobytes(), media_type=BYTES)

    async def thumbnail(self, request: Request) -> Response:
        """Give a small picture of a scene."""
        k, store = self._scene(request), self._store
        return Response(await run_in_threadpool(store.thumbnail, k), media_type="image/png")

    async def superpixel(self, request: Request) -> Response:
        """Give the outline of the superpixel at a point."""
        k, store = self._scene(request), self._store
        try:
            x, y = float(request.query_params["x"]), float(request.query_params["y"])
        except (KeyError, ValueError) as error:
            raise BimichiError("A superpixel needs x and y, in pixels.", code="point-missing") from error
        rings = await run_in_threadpool(store.superpixel, k, x, y)
        return json_response({"points": rings[0] if rings else [], "holes": rings[1:]})

    async def fused(self, request: Request) -> Response:
        """Give the fused map of a scene."""
        k = self._scene(request)
        plane = await run_in_threadpool(self.session.fused, k)
        if plane is None:
            raise Missing("There is no model yet: label something first.", code="model-missing")
        return Response(plane, media_type=BYTES)
