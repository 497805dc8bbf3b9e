"""Scores, a registry of methods, and methods compared on the same scenes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
