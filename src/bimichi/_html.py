"""Results as HTML for notebooks: escaped, no wider than their cell, and readable in light and in dark.

Colours follow values as in every picture, -1 blue and +1 red; they are laid over the background of the notebook, so
that text keeps the colour that it has there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bimichi._tables import Cell, Markup, Table, element, html_table, in_html, joined, picture

Tint = Callable[[int, str], dict[str, str]]
"""Gives the attributes of a cell, from its column and its text."""

MOST = 2.0  # beyond, a number is no value or index

STYLE = """
.bimichi-view{--up:178 24 43;--down:33 102 172;--good:27 120 55;--depth:.55;font:13px/1.45 system-ui,sans-serif;
color:inherit;max-width:100%;overflow-wrap:anywhere}
.bimichi-view :is(p,dl,figure){margin:0 0 .5em}
.bimichi-view .title{font-weight:600}
.bimichi-view .note{opacity:.75}
.bimichi-view .scroll{overflow:auto;max-width:100%;max-height:30em;margin:0 0 .5em}
.bimichi-view dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em}
.bimichi-view dt{opacity:.75}
.bimichi-view dd{margin:0;overflow-wrap:anywhere}
.bimichi-view table{border-collapse:collapse;margin:0;font:inherit;font-variant-numeric:tabular-nums;color:inherit}
.bimichi-view :is(th,td){padding:.15em .6em;text-align:right;white-space:nowrap;border:0;color:inherit;
border-bottom:1px solid rgb(127 127 127 / .3)}
.bimichi-view :is(th,td):first-child{text-align:left}
.bimichi-view td.text{text-align:left;white-space:normal;min-width:12em}
.bimichi-view tbody tr{background:none}
.bimichi-view .up{background:rgb(var(--up) / calc(var(--share) * var(--depth)))}
.bimichi-view .down{background:rgb(var(--down) / calc(var(--share) * var(--depth)))}
.bimichi-view .good{background:rgb(var(--good) / calc(var(--share) * var(--depth)))}
.bimichi-view .bar{display:flex;width:11em;min-width:11em}
.bimichi-view .bar i{flex:1;height:1em;display:flex}
.bimichi-view .bar i:first-child{justify-content:flex-end;border-right:1px solid currentColor}
.bimichi-view .bar b{width:calc(100% * var(--share));height:100%}
.bimichi-view .bar .up{background:rgb(var(--up))}
.bimichi-view .bar .down{background:rgb(var(--down))}
.bimichi-view .pictures{display:flex;flex-wrap:wrap;gap:.6em}
.bimichi-view figure{max-width:min(100%,200px)}
.bimichi-view img{display:block;max-width:100%;margin:0;image-rendering:auto}
.bimichi-view figcaption{font-size:.9em}
.bimichi-view iframe{box-sizing:border-box;width:100%;height:44em;
border:1px solid rgb(127 127 127 / .4);background:Canvas}
[data-jp-theme-light="false"] .bimichi-view,.vscode-dark .bimichi-view,[theme="dark"] .bimichi-view{
--up:244 109 95;--down:92 158 235;--good:90 190 120}
@media (prefers-color-scheme:dark){:root:not([data-jp-theme-light="true"]) body:not([data-jp-theme-light="true"])
.bimichi-view{--up:244 109 95;--down:92 158 235;--good:90 190 120}}
"""


def view(title: str, *parts: str, note: str = "") -> str:
    """Return a whole result: a title, parts that are HTML already, and a note."""
    head = element("p", title, class_="title") if title else ""
    below = element("p", note, class_="note") if note else ""
    return element("div", element("style", Markup(STYLE)), head, *map(Markup, parts), below, class_="bimichi-view")


def facts(known: Mapping[str, Any]) -> str:
    """Return names and values, without those that are None or empty."""
    shown = [(name, str(value)) for name, value in known.items() if value is not None and str(value)]
    rows = [joined(element("dt", name), element("dd", value)) for name, value in shown]
    return element("dl", *rows) if rows else ""


def by_value(column: int, text: str) -> dict[str, str]:
    """Tint a cell by its number: red above 0, blue below, deepest from -1 and +1 on."""
    value = _number(text) if "." in text else None  # whole numbers are counts
    if not value or abs(value) > MOST:
        return {}
    return _tinted("up" if value > 0 else "down", min(1.0, abs(value)))


def by_rank(table: Table, higher_is_better: Mapping[int, bool]) -> Tint:
    """Return a tint that is deeper the better a number is among those of its column."""
    ranges = {}
    for column in higher_is_better:
        found = [value for row in table.rows if (value := _number(row[column].text)) is not None]
        if found and max(found) > min(found):
            ranges[column] = (min(found), max(found))

    def tint(column: int, text: str) -> dict[str, str]:
        value = _number(text)
        if column not in ranges or value is None:
            return {}
        low, high = ranges[column]
        share = (value - low) / (high - low)
        return _tinted("good", share if higher_is_better[column] else 1 - share)

    return tint


def table(shown: Table, tint: Tint = by_value) -> str:
    """Return a table that scrolls within its cell, its numbers tinted."""
    rows = ([_cell(k, cell, tint) for k, cell in enumerate(row)] for row in shown.rows)
    return element("div", html_table(shown.header, rows), class_="scroll")


def bars(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str], float]]) -> str:
    """Return a table whose rows are a name, some texts, and a number with a bar, to the left if it is below 0."""
    listed = list(rows)
    most = max((abs(value) for _, _, value in listed), default=0.0) or 1.0
    body = []
    for name, texts, value in listed:
        bar = element("b", **_tinted("up" if value > 0 else "down", abs(value) / most))
        sides = (element("i"), element("i", bar)) if value > 0 else (element("i", bar), element("i"))
        cells = (element("td", text) for text in texts)
        body.append([element("th", name), *cells, element("td", element("span", *sides, class_="bar"))])
    return element("div", html_table([*header, ""], body), class_="scroll")


def pictures(shown: Iterable[tuple[str, str]]) -> str:
    """Return pictures, data URIs with their captions, side by side as far as there is room."""
    made = [element("figure", picture(uri, caption), element("figcaption", caption)) for caption, uri in shown]
    return element("div", *made, class_="pictures") if made else ""


def _cell(column: int, cell: Cell, tint: Tint) -> Markup:
    if column == 0:
        return element("th", in_html(cell))
    long = {"class_": "text"} if len(cell.text) > 24 else {}
    return element("td", in_html(cell), **tint(column, cell.text) or long)


def _tinted(kind: str, share: float) -> dict[str, str]:
    return {"class_": kind, "style": f"--share:{share:.3g}"}


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return value if value == value else None
