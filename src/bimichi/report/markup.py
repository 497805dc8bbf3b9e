"""HTML in which text is text: whatever is not `Markup` is escaped."""

import html
import json
from importlib.resources import files
from os import PathLike
from string import Template
from typing import Any

from bimichi._files import atomic_write

POLICY = "default-src 'none'; {script}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a page may load: nothing but what it holds itself, of which a script must have the hash that is put in."""


class Markup(str):
    """HTML, to be used as it is."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str | int | float | bool | None) -> Markup:
    """Return an element of HTML; content that is not `Markup` is escaped.

    As attributes, ``class_`` stands for class and ``data_code`` for data-code. True is an attribute without a value;
    False and None leave it out.

    >>> element("p", "a < b ", element("b", "&"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b <b>&amp;</b></p>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is not None and value is not False:
            name = name.removesuffix("_").replace("_", "-")
            parts.append(name if value is True else f'{name}="{html.escape(str(value))}"')
    return Markup(f"<{' '.join(parts)}>{joined(*content)}</{tag}>")


def joined(*content: str) -> Markup:
    """Return pieces in a row; `str` is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in content))


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
