"""A studio in a notebook: its server in a thread of the kernel, its page in a widget."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bimichi._checks import check_integer
from bimichi._extras import import_optional

ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:\[\]-]{1,255}")
"""The address of a notebook's server; what is no such text must not get into a header."""

STARTING = "Starting the studio."
ENDED = "The studio has ended; what was drawn is saved. Run the cell again to go on."
REFUSED = "The studio cannot be shown here, as this page does not say its address. Open the studio in a browser: {}"

Serve = Callable[[Callable[[str], None], Callable[[Any], None]], None]
"""Serves a studio until it ends; calls the first function with its address, and the second, before, with its guard."""


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and hasattr(found, "kernel")


class Server:
    """A studio that is served in a thread; errors of its start are raised here."""

    def __init__(self, serve: Serve) -> None:
        self._said: SimpleQueue[str | BaseException] = SimpleQueue()
        self.guard: Any = None
        self.running = True
        self._after: Callable[[], None] | None = None
        self._thread = Thread(target=self._run, args=(serve,), name="bimichi-studio", daemon=True)
        self._thread.start()
        found = self._said.get()
        if isinstance(found, BaseException):
            raise found
        self.url = found

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
    """Return a widget that shows the page of a studio.

    Parameters
    ----------
    server : Server
        What serves it.
    height : int, default=800
        Of the widget, in pixels.

    Returns
    -------
    anywidget.AnyWidget
        Shown where it is the result of a cell. ``close()`` ends the studio, too.
    """
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
            known = server.guard.frames
            server.guard.frames = known if change["new"] in known else (*known, change["new"])
            self.note, self.url = "", server.url

        def end(self) -> None:
            """Show that the studio has ended."""
            self.url, self.note = "", ENDED

        def close(self) -> None:
            """End the studio, and remove the widget."""
            server.stop()
            super().close()

    made = StudioWidget()
    server.when_ended(made.end)
    return made
