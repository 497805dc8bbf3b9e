"""A studio started: its server on a port of this machine, its page in the browser."""

import socket
import sys
import webbrowser
from collections.abc import Callable
from typing import Any

from bimichi._extras import import_optional
from bimichi.errors import BimichiError
from bimichi.interactive.security import new_token

MESSAGE_LIMIT = 16 << 20  # bytes of what a tab may send at once


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise BimichiError(
            f"Cannot listen at {host}, port {port}: {error.strerror or error}. Choose another port (--port), or 0 for "
            "any that is free."
        ) from error
    return made


def address(host: str, port: int, token: str) -> str:
    """Return the address of the page."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/{token}/"


def serve(
    make: Callable[[str], Any],
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until it is asked to end.

    Parameters
    ----------
    make : callable
        Takes the token and returns the application; what it returns has ``close_with``, which takes a function that
        ends the server.
    host, port, browser
        Where to listen, and whether to open the page in a browser.
    ready : callable, optional
        Called with the address of the page.
    """
    uvicorn = import_optional("uvicorn")
    import_optional("websockets")
    token, listening = new_token(), bind(host, port)
    try:
        url = address(host, listening.getsockname()[1], token)
        app = make(token)
        options = {"log_level": "warning", "access_log": False, "ws_max_size": MESSAGE_LIMIT, "server_header": False}
        options |= {"ws_per_message_deflate": False}  # which takes longer than sending maps within a machine
        config = uvicorn.Config(app, ws="websockets-sansio", lifespan="on", timeout_graceful_shutdown=3, **options)
        server = uvicorn.Server(config)
        app.end = lambda: setattr(server, "should_exit", True)
        if ready is not None:
            ready(url)
        if browser:
            webbrowser.open(url)
        server.run(sockets=[listening])
    finally:
        listening.close()
