"""Errors and warnings by their code, so that tests hold whatever the sentences say."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bimichi.errors import BimichiError, BimichiWarning, InvalidInputError, Refusal


def breaks(message: Refusal, rule: str, mentions: tuple[str, ...]) -> bool:
    """Return whether a message is about a rule, "code" or "code:argument", and mentions names, values or remedies."""
    code, _, argument = rule.partition(":")
    named = message.code == code and argument in ("", message.argument)
    return named and all(mention in str(message) for mention in mentions)


@contextmanager
def refused(
    rule: str, *mentions: str, kind: type[BimichiError] = InvalidInputError
) -> Iterator[pytest.ExceptionInfo[BimichiError]]:
    """Expect an error of bimichi that is about this rule, "code" or "code:argument", and mentions all of these."""
    with pytest.raises(kind) as raised:
        yield raised
    error = raised.value
    assert breaks(error, rule, mentions), f"{error.code}:{error.argument}: {error}"


@contextmanager
def warned(rule: str, *mentions: str, kind: type[BimichiWarning] = BimichiWarning) -> Iterator[pytest.WarningsRecorder]:
    """Expect a warning of bimichi, as `refused` expects an error."""
    with pytest.warns(kind) as warnings:
        yield warnings
    messages = [warning.message for warning in warnings if isinstance(warning.message, BimichiWarning)]
    assert any(breaks(message, rule, mentions) for message in messages), [(m.code, str(m)) for m in messages]
