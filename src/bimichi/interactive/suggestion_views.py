"""Requests about what to label next."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bimichi._progress import Stopped
from bimichi.interactive.answers import BYTES, json_response
from bimichi.interactive.session import Session

if TYPE_CHECKING:
    from bimichi.interactive.suggestions import Suggester


def suggestion_routes(session: Session) -> Sequence[Any]:
    """Return the routes of suggestions and of the uncertainty of maps."""

    @cache
    def suggester() -> "Suggester":
        from bimichi.interactive.suggestions import Suggester  # which the first model has imported

        return Suggester(session)

    async def suggestions(_: Request) -> Response:
        if session.model is None:
            return json_response({"items": []})
        return json_response({"items": await run_in_threadpool(suggester().suggestions)})

    async def uncertain(request: Request) -> Response:
        k = session.workspace.scene(int(request.path_params["k"]))
        found = None
        if session.model is not None:
            with suppress(Stopped):  # by a newer model, for which the page will ask again
                found = await run_in_threadpool(suggester().uncertainty, k)
        return Response(status_code=204) if found is None else Response(found, media_type=BYTES)

    return [Route("/suggestions", suggestions), Route("/scenes/{k:int}/uncertainty", uncertain)]
