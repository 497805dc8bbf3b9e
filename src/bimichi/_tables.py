"""Small tables as Markdown, HTML, LaTeX and plain text; every cell is escaped."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from bimichi._templates import macro

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
