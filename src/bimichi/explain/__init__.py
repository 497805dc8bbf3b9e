"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, PixelExplanation, Step, chain, contributions, explain_pixel
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import DataIndices, Indices, data_indices, indices
from bimichi.explain.sentences import Fact, Summary, summary
from bimichi.explain.stability import Stability, bootstrap
from bimichi.explain.suggestions import Suggestion, Suggestions, suggest
from bimichi.explain.uncertainty import Uncertainty, uncertainty

__all__ = [
    "Chain",
    "DataIndices",
    "Fact",
    "Identifiability",
    "Indices",
    "PixelExplanation",
    "Stability",
    "Step",
    "Suggestion",
    "Suggestions",
    "Summary",
    "Uncertainty",
    "bootstrap",
    "chain",
    "contributions",
    "data_indices",
    "explain_pixel",
    "identifiability",
    "indices",
    "suggest",
    "summary",
    "uncertainty",
]
