"""What the pages of this package share: their template, the files that it takes in, and data inside a page."""

import json
from importlib.resources import files
from os import PathLike
from string import Template
from typing import Any

from bimichi._files import atomic_write
from bimichi._markup import Markup as Markup, element as element, joined as joined

POLICY = "default-src 'none'; {script}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a page may load: nothing but what it holds itself, of which a script must have the hash that is put in."""


def embedded_json(document: Any) -> Markup:
    """Return JSON that can be put inside a script element: no character in it can end the element, or begin another."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def write_page(
    path: str | PathLike[str],
    title: str,
    introduction: str,
    sections: Markup,
    digest: str = "",
    before: str = "",
    button: str = "",
    after: str = "",
) -> None:
    """Write a page, which replaces the file only when complete.

    `digest` is that of the script it may run, `before` and `after` stand around header and sections, and `button` is in
    the header; all are HTML already.
    """
    page = Template(resource("page.html")).substitute(
        policy=POLICY.format(script=f"script-src 'sha256-{digest}'; " if digest else ""),
        title=joined(title),
        introduction=joined(introduction),
        style=resource("report.css"),
        sections=sections,
        before=before,
        button=button,
        after=after,
    )
    atomic_write(path, lambda file: file.write(page.encode(errors="replace")))  # names of files may be no valid text


def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return files("bimichi.report").joinpath(name).read_text(encoding="utf-8")
