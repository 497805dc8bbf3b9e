"""What answers to requests share."""

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from bimichi._files import plain
from bimichi.errors import BimichiError
from bimichi.interactive.recent import recent_json
from bimichi.interactive.session import Session
from bimichi.report.colours import MISSING, SCALE

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
BYTES = "application/octet-stream"


class Missing(BimichiError):
    """What was asked for is not there."""


def json_response(content: Any, status: int = 200) -> Response:
    """Return JSON; names of files that are no valid text are escaped."""
    return Response(json.dumps(plain(content)), status, media_type="application/json")


async def full_state(session: Session) -> dict[str, Any]:
    """Return the state of a session, as the page asks for it."""
    found = await run_in_threadpool(session.workspace.state)
    more: dict[str, Any] = {"colours": list(SCALE), "missing": MISSING}
    more |= {"primary": session.primary is None, "model": session.model_message, "stale": session.stale}
    more |= {"folders": [str(folder) for folder in session.roots.outermost]}
    return found | more | {"recent": await run_in_threadpool(recent_json)}
