"""Requests about what to label next."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bimichi._progress import Stopped
from bimichi.interactive.answers import BYTES, Missing, json_response
from bimichi.interactive.session import Session

if TYPE_CHECKING:
    from bimichi.interactive.suggestions import Suggester


def suggestion_routes(session: Session) -> Sequence[Any]:
    """Return the routes of suggestions and of the uncertainty of maps."""

    @cache
    def suggester() -> "Suggester":
        from bimichi.interactive.suggestions import Suggester  # not before the page is served

        return Suggester(session)

    async def suggestions(_: Request) -> Response:
        return json_response({"items": await run_in_threadpool(lambda: suggester().suggestions())})

    async def uncertain(request: Request) -> Response:
        k = session.workspace.scene(int(request.path_params["k"]))
        try:
            found = await run_in_threadpool(lambda: suggester().uncertainty(k))
        except Stopped as error:
            raise Missing("The model has changed; ask again.") from error
        if found is None:
            raise Missing("There is no model yet: label something first.")
        return Response(found, media_type=BYTES)

    return [Route("/suggestions", suggestions), Route("/scenes/{k:int}/uncertainty", uncertain)]
