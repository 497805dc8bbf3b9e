"""Scores of fused maps and of detections against the truth, and thresholds."""

from bimichi.evaluate.metrics import *  # noqa: F403
from bimichi.evaluate.metrics import ObjectScores, __all__ as _of_maps, object_scores
from bimichi.evaluate.thresholds import Threshold, choose_threshold, decide

__all__ = [*_of_maps, "ObjectScores", "Threshold", "choose_threshold", "decide", "object_scores"]
