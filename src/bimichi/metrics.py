"""Scores of fused maps against the truth; the public place of `bimichi.evaluation.metrics`."""

from bimichi.evaluation.metrics import *  # noqa: F403
from bimichi.evaluation.metrics import __all__ as __all__
