"""Scores, a registry of methods, and methods compared on the same scenes."""

from bimichi.evaluation.comparison import Comparison, compare
from bimichi.evaluation.engine import Result
from bimichi.evaluation.methods import Method, paper_methods, register_method, registered_methods
from bimichi.evaluation.metrics import Scores, scores

__all__ = [
    "Comparison",
    "Method",
    "Result",
    "Scores",
    "compare",
    "paper_methods",
    "register_method",
    "registered_methods",
    "scores",
]
