"""Scenes, the annotations drawn on them, and what these mean: labels of pixels, and bags."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
