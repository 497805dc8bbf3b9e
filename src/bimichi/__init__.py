"""Sensor fusion with bi-capacities and the Choquet integral, learned from imprecise labels.

The method is Bi-MIChI [1]_. Public names are imported when first used, so that ``import bimichi`` is quick.

References
----------
.. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
   FUZZ-IEEE 2024.
"""

import lazy_loader

from bimichi._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
