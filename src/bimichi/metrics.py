"""Scores of fused maps and of detections against the truth, and thresholds."""

from bimichi.evaluation.deciding import Threshold, choose_threshold, decide
from bimichi.evaluation.metrics import *  # noqa: F403
from bimichi.evaluation.metrics import __all__ as _of_maps
from bimichi.evaluation.objects import ObjectScores, object_scores

__all__ = [*_of_maps, "ObjectScores", "Threshold", "choose_threshold", "decide", "object_scores"]
