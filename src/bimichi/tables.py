"""Small tables as Markdown, HTML and plain text; every cell is escaped."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Table", "number"]


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A header, and rows of cells as long as the header; the first column names the row."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def to_markdown(self) -> str:
        """Render as a GitHub-flavoured Markdown table."""
        lines = [[_markdown(text) for text in self.header], ["---"] + ["---:"] * (len(self.header) - 1)]
        for row in self.rows:
            lines.append([f"**{_markdown(c.text)}**" if c.bold and c.text else _markdown(c.text) for c in row])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def to_html(self) -> str:
        """Render as an HTML table without styles of its own."""
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.header)
        body = []
        for row in self.rows:
            cells = [f"<th>{html.escape(row[0].text)}</th>"]
            for cell in row[1:]:
                text = html.escape(cell.text)
                cells.append(f"<td>{f'<b>{text}</b>' if cell.bold else text}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

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


def _markdown(text: str) -> str:
    for sign in "\\`*_{}[]|":
        text = text.replace(sign, f"\\{sign}")
    return html.escape(text, quote=False).replace("\n", " ")
