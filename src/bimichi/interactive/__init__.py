"""The studio: a page on which users draw labels on scenes, while a fusion learns from them; served on this machine."""

from bimichi.interactive.starting import studio

__all__ = ["studio"]
