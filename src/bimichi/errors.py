"""What bimichi raises when something it was given cannot be used."""


class BimichiError(Exception):
    """Base of every error that bimichi raises on purpose."""


class InvalidInputError(BimichiError, ValueError):
    """An argument that breaks a rule; the message names it, its value, the rule and the remedy."""


class ModelFileError(BimichiError, ValueError):
    """A model file that is missing, damaged, hostile, of another kind or of a newer version."""


class NotRunError(BimichiError):
    """A method cannot run because something it needs was not given."""
