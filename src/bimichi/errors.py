"""What bimichi raises when something it was given cannot be used."""

LONGEST = 2000
"""Characters of the longest message; what a file holds may be much longer."""


def shortened(text: str) -> str:
    """Return a message of at most `LONGEST` characters: a longer one without its middle."""
    if len(text) <= LONGEST:
        return text
    kept = LONGEST - 60
    return f"{text[: kept * 3 // 4]} [... {len(text) - kept:,} characters left out ...] {text[-(kept // 4) :]}"


class BimichiError(Exception):
    """Base of every error that bimichi raises on purpose; its message has at most 2,000 characters."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidInputError(BimichiError, ValueError):
    """An argument that breaks a rule; the message names it, its value, the rule and the remedy."""


class ModelFileError(BimichiError, ValueError):
    """A model file that is missing, damaged, hostile, of another kind or of a newer version."""


class AnnotationWarning(UserWarning):
    """Annotations that were probably meant in another sense; the message names the file and the remedy."""


class NotRunError(BimichiError):
    """A method cannot run because something it needs was not given."""
