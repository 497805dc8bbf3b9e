"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, Step, chain, contributions
from bimichi.explain.data_weighted import DataIndices, data_indices
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import Indices, indices
from bimichi.explain.pixel import PixelExplanation, explain_pixel
from bimichi.explain.sentences import Fact, Summary, summary
from bimichi.explain.stability import Stability, bootstrap

__all__ = [
    "Chain",
    "DataIndices",
    "Fact",
    "Identifiability",
    "Indices",
    "PixelExplanation",
    "Stability",
    "Step",
    "Summary",
    "bootstrap",
    "chain",
    "contributions",
    "data_indices",
    "explain_pixel",
    "identifiability",
    "indices",
    "summary",
]
