"""Results as HTML for notebooks: escaped, no wider than their cell, and readable in light and in dark.

Colours follow values as in every picture, -1 blue and +1 red; they are laid over the background of the notebook, so
that text keeps the colour that it has there.
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bimichi._tables import Cell, Table, marked

Tint = Callable[[int, str], str]
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
    below = f'<p class="note">{html.escape(note)}</p>' if note else ""
    head = f'<p class="title">{html.escape(title)}</p>' if title else ""
    return f'<div class="bimichi-view"><style>{STYLE}</style>{head}{"".join(parts)}{below}</div>'


def facts(known: Mapping[str, Any]) -> str:
    """Return names and values, without those that are None or empty."""
    shown = [(name, str(value)) for name, value in known.items() if value is not None and str(value)]
    rows = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in shown)
    return f"<dl>{rows}</dl>" if rows else ""


def by_value(column: int, text: str) -> str:
    """Tint a cell by its number: red above 0, blue below, deepest from -1 and +1 on."""
    value = _number(text) if "." in text else None  # whole numbers are counts
    if column == 0 or not value or abs(value) > MOST:
        return ""
    return f' class="{"up" if value > 0 else "down"}" style="--share:{min(1.0, abs(value)):.3g}"'


def by_rank(table: Table, higher_is_better: Mapping[int, bool]) -> Tint:
    """Return a tint that is deeper the better a number is among those of its column."""
    ranges = {}
    for column in higher_is_better:
        found = [value for row in table.rows if (value := _number(row[column].text)) is not None]
        if found and max(found) > min(found):
            ranges[column] = (min(found), max(found))

    def tint(column: int, text: str) -> str:
        value = _number(text)
        if column not in ranges or value is None:
            return ""
        low, high = ranges[column]
        share = (value - low) / (high - low)
        return f' class="good" style="--share:{share if higher_is_better[column] else 1 - share:.3g}"'

    return tint


def table(shown: Table, tint: Tint = by_value) -> str:
    """Return a table that scrolls within its cell, its numbers tinted."""
    head = "".join(f"<th>{html.escape(text)}</th>" for text in shown.header)
    body = "".join(f"<tr>{''.join(_cell(k, cell, tint) for k, cell in enumerate(row))}</tr>" for row in shown.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def bars(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str], float]]) -> str:
    """Return a table whose rows are a name, some texts, and a number with a bar, to the left if it is below 0."""
    listed = list(rows)
    most = max((abs(value) for _, _, value in listed), default=0.0) or 1.0
    head = "".join(f"<th>{html.escape(text)}</th>" for text in [*header, ""])
    body = []
    for name, texts, value in listed:
        bar = f'<b class="{"up" if value > 0 else "down"}" style="--share:{abs(value) / most:.3g}"></b>'
        sides = f"<i></i><i>{bar}</i>" if value > 0 else f"<i>{bar}</i><i></i>"
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in texts)
        body.append(f'<tr><th>{html.escape(name)}</th>{cells}<td><span class="bar">{sides}</span></td></tr>')
    made = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll">{made}</div>'


def pictures(shown: Iterable[tuple[str, str]]) -> str:
    """Return pictures, data URIs with their captions, side by side as far as there is room."""
    made = [
        f'<figure><img src="{html.escape(uri)}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, uri in shown
    ]
    return f'<div class="pictures">{"".join(made)}</div>' if made else ""


def paragraph(text: str) -> str:
    """Return a paragraph of text."""
    return f"<p>{html.escape(text)}</p>"


def framed(page: str, title: str) -> str:
    """Return a whole page in a frame of its own, which may run its scripts but reaches nothing of the notebook."""
    return f'<iframe sandbox="allow-scripts" title="{html.escape(title)}" srcdoc="{html.escape(page)}"></iframe>'


def _cell(column: int, cell: Cell, tint: Tint) -> str:
    text = marked(html.escape(cell.text), cell, ("<b>", "</b>"), ("<u>", "</u>"))
    if column == 0:
        return f"<th>{text}</th>"
    kind = tint(column, cell.text) or (' class="text"' if len(cell.text) > 24 else "")
    return f"<td{kind}>{text}</td>"


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return value if value == value else None
