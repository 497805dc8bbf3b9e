"""Scores, a registry of methods, and methods compared on the same scenes."""

from bimichi.evaluation.comparison import Comparison, Result, compare
from bimichi.evaluation.methods import Method, paper_methods, register_method, registered_methods
from bimichi.evaluation.metrics import Scores, scores
from bimichi.evaluation.study import StudyResult, StudyRow, run_study

__all__ = [
    "Comparison",
    "Method",
    "Result",
    "Scores",
    "StudyResult",
    "StudyRow",
    "compare",
    "paper_methods",
    "register_method",
    "registered_methods",
    "run_study",
    "scores",
]
