"""`bimichi.open_studio`: a studio started, from Python, from the command line or in a notebook.

In a notebook, its server runs in a thread of the kernel, and its page in a widget.
"""

import os
import re
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bimichi._checks import check_integer
from bimichi._extras import import_optional
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.project import FILE_NAME
from bimichi.studio.open import Options, choose_project, folders_of, gone_on, open_workspace
from bimichi.studio.security import new_token
from bimichi.studio.workspace import Workspace

MESSAGE_LIMIT = 16 << 20  # bytes of what a tab may send at once


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise BimichiError(
            f"Cannot listen at {host}, port {port}: {error.strerror or error}. Choose another port (--port), or 0 for "
            "any that is free.",
            code="port",
        ) from error
    return listening


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

    `make` takes the token and returns the application, whose ``end`` is set to a function that ends the server; `ready`
    is called with the address of the page.
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


HERE = ("127.0.0.1", "::1", "localhost")


def open_studio(
    sources: Any = None,
    *,
    names: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    boxes: str | os.PathLike[str] | None = None,
    truth: str | os.PathLike[str] | None = None,
    project: str | os.PathLike[str] | None = None,
    allow: Sequence[str | os.PathLike[str]] = (),
    align: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Draw labels on scenes in the browser, while a fusion learns from them; returns when the studio is closed.

    In a notebook, return a widget with the same page at once; the studio runs until the widget's `close()`, or the end
    of the kernel. The browser must reach the machine of the kernel, at `port` if that is forwarded.

    Parameters
    ----------
    sources : path, sequence of paths, array, or mapping of names to arrays, optional
        A project (`bimichi.toml`), a folder with images, or sources as `bimichi.io.open_scenes` takes them. Without
        any, a page to choose some. Arrays are written to a folder of their own, so that a project can name them.
    names, recipes : sequence of str, optional
        Names of the sources, and how they are made of images, as `bimichi train` takes them.
    boxes, truth : path, optional
        Annotations to start with, of any format; and masks of targets, to look at.
    project : path, optional
        The project file to save to, and to go on with if it exists; by default bimichi.toml in the current folder.
    allow : sequence of paths
        Folders whose files the page may open, besides the current folder and those of `sources`.
    align : bool, default=False
        Whether images on other grids are resampled to that of the first.
    host, port : str, int
        Where the server listens. By default only this machine can reach it, at any free port.
    browser : bool, optional
        Whether to open the page in a browser, and to wait until the studio is closed, in notebooks, too; with False,
        the address is printed to standard error only. By default a browser is opened, or in a notebook the widget.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    None, or in a notebook the widget, which needs the extra `notebook`.
    """
    paths, called = _paths(sources)
    texts = [None if path is None else os.fspath(path) for path in (boxes, truth, project)]
    options = Options(names or called, recipes, align, annotations=texts[0], truth=texts[1])
    start = Start(paths, options, None if texts[2] is None else Path(texts[2]), [Path(path) for path in allow])

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    if browser is None and in_notebook():
        import_optional("anywidget")  # before anything is started
        return widget_of(Server(lambda ready, guarded: start.run(host, port, False, n_jobs, say, ready, guarded)))
    start.run(host, port, browser is not False, n_jobs, say)
    return None


def _paths(sources: Any) -> tuple[list[str], list[str] | None]:
    if sources is None:
        return [], None
    if isinstance(sources, str | os.PathLike):
        return [os.fspath(sources)], None
    if isinstance(sources, Sequence) and all(isinstance(path, str | os.PathLike) for path in sources):
        return [os.fspath(path) for path in sources], None
    from bimichi.studio.open import as_files

    return as_files(sources)


@dataclass(frozen=True)
class Start:
    """The sources, options and folders that a studio is started with."""

    paths: Sequence[str]
    options: Options
    project: Path | None = None
    allow: Sequence[Path] = ()

    def readable(self) -> list[Path]:
        """Return the folders whose files the page may open."""
        for folder in self.allow:
            if not folder.is_dir():
                raise InvalidInputError(
                    f"allow (--allow) must name folders, but {folder} is none.", code="allow-folder", argument="allow"
                )
        return [Path.cwd(), *folders_of(self.paths), *self.allow]

    def workspace(self) -> Workspace:
        """Open what was named, and decide where it is saved."""
        project = self.project
        if project is not None and project.is_dir():
            project = project / FILE_NAME
        if project is not None and project.suffix != ".toml":
            raise InvalidInputError(
                f"project (--project) must be a file that ends in .toml, got {project}.",
                code="project-suffix",
                argument="project",
                value=project,
            )
        if not self.paths:
            if project is None:
                return Workspace()
            if not project.exists():
                raise InvalidInputError(
                    f"There is no project {project} yet; name the sources of a new one, too.", code="project-missing"
                )
            return open_workspace([str(project)], self.options, [Path.cwd()])
        work = open_workspace(self.paths, self.options, [Path.cwd()])
        if work.project is not None:
            if project is not None and project.resolve() != work.project.resolve():
                raise InvalidInputError(
                    f"{work.project} is a project already; leave out --project.", code="project-twice"
                )
            return work
        if project is None:
            return choose_project(work, Path.cwd())
        if not project.exists():
            return replace(work, project=project)
        again = gone_on(work, project)
        if again is None:
            raise InvalidInputError(
                f"{project} exists, but is no project of the studio about these images and sources. Name another file.",
                code="project-of-another",
            )
        return again

    def run(
        self,
        host: str,
        port: int,
        browser: bool,
        n_jobs: int | None,
        say: Callable[[str], None],
        ready: Callable[[str], None] | None = None,
        guarded: Callable[[Any], None] | None = None,
    ) -> None:
        """Serve the studio until it is closed; `made` is called with its guard, and `ready` then with its address."""
        import_optional("starlette")
        import_optional("uvicorn")
        from bimichi.studio.app import make_app
        from bimichi.studio.session import Session

        folders, work = self.readable(), self.workspace()
        for note in work.notes:
            say(note)
        session = Session(work, n_jobs)
        for folder in folders:
            session.roots.add(folder)
        hosts = () if host in HERE else (host,)
        if hosts:
            say(f"Whoever knows the address can use this studio from other machines, as it listens at {host}.")

        def announce(url: str) -> None:
            say(f"The studio is at {url}")
            say("Press Ctrl-C here to end it; what is drawn is saved all the time.")

        def make(token: str) -> Any:
            guard = make_app(session, token, hosts)
            if guarded is not None:
                guarded(guard)
            return guard

        try:
            serve(make, host, port, browser, ready or announce)
        finally:
            session.release()  # a server that is asked to end while it starts ends nothing else


ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:\[\]-]{1,255}")
"""The address of a notebook's server; what is no such text must not get into a header."""

STARTING = "Starting the studio."
ENDED = "The studio has ended; what was drawn is saved. Run the cell again to go on."
REFUSED = "The studio cannot be shown here, as this page does not say its address. Open the studio in a browser: {}"

Serve = Callable[[Callable[[str], None], Callable[[Any], None]], None]
"""Serves a studio until it ends; calls the first function with its address, and the second, before, with its guard."""


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    kernel = None if shell is None else shell.get_ipython()
    return kernel is not None and hasattr(kernel, "kernel")


class Server:
    """A studio that is served in a thread; errors of its start are raised here."""

    def __init__(self, serve: Serve) -> None:
        self._said: SimpleQueue[str | BaseException] = SimpleQueue()
        self.guard: Any = None
        self.running = True
        self._after: Callable[[], None] | None = None
        self._thread = Thread(target=self._run, args=(serve,), name="bimichi-studio", daemon=True)
        self._thread.start()
        said = self._said.get()
        if isinstance(said, BaseException):
            raise said
        self.url = said

    def _run(self, serve: Serve) -> None:
        try:
            serve(self._said.put, lambda guard: setattr(self, "guard", guard))
        except BaseException as error:  # of whatever kind: it is raised where the studio was asked for
            self._said.put(error)
        self.running = False
        if self._after is not None:
            self._after()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call a function once the studio has ended, in its thread."""
        self._after = call
        if not self.running:
            call()

    def stop(self) -> None:
        """End the studio, and wait until it has saved what is drawn."""
        if self.running and self.guard is not None and self.guard.end is not None:
            self.guard.end()
        self._thread.join(10)


def widget_of(server: Server, height: int = 800) -> Any:
    """Return a widget that shows the page of a studio, so many pixels high; ``close()`` ends the studio, too."""
    anywidget, traitlets = import_optional("anywidget"), import_optional("traitlets", "notebook")
    tall = check_integer(height, "height", minimum=100)

    class StudioWidget(anywidget.AnyWidget):  # type: ignore[misc,name-defined]  # imported when first needed
        _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
        url = traitlets.Unicode("").tag(sync=True)
        note = traitlets.Unicode(STARTING).tag(sync=True)
        origin = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(tall).tag(sync=True)

        @traitlets.observe("origin")
        def _allow(self, change: Any) -> None:
            """Let the notebook, and no other page, show the studio in a frame."""
            if not server.running:
                return
            if not ORIGIN.fullmatch(change["new"]):
                self.note = REFUSED.format(server.url)
                return
            frames = server.guard.frames
            server.guard.frames = frames if change["new"] in frames else (*frames, change["new"])
            self.note, self.url = "", server.url

        def end(self) -> None:
            """Show that the studio has ended."""
            self.url, self.note = "", ENDED

        def close(self) -> None:
            """End the studio, and remove the widget."""
            server.stop()
            super().close()

    widget = StudioWidget()
    server.when_ended(widget.end)
    return widget
