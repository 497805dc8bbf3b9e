"""The guard of the server: it answers whoever has its address with the token, from its own page, under its own name.

A page of another site must not reach it, neither by guessing a port nor by a name that it lets point to this machine
(DNS rebinding). So every request needs the token in its path and a known host, and what changes anything must come
from the page itself.
"""

import hmac
import secrets
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bimichi.errors import InvalidInputError
from bimichi.sources.bands import first_few
from bimichi.studio.project import exists

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

    `hosts` are names in the header Host that are allowed besides those of loopback, and `frames` origins of pages that
    may show this one in a frame, such as that of a notebook.
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
        headers = {
            "content-security-policy": POLICY.format(ancestors),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }
        return [(name.encode(), value.encode()) for name, value in headers.items()]


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


class Roots:
    """The folders whose files may be read; links are followed before a path is compared."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders: list[Path] = []
        for folder in folders:
            self.add(folder)

    def add(self, folder: Path) -> None:
        """Let the files of one more folder be read."""
        resolved = folder.resolve()
        if resolved not in self.folders:
            self.folders.append(resolved)

    @property
    def outermost(self) -> list[Path]:
        """Those that lie in no other."""
        return [folder for folder in self.folders if not any(other in folder.parents for other in self.folders)]

    def allowed(self, path: Any) -> Path:
        """Return a path of the page, relative ones to the first folder, that lies in one of the folders."""
        if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
            raise InvalidInputError("A path must be text.", code="path")
        whole = _expanded(Path(path))
        places = [whole] if whole.is_absolute() else [folder / whole for folder in self.folders]
        resolved = [place.resolve() for place in places]
        inside = [place for place in resolved if any(place.is_relative_to(folder) for folder in self.folders)]
        existing = [place for place in inside if exists(place)]
        if existing:
            return existing[0]
        if inside:
            raise InvalidInputError(f"There is no file or folder {path}.", code="file-missing")
        raise InvalidInputError(
            f"{path} is not in a folder that this studio may read: "
            f"{first_few([str(folder) for folder in self.outermost])}. End it, and start `bimichi studio "
            f"{shlex.quote(str(whole))}`, or add --allow FOLDER; or drag the files into the page.",
            code="folder-forbidden",
        )


def _expanded(path: Path) -> Path:
    """Return a path with ~ replaced by the user's folder, where there is one."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path
