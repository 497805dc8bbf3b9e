"""The wording of errors and warnings, all in one file: whoever rewords one changes that file and nothing else.

``python tests/test_messages.py`` writes the file anew.
"""

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from refusals import refused

from bimichi import BiCapacity, errors

SOURCE = Path(__file__).parents[1] / "src" / "bimichi"
SNAPSHOT = Path(__file__).parent / "messages.json"
KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.Refusal)}
MAKERS = KINDS | {"warn", "Missing", "SelfTestError"}


def messages() -> Iterator[tuple[str, str, str]]:
    """Yield place, code and message of every error and warning of the package; what varies reads ``{}``."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in MAKERS:
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
    by_code: dict[str, set[str]] = {}
    for _, code, message in messages():
        by_code.setdefault(code, set()).add(message)
    return {code: sorted(texts) for code, texts in sorted(by_code.items())}


def test_every_message_has_a_code():
    assert [place for place, code, _ in messages() if not code] == []


def test_codes_are_short_words():
    codes = [code for _, code, _ in messages() if "(" not in code and code != "error.code"]
    assert [code for code in codes if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){0,4}", code)] == []


def test_wording_is_that_of_the_snapshot():
    assert collected() == json.loads(SNAPSHOT.read_text()), (
        "run `python tests/test_messages.py` and read the difference"
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_fields_survive_another_process(kind):
    error = pickle.loads(pickle.dumps(getattr(errors, kind)("n is 0.", code="n-positive", argument="n", value=0)))
    assert (type(error).__name__, str(error)) == (kind, "n is 0.")
    assert (error.code, error.argument, error.value) == ("n-positive", "n", 0)


def test_a_value_that_cannot_be_pickled_becomes_text():
    error = pickle.loads(pickle.dumps(errors.InvalidInputError("Wrong.", code="f", value=lambda: None)))
    assert "<lambda>" in error.value


def test_an_error_names_code_argument_and_value():
    with refused("number-range:x") as raised:
        raise errors.InvalidInputError("x has to be 1.", code="number-range", argument="x", value=2)
    assert raised.value.value == 2
    with refused("values-length:values") as raised:
        BiCapacity([[1]])
    assert errors.with_code(raised.value) == f"{raised.value} [values-length]"
    assert errors.with_code(OSError("No space")) == "No space"


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(collected(), indent=1, ensure_ascii=False) + "\n")
