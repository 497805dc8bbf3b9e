"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, Step, chain, contributions
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import DataIndices, Indices, data_indices, indices
from bimichi.explain.sentences import Fact, Summary, summary
from bimichi.explain.stability import Stability, bootstrap

__all__ = [
    "Chain",
    "DataIndices",
    "Fact",
    "Identifiability",
    "Indices",
    "Stability",
    "Step",
    "Summary",
    "bootstrap",
    "chain",
    "contributions",
    "data_indices",
    "identifiability",
    "indices",
    "summary",
]
