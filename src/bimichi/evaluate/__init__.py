"""Scores, a registry of methods, and methods compared on the same scenes."""

from bimichi.evaluate.comparison import Comparison, compare
from bimichi.evaluate.engine import Result
from bimichi.evaluate.metrics import Scores, scores
from bimichi.methods.registry import Method, paper_methods, register_method, registered_methods

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
