"""Choosing a fusion by cross-validation over scenes: candidates, what they learn from, scores, and the outcome."""

from bimichi.learning.selection.candidates import Candidate, check_candidates, default_candidates
from bimichi.learning.selection.choosing import Chosen, How, choose, cross_validate
from bimichi.learning.selection.result import Contender, Selection, selection_of
from bimichi.learning.selection.units import Material, Signed

__all__ = [
    "Candidate",
    "Chosen",
    "Contender",
    "How",
    "Material",
    "Selection",
    "Signed",
    "check_candidates",
    "choose",
    "cross_validate",
    "default_candidates",
    "selection_of",
]
