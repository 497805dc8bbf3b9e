"""The script of a report: its modules joined into one, since a page that needs no other file can import none."""

import re
from importlib.resources import files

IMPORT = re.compile(r'^import \{\s*\w+(?:,\s*\w+)*,?\s*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const)\b)", re.MULTILINE)


def script_text(entry: str = "report.js") -> str:
    """Return a module of this package and all that it imports as one module, each after those that it imports.

    Names keep their spelling, so that no two modules may define the same one, and none may be imported as another.
    """
    modules: dict[str, str] = {}
    _collect(entry, modules)
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in modules.values())


def _collect(name: str, modules: dict[str, str]) -> None:
    text = files("bimichi.report").joinpath(name).read_text(encoding="utf-8")
    for imported in IMPORT.findall(text):
        if imported not in modules:
            _collect(imported, modules)
    modules[name] = text
