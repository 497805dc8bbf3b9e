"""The studio: a page on which users draw labels on scenes, while a fusion learns from them; served on this machine."""

from bimichi.studio.start import open_studio

__all__ = ["open_studio"]
