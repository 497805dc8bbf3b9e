"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, Step, chain, contributions
from bimichi.explain.data_weighted import DataIndices, data_indices
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import Indices, indices
from bimichi.explain.sentences import Fact, Summary, summary
from bimichi.explain.stability import Stability, bootstrap
from bimichi.explain.uncertainty import Uncertainty, uncertainty

__all__ = [
    "Chain",
    "DataIndices",
    "Fact",
    "Identifiability",
    "Indices",
    "Stability",
    "Step",
    "Summary",
    "Uncertainty",
    "bootstrap",
    "chain",
    "contributions",
    "data_indices",
    "identifiability",
    "indices",
    "summary",
    "uncertainty",
]
