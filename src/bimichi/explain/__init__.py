"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, Step, chain, contributions
from bimichi.explain.candidates import Suggestion
from bimichi.explain.data_weighted import DataIndices, data_indices
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import Indices, indices
from bimichi.explain.sentences import Fact, Summary, summary
from bimichi.explain.stability import Stability, bootstrap
from bimichi.explain.suggesting import Suggestions, suggest
from bimichi.explain.uncertainty import Uncertainty, uncertainty

__all__ = [
    "Chain",
    "DataIndices",
    "Fact",
    "Identifiability",
    "Indices",
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
    "identifiability",
    "indices",
    "suggest",
    "summary",
    "uncertainty",
]
