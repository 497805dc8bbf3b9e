"""Results as HTML, tables and pages: escaped, no wider than their cell, and readable in light and in dark.

Colours follow values as in every picture, -1 blue and +1 red; they are laid over the background of the notebook, so
that text keeps the colour that it has there. In Jinja2's environment every value is escaped, and a name that is
missing is an error.
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def decimal(value: float, digits: int = 2) -> str:
    """Write a number with a true minus, and without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@cache
def environment() -> "Environment":
    """Return the environment with the filters that templates use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from bimichi._colours import gradient, swatch

    pages = Environment(
        loader=PackageLoader("bimichi", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"decimal": decimal, "gradient": gradient, "listed": listed, "swatch": swatch}
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return pages


def render(template: str, **values: Any) -> "Markup":
    """Return the HTML of a template; of `values`, only `Markup` is not escaped."""
    from markupsafe import Markup

    return Markup(environment().get_template(template).render(values))


def macro(template: str, name: str, *values: Any) -> "Markup":
    """Return the HTML of one macro of a template."""
    html: Markup = getattr(environment().get_template(template).module, name)(*values)
    return html


LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "{}&%$#_"}
    | {"\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum ", "∅": r"$\emptyset$", "–": "--"}
)


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    text: str
    bold: bool = False
    underlined: bool = False


@dataclass(frozen=True)
class Table:
    """A header, and rows of cells as long as the header; the first column names the row."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def to_markdown(self) -> str:
        """Render as a GitHub-flavoured Markdown table, which has no underline: italics stand for it."""
        lines = [[_markdown(text) for text in self.header], ["---"] + ["---:"] * (len(self.header) - 1)]
        for row in self.rows:
            lines.append([marked(_markdown(c.text), c, ("**", "**"), ("*", "*")) for c in row])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def to_html(self) -> str:
        """Render as an HTML table without styles of its own."""
        return str(macro("view.html", "table", self, None))

    def to_latex(self) -> str:
        """Render as a LaTeX tabular with the rules of booktabs."""
        lines = [" & ".join(_latex(text) for text in self.header)]
        for row in self.rows:
            cells = [marked(_latex(c.text), c, (r"\textbf{", "}"), (r"\underline{", "}")) for c in row]
            lines.append(" & ".join(cells))
        columns = "l" + "r" * (len(self.header) - 1)
        body = " \\\\\n".join([*lines[1:], r"\bottomrule"])
        return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{lines[0]} \\\\\n\\midrule\n{body}\n\\end{{tabular}}"

    def to_text(self) -> str:
        """Render in columns, for a terminal."""
        lines = [list(self.header)] + [[cell.text for cell in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def number(value: float) -> str:
    """Write a value to two digits, without a negative zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def marked(text: str, cell: Cell, bold: tuple[str, str], underlined: tuple[str, str]) -> str:
    """Put the text of a cell between the marks of its emphasis."""
    if cell.underlined and text:
        text = f"{underlined[0]}{text}{underlined[1]}"
    return f"{bold[0]}{text}{bold[1]}" if cell.bold and text else text


def _latex(text: str) -> str:
    return text.translate(LATEX).replace("\n", " ")


def _markdown(text: str) -> str:
    escaped = text.translate({ord(sign): f"\\{sign}" for sign in "\\`*_{}[]|"})
    return html.escape(escaped, quote=False).replace("\n", " ")


Tint = Callable[[int, str], dict[str, str]]
"""Gives the attributes of a cell, from its column and its text."""

MOST = 2.0  # beyond, a number is no value or index
LONG = 24  # characters, from which on a text is broken into lines


def view(title: str, *parts: str, note: str = "") -> str:
    """Return a whole result: a title, its parts, and a note; as plain text, to which others may add theirs."""
    return str(macro("view.html", "view", title, parts, note))


def paragraph(text: str) -> "Markup":
    """Return a sentence or several."""
    return macro("view.html", "paragraph", text)


def facts(values: Mapping[str, Any]) -> "Markup":
    """Return names and values, without those that are None or empty."""
    pairs = [(name, str(value)) for name, value in values.items() if value is not None and str(value)]
    return macro("view.html", "facts", pairs)


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
        numbers = [value for row in table.rows if (value := _number(row[column].text)) is not None]
        if numbers and max(numbers) > min(numbers):
            ranges[column] = (min(numbers), max(numbers))

    def tint(column: int, text: str) -> dict[str, str]:
        value = _number(text)
        if column not in ranges or value is None:
            return {}
        low, high = ranges[column]
        share = (value - low) / (high - low)
        return _tinted("good", share if higher_is_better[column] else 1 - share)

    return tint


def table(shown: Table, tint: Tint = by_value) -> "Markup":
    """Return a table that scrolls within its cell, its numbers tinted."""

    def attributes(column: int, text: str) -> dict[str, str]:
        return tint(column, text) or ({"class": "text"} if len(text) > LONG else {})

    return macro("view.html", "tinted", shown, attributes)


def bars(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str], float]]) -> "Markup":
    """Return a table whose rows are a name, some texts, and a number with a bar, to the left if it is below 0."""
    lines = list(rows)
    most = max((abs(value) for *_, value in lines), default=0.0) or 1.0
    return macro("view.html", "bars", header, [(name, texts, value / most) for name, texts, value in lines])


def pictures(images: Iterable[tuple[str, str]]) -> "Markup":
    """Return pictures, captions with data URIs, side by side as far as there is room."""
    return macro("view.html", "pictures", list(images))


def frame(title: str, page: str) -> "Markup":
    """Return a page in a frame of its own, in which it may run its scripts, but reaches nothing of the notebook."""
    return macro("view.html", "frame", title, page)


def _tinted(kind: str, share: float) -> dict[str, str]:
    return {"class": kind, "style": f"--share:{share:.3g}"}


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return value if value == value else None
