"""`bimichi.studio`: a studio started from Python."""

import sys
from typing import Any

from bimichi.imaging.collecting import MAX_ADDITIVE_SOURCES, SceneCollection, open_scenes
from bimichi.interactive.launching import serve
from bimichi.interactive.workspace import Workspace


def studio(
    sources: Any = None,
    *,
    names: Any = None,
    recipes: Any = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    n_jobs: int | None = None,
) -> None:
    """Draw labels on scenes in the browser, while a fusion learns from them; returns when the studio is closed.

    Parameters
    ----------
    sources : as in `bimichi.imaging.open_scenes`, optional
        The scenes; without any, a page to choose some.
    names, recipes : sequence of str, optional
        Names of the sources, and how they are made of images, as `bimichi train` takes them.
    host, port : str, int
        Where the server listens. By default only this machine can reach it.
    browser : bool, default=True
        Whether to open the page in a browser; otherwise its address is printed.
    n_jobs : int, optional
        Number of threads.
    """
    collection = None
    if sources is not None:
        collection = open_scenes(sources, names, limit=MAX_ADDITIVE_SOURCES)
    run(collection, recipes, host, port, browser, n_jobs)


def run(
    collection: SceneCollection | None,
    recipes: Any,
    host: str,
    port: int,
    browser: bool,
    n_jobs: int | None,
    say: Any = None,
) -> None:
    """Serve a studio of these scenes."""
    from bimichi.interactive.app import make_app
    from bimichi.interactive.session import Session

    workspace = Workspace() if collection is None else Workspace.of(collection, recipes)
    hosts = () if host in ("127.0.0.1", "::1", "localhost") else (host,)

    def make(token: str) -> Any:
        return make_app(Session(workspace, n_jobs), token, hosts)

    def ready(url: str) -> None:
        (say or (lambda text: print(text, file=sys.stderr)))(f"The studio is at {url}")

    serve(make, host, port, browser, ready)
