"""The version of bimichi, for modules that the package's own first module leads to."""

__version__ = "1.0.0rc1"
