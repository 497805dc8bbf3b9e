"""Write the tables of the documentation that follow from the code: ``python docs/tables.py``. A test compares them."""

import re
from inspect import getdoc
from pathlib import Path

from bimichi.evaluate import registered_methods
from bimichi.io import ANNOTATION_FORMATS
from bimichi.sources import RECIPES


def methods_table() -> str:
    """One line for each class of the registry: what it needs and does, and where it was published."""
    lines = ["| | needs | method | published |", "|---|---|---|---|"]
    for kind in dict.fromkeys(entry.estimator for entry in registered_methods()):
        cited = next(entry.citation for entry in registered_methods() if entry.estimator is kind)
        about = re.sub(r" ?\[\d\]_,?", "", (getdoc(kind) or "").split("\n\n")[0].replace("\n", " "))
        lines.append(f"| `{kind.__name__}` | {kind.needs or 'nothing'} | {about} | {cited} |")
    return "\n".join(lines) + "\n"


def recipes_table() -> str:
    """One line for each recipe."""
    lines = [
        f"| `{recipe.name}` | {recipe.description} | {'yes' if recipe.pointwise else 'no'} |"
        for recipe in RECIPES.values()
    ]
    return "\n".join(["| recipe | what it does | in windows |", "|---|---|---|", *lines]) + "\n"


def formats_table() -> str:
    """One line for each annotation format."""
    lines = [f"| `{known.name}` | {known.description} |" for known in ANNOTATION_FORMATS.values()]
    return "\n".join(["| format | what it is |", "|---|---|", *lines]) + "\n"


TABLES = {"methods": methods_table, "recipes": recipes_table, "annotation formats": formats_table}


def with_table(page: str) -> str:
    """Return the page with the current tables between their marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by docs/tables.py -->\n", f"<!-- end of {name} -->"
        if begin in page:
            before, rest = page.split(begin)
            page = before + begin + "\n" + table() + "\n" + end + rest.split(end)[1]
    return page


if __name__ == "__main__":
    for path in Path(__file__).parent.glob("*.md"):
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
