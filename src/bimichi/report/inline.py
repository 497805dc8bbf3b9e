"""`Report`: a report that was written, which a notebook shows in its cell."""

from dataclasses import dataclass
from pathlib import Path

from bimichi import _html
from bimichi._markup import element

INLINE = 25_000_000
"""Bytes of the largest report that is copied into a notebook."""


@dataclass(frozen=True)
class Report:
    """The file of a report; as the last line of a notebook's cell, the page itself.

    Attributes
    ----------
    path : Path
        The file.
    """

    path: Path

    def _repr_html_(self) -> str:
        title = f"Report {self.path}"
        try:
            size = self.path.stat().st_size
            if size > INLINE:
                note = f"It has {size / 1e6:.0f} MB, too much for a notebook: open the file in a browser."
                return _html.view(title, note=note)
            page = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return _html.view(title, note=f"It cannot be read any more: {error.strerror}.")
        # In a frame of its own, the page may run its scripts, but reaches nothing of the notebook.
        return _html.view("", element("iframe", sandbox="allow-scripts", title=title, srcdoc=page))
