"""Errors and warnings of bimichi: each has a sentence for people and a code for programs."""

import pickle
import warnings
from typing import Any

LONGEST = 2000
"""Characters of the longest message; what a file holds may be much longer."""


def shortened(text: str) -> str:
    """Return a message of at most `LONGEST` characters: a longer one without its middle."""
    if len(text) <= LONGEST:
        return text
    kept = LONGEST - 60
    return f"{text[: kept * 3 // 4]} [... {len(text) - kept:,} characters left out ...] {text[-(kept // 4) :]}"


class Refusal(Exception):
    """Base of every error and warning of bimichi; its message has at most 2,000 characters.

    `code` names the rule that is broken, such as "boxes-shape", and stays the same when the message is reworded.
    `argument` and `value` are those that broke it, where there is one such argument.
    """

    def __init__(self, message: str = "", *, code: str = "", argument: str | None = None, value: Any = None) -> None:
        super().__init__(shortened(message))
        self.code, self.argument, self.value = code, argument, value

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs; a value that cannot be pickled is replaced by its shortened repr."""
        try:
            pickle.dumps(self.value)
            state = self.__dict__
        except Exception:  # objects of users raise all kinds of errors
            state = self.__dict__ | {"value": shortened(repr(self.value))}
        return type(self), self.args, state


class BimichiError(Refusal):
    """Base of every error that bimichi raises on purpose."""


class InvalidInputError(BimichiError, ValueError):
    """An argument that breaks a rule; the message names it, its value, the rule and the remedy."""


class ModelFileError(BimichiError, ValueError):
    """A model file that is missing, damaged, hostile, of another kind or of a newer version."""


class NotRunError(BimichiError):
    """A method cannot run because something it needs was not given."""


class BimichiWarning(Refusal, UserWarning):
    """Something that was probably meant otherwise; the message names it and the remedy."""


class AnnotationWarning(BimichiWarning):
    """Annotations that were probably meant in another sense; the message names the file and the remedy."""


def warn(message: str, *, code: str, kind: type[BimichiWarning] = BimichiWarning, stacklevel: int = 1) -> None:
    """Issue a warning of bimichi; `stacklevel` counts from the caller, as in `warnings.warn`."""
    warnings.warn(kind(message, code=code), stacklevel=stacklevel + 1)


def with_code(error: BaseException | str) -> str:
    """Return a message with its code in brackets at its end, as commands print it."""
    code = error.code if isinstance(error, Refusal) else ""
    return f"{error} [{code}]" if code else str(error)
