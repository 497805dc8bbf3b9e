"""The socket of a tab: edits come in, models and maps go out."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from bimichi.errors import BimichiError, InvalidInputError
from bimichi.interactive.session import Session, Tab

DRAWING = ("labels", "settings", "mode", "train", "auto", "cancel", "threshold")
"""What only the tab that draws may send."""


async def serve_socket(session: Session, socket: WebSocket) -> None:
    """Serve one tab until it leaves."""
    await socket.accept()
    tab: Tab | None = None
    sending: asyncio.Task[None] | None = None
    try:
        first = await _received(socket)
        tab = session.connect(str(first.get("tab", ""))[:64])
        sending = asyncio.create_task(_send_all(tab, socket))
        while True:
            message = await _received(socket)
            try:
                await _handle(session, tab, message)
            except BimichiError as error:
                tab.send({"type": "problem", "text": str(error), "where": str(message.get("type", ""))[:32]})
    except (WebSocketDisconnect, RuntimeError):  # the latter if it was closed from here
        pass
    finally:
        if tab is not None:
            session.disconnect(tab)
        if sending is not None:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending


async def _received(socket: WebSocket) -> dict[str, Any]:
    """Return the next message; what is none is an empty one.

    `receive_text` would refuse what was sent before a tab left, once sending to it has failed.
    """
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    try:
        found = json.loads(message.get("text") or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def _send_all(tab: Tab, socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            message = await tab.queue.get()
            if message is None:
                await socket.close(1013, "This tab has not read its messages.")
                return
            await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_text(message))


async def _handle(session: Session, tab: Tab, message: dict[str, Any]) -> None:
    kind, work = message.get("type"), session.workspace
    if kind in DRAWING and tab is not session.primary:
        raise InvalidInputError("This tab only watches, since another one draws. Take over here to draw.")
    if kind == "labels":
        _draw(session, tab, message)
    elif kind == "view":
        tab.view = work.scene(message.get("scene"))
        found = await asyncio.to_thread(session.fused, tab.view)
        if found is not None:
            tab.send(found)
    elif kind == "settings":
        session.change_settings(message)
    elif kind == "mode":
        work.set_mode(message.get("mode"))
        session.changed()
        if work.mode == "live":
            session.learn()
    elif kind in ("train", "auto"):
        session.learn(str(kind))
    elif kind == "cancel":
        session.stop_learning()
    elif kind == "threshold":
        work.set_threshold(message.get("value"))
        session.changed()
    elif kind == "take_over":
        session.take_over(tab)
    elif kind != "hello":
        raise InvalidInputError(f"There is no message {str(kind)[:40]!r}.")


def _draw(session: Session, tab: Tab, message: dict[str, Any]) -> None:
    work, k = session.workspace, message.get("scene")
    if not work.draw(k, message.get("revision"), message.get("shapes")):
        tab.send(session.labels_message(work.scene(k)))
        return
    session.broadcast(session.labels_message(work.scene(k)), but=tab)
    session.changed()
    if work.mode == "live":
        session.learn()
