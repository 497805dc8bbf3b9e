"""Requests about scenes that are shown in tiles."""

from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bimichi.errors import InvalidInputError
from bimichi.interactive.answers import Missing, json_response
from bimichi.interactive.rasters import TiledScene
from bimichi.interactive.session import Session


def raster_routes(session: Session) -> Sequence[Any]:
    """Return the routes of tiles, and of the sources at a point."""

    def raster(request: Request, recipes: tuple[str, ...] | None = None) -> TiledScene:
        k, work = session.workspace.scene(int(request.path_params["k"])), session.workspace
        assert work.store is not None  # or there would be no scene
        found = work.store.raster(k, recipes or work.settings.recipes(work.store.recipes))
        if found is None:
            raise Missing("This scene is not shown in tiles; ask for its sources.")
        return found

    def picture(request: Request) -> bytes:
        z, x, y = (int(request.path_params[name]) for name in ("z", "x", "y"))
        layer = request.path_params["layer"]
        try:
            if layer == "fused":
                trained = session.model
                if trained is None:
                    raise Missing("There is no model yet: label something first.")
                return raster(request, trained.rule.recipes).fused_tile(trained.rule, trained.number, z, x, y)
            if layer == "rgb":
                if not raster(request).coloured:
                    raise Missing("This scene has no colour image.")
                return raster(request).rgb_tile(z, x, y)
            if not layer.isdecimal() or len(layer) > 4:
                raise Missing("A layer is the number of a source, rgb or fused.")
            return raster(request).source_tile(int(layer), z, x, y)
        except InvalidInputError as error:
            raise Missing(str(error)) from error

    async def tile(request: Request) -> Response:
        return Response(await run_in_threadpool(picture, request), media_type="image/png")

    async def values(request: Request) -> Response:
        try:
            x, y = float(request.query_params["x"]), float(request.query_params["y"])
        except (KeyError, ValueError) as error:
            raise InvalidInputError("The sources at a point need x and y, in pixels.") from error
        recipes = None if session.model is None else session.model.rule.recipes
        found = await run_in_threadpool(raster(request, recipes).values, x, y)
        return json_response({"values": found})

    return [
        Route("/scenes/{k:int}/tiles/{layer}/{z:int}/{x:int}/{y:int}", tile),
        Route("/scenes/{k:int}/values", values),
    ]
