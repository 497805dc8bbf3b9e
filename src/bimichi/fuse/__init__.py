"""Fused maps of images, frames in bulk and rasters larger than memory, and the targets detected in them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
