"""Numbers, sets, headings, bars and tables as all sections write them."""

from collections.abc import Sequence

from bimichi.report.markup import Markup, element, joined

LABEL_LIMIT = 14

FIRST = 10
"""Pairs that are shown at once at most, the strongest first."""

MOST = 200
"""Pairs that are listed at most."""

Head = Sequence[str | tuple[str, int]]
"""Headings of columns: text, text with the number of columns it spans, or markup."""


def shown(value: float, digits: int = 2) -> str:
    """Write a number with a true minus, and without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def section(key: str, heading: str, *content: str, lead: str = "", class_: str | None = None) -> Markup:
    """Return a section of the page with its heading and a sentence or two on how to read it."""
    return element(
        "section",
        element("h2", heading, id=f"{key}-heading"),
        element("p", lead, class_="lead") if lead else "",
        *content,
        id=key,
        class_=class_,
        aria_labelledby=f"{key}-heading",
    )


def signed_bar(*shares: float) -> Markup:
    """Return a bar from the middle: left by shares of a half that are below 0, right by those above."""
    parts = [
        element("i", class_="up", style=f"left:50%;width:{50 * share:.2f}%")
        if share > 0
        else element("i", class_="down", style=f"left:{50 + 50 * share:.2f}%;width:{-50 * share:.2f}%")
        for share in shares
        if share
    ]
    return element("span", *parts, class_="signed", aria_hidden="true")


def table(head: Head, rows: Sequence[Markup], class_: str, label: str | None = None) -> Markup:
    """Return a table that scrolls where it is too wide; with a label, the keyboard can scroll it too."""
    titles = []
    for title in head:
        text, span = (title, None) if isinstance(title, str) else title
        cell = element("th", text, scope="col" if text else None, colspan=span)
        titles.append(text if isinstance(text, Markup) else cell)
    content = element("table", element("thead", element("tr", *titles)), element("tbody", *rows), class_=class_)
    if label is None:
        return element("div", content, class_="scroll")
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def folded_table(head: Head, rows: list[Markup], strong: int, total: int, class_: str, label: str | None) -> Markup:
    """Return a table of the strong pairs, ten at most; the weaker ones, out of `total` in all, are folded below it."""
    first = min(FIRST, strong)
    more = f"{len(rows) - first:,} weaker pairs" + (f" of {total - first:,}" if total > len(rows) else "")
    rest = element("details", element("summary", more), table(head, rows[first:], class_, label and "Weaker pairs"))
    return joined(table(head, rows[:first], class_, label), rest if len(rows) > first else "")
