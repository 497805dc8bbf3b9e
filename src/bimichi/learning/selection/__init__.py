"""Choosing a fusion by cross-validation over scenes: candidates, what they learn from, scores, and the outcome."""

from bimichi.learning.selection.candidates import Candidate, check_candidates, default_candidates
from bimichi.learning.selection.choosing import Chosen, choose
from bimichi.learning.selection.result import Contender, Selection, selection_of
from bimichi.learning.selection.units import Material, Signed

__all__ = [
    "Candidate",
    "Chosen",
    "Contender",
    "Material",
    "Selection",
    "Signed",
    "check_candidates",
    "choose",
    "default_candidates",
    "selection_of",
]
