"""Write the tables of the documentation that follow from the code: ``python docs/tables.py``. A test compares them."""

import re
from inspect import getdoc
from pathlib import Path

from bimichi.evaluation import registered_methods

PAGE = Path(__file__).parent / "methods.md"
BEGIN, END = "<!-- methods: written by docs/tables.py -->\n", "<!-- end of methods -->"


def methods_table() -> str:
    """One line for each class of the registry: what it needs and does, and where it was published."""
    lines = ["| | needs | method | published |", "|---|---|---|---|"]
    for kind in dict.fromkeys(entry.estimator for entry in registered_methods()):
        cited = next(entry.citation for entry in registered_methods() if entry.estimator is kind)
        about = re.sub(r" ?\[\d\]_,?", "", (getdoc(kind) or "").split("\n\n")[0].replace("\n", " "))
        lines.append(f"| `{kind.__name__}` | {kind.needs or 'nothing'} | {about} | {cited} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table of today between its marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + methods_table() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
