"""The report: one HTML file that shows what a model fused, says how it decides, and explains any pixel."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
