"""The wording of errors and warnings, all in one file: whoever rewords one changes that file and nothing else.

``python tests/test_messages.py`` writes the file anew.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "bimichi"
SNAPSHOT = Path(__file__).parent / "messages.json"
KINDS = {"BimichiError", "InvalidInputError", "ModelFileError", "NotRunError", "BimichiWarning", "AnnotationWarning"}


def messages() -> Iterator[tuple[str, str, str]]:
    """Yield place, code and message of every error and warning of the package; what varies reads ``{}``."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in KINDS:
                code = next((key.value for key in node.keywords if key.arg == "code"), None)
                name = code.value if isinstance(code, ast.Constant) else ast.unparse(code) if code else ""
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", name, wording(node.args[0]) if node.args else ""


def wording(node: ast.expr) -> str:
    """Return a message as a template."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return "{}"


def collected() -> dict[str, list[str]]:
    """Return the messages by code."""
    by_code: dict[str, list[str]] = {}
    for _, code, message in messages():
        by_code.setdefault(code, []).append(message)
    return {code: sorted(set(texts)) for code, texts in sorted(by_code.items())}


def test_every_message_has_a_code():
    assert [place for place, code, _ in messages() if not code] == []


def test_wording_is_that_of_the_snapshot():
    assert collected() == json.loads(SNAPSHOT.read_text()), (
        "run `python tests/test_messages.py` and read the difference"
    )


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(collected(), indent=1, ensure_ascii=False) + "\n")
