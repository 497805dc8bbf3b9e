"""The guard of the server: it answers whoever has its address with the token, from its own page, under its own name.

A page of another site must not reach it, neither by guessing a port nor by a name that it lets point to this machine
(DNS rebinding). So every request needs the token in its path and a known host, and what changes anything must come
from the page itself.
"""

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {}"
)


def new_token() -> str:
    """Return a token that cannot be guessed, for addresses."""
    return secrets.token_urlsafe(24)


@dataclass
class Guard:
    """An ASGI application that lets through what may pass, without the token in its path, and adds headers.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        The first part of every path.
    hosts : iterable of str
        Names in the header Host that are allowed besides those of loopback.
    frames : sequence of str
        Origins of pages that may show this one in a frame, such as that of a notebook.
    """

    app: Any
    token: str
    hosts: Iterable[str] = ()
    frames: tuple[str, ...] = ()
    end: Any = None
    """A function that ends the server."""
    _known: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._known = LOOPBACK | {_bracketed(name) for name in self.hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or refuse it with a sentence."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused:
            await _refuse(scope, receive, send, refused)
            return
        inner = dict(scope) | {"root_path": f"/{self.token}"}

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = message | {"headers": [*message.get("headers", ()), *self._headers()]}
            await send(message)

        await self.app(inner, receive, with_headers if scope["type"] == "http" else send)

    def _refused(self, scope: Any) -> str:
        """Return why a request is refused; empty if it is not."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if _host_name(host) not in self._known:
            return "This server answers under its own address only. Open the address that the program printed."
        first = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self.token.encode()):
            return "The address lacks the token, or has an old one. Open the address that the program printed."
        origin = headers.get("origin")
        needed = scope["type"] == "websocket" or scope.get("method") in UNSAFE
        if origin is None and needed:
            return "Only the page of this server may do that; the request does not say where it comes from."
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return "Only the page of this server may ask it."
        return ""

    def _headers(self) -> list[tuple[bytes, bytes]]:
        ancestors = " ".join(self.frames) if self.frames else "'none'"
        values = {
            "content-security-policy": POLICY.format(ancestors),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }
        return [(name.encode(), value.encode()) for name, value in values.items()]


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name.lower()


def _host_name(host: str) -> str:
    """Return the header Host without its port."""
    text = host.strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


async def _refuse(scope: Any, receive: Any, send: Any, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the handshake, which must be read before it is denied
        await send({"type": "websocket.close", "code": 4403, "reason": why[:120]})
        return
    body = why.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
