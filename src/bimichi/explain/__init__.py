"""Turn a learned measure into answers that a person can read."""

from bimichi.explain.attribution import Chain, Step, chain, contributions
from bimichi.explain.data_weighted import DataIndices, data_indices
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import Indices, indices

__all__ = [
    "Chain",
    "DataIndices",
    "Identifiability",
    "Indices",
    "Step",
    "chain",
    "contributions",
    "data_indices",
    "identifiability",
    "indices",
]
